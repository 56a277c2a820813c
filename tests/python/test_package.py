"""The package itself: its version, its former name, and what it imports."""

import fcntl
import os
import subprocess
import sys
import tempfile
import unittest

import kappascope
from kappascope.checkpoint import write_checkpoint

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def run(*command, cwd=None, **environment):
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, **environment}
    )


class TestPackage(unittest.TestCase):
    def test_version(self):
        with open(os.path.join(ROOT, "src", "VERSION"), encoding="utf-8") as file:
            self.assertEqual(kappascope.__version__, file.read().strip())

    def test_former_name(self):
        code = "import kappascope_export as k; print(k.save.__module__, sorted(k.__all__))"
        done = run(sys.executable, "-c", code, PYTHONPATH=os.path.join(ROOT, "analysis", "export"))
        self.assertEqual(
            done.stdout.strip(), f"kappascope.export_torch {sorted(kappascope.__all__)}", done.stderr
        )

    def test_frameworks_are_imported_where_they_are_needed(self):
        code = (
            "import sys, kappascope, kappascope.importing; print({'torch', 'jax', 'flax'} & set(sys.modules))"
        )
        self.assertEqual(run(sys.executable, "-c", code).stdout, "set()\n")


class TestExamples(unittest.TestCase):
    def test_numbers_of_lines(self):
        """The page says how many lines of an example are for KappaScope."""
        folder = os.path.join(ROOT, "analysis", "examples")
        with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
            page = " ".join(file.read().split())
        for name, words in (("sac_torch", ", where {} lines are for"), ("sac_flax", ", {} lines;")):
            with open(os.path.join(folder, f"{name}.py"), encoding="utf-8") as file:
                lines, inside, count = [line.strip() for line in file], False, 0
            for line in filter(None, lines):
                inside ^= line.startswith("# [k]")
                count += not line.startswith("# [k]") and (inside or "# [k]" in line)
            self.assertRegex(page, rf"\[`{name}.py`\]\({name}.py\).*?" + words.format(count))


class TestCommand(unittest.TestCase):
    """The command of an installed package without programs."""

    def run_command(self, path, *arguments):
        code = "import sys, kappascope_command; sys.exit(kappascope_command.main())"
        return run(sys.executable, "-c", code, *arguments, PATH=path)

    def test_programs_in_the_path(self):
        folder = os.environ["KAPPASCOPE_PROGRAMS"]
        self.assertEqual(
            self.run_command(folder, "--help").stdout,
            run(os.path.join(folder, "kappascope"), "--help").stdout,
        )
        done = self.run_command(folder, "import", "--version")
        self.assertRegex(done.stdout, r"\Akappascope-import \d", done.stderr)

    def test_no_programs(self):
        done = self.run_command("/nowhere", "analyze")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertIn("has no programs", done.stderr)


class TestCheckpoint(unittest.TestCase):
    def test_abandoned(self):
        """What a killed save has left is removed by the next one, what another one writes is not."""
        with tempfile.TemporaryDirectory() as folder:
            parts = [os.path.join(folder, f"c.h5.{name}.part") for name in ("1-2", "3-4", "mine")]
            for name in parts:
                open(name, "xb").close()
            with open(parts[1], "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                write_checkpoint(os.path.join(folder, "c.h5"), "dense 1\n", 1, {}, {}, None, {})
            left = sorted(os.listdir(folder))
        self.assertEqual(left, ["c.h5", "c.h5.3-4.part", "c.h5.mine.part"])


class TestProgram(unittest.TestCase):
    """`kappascope import`: the launcher in C."""

    def setUp(self):
        self.program = os.path.join(os.environ["KAPPASCOPE_PROGRAMS"], "kappascope")

    def test_help(self):
        done = run(self.program, "import", "--help")
        self.assertIn("--ensemble-axis=AXIS", done.stdout, done.stderr)
        self.assertRegex(run(self.program, "import", "--version").stdout, r"\Akappascope-import \d")
        self.assertIn("  import ", run(self.program, "--help").stdout)

    def test_refusal(self):
        done = run(self.program, "import")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "kappascope-import: expected --arch A.arch (see --help)\n")

    def test_other_modules_of_these_names(self):
        """The package is found beside the program, whatever the working directory and PYTHONPATH have."""
        with tempfile.TemporaryDirectory() as folder:
            for name in ("kappascope", "importing", "kappascope_import"):
                with open(os.path.join(folder, f"{name}.py"), "w", encoding="utf-8") as file:
                    file.write("raise SystemExit('another module')\n")
            for safe in ("", "1"):
                done = run(
                    self.program, "import", "--version", PYTHONPATH=folder, PYTHONSAFEPATH=safe, cwd=folder
                )
                self.assertRegex(done.stdout, r"\Akappascope-import \d", done.stderr)

    def test_standard_output_that_cannot_be_written(self):
        for where, words in ((">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")):
            done = run("sh", "-c", f"'{self.program}' import --help {where}")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, f"kappascope-import: cannot write to standard output: {words}\n")

    def test_without_python(self):
        """Without Python, or with one that has no NumPy, one line says what to install."""
        done = run(self.program, "import", "--help", PATH="/nowhere")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(
            done.stderr, r"\Akappascope: [^\n]*install python3, python3-numpy and python3-h5py[^\n]*\n\Z"
        )
        script = os.path.join(ROOT, "analysis", "python", "kappascope_import.py")
        start = "import sys, runpy; sys.modules['numpy'] = None; sys.executable = '/usr/bin/python3'"
        done = run(sys.executable, "-c", f"{start}; runpy.run_path({script!r}, run_name='__main__')")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(
            done.stderr, r"\Akappascope-import: [^\n]*install python3-numpy and python3-h5py[^\n]*\n\Z"
        )


if __name__ == "__main__":
    unittest.main()
