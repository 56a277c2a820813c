"""The tables of the gallery's pages are those of their studies: plots/gallery/pages.py."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

GALLERY = pathlib.Path(__file__).resolve().parents[2] / "plots" / "gallery"


def pages(*arguments):
    return subprocess.run(
        [sys.executable, GALLERY / "pages.py", *arguments], capture_output=True, text=True, check=False
    )


class PagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.copy = pathlib.Path(folder.name) / "gallery"
        shutil.copytree(GALLERY, self.copy, ignore=shutil.ignore_patterns("*.html", "*.png", "*.xz"))

    def replace(self, path, old, new):
        text = (self.copy / path).read_text()
        self.assertIn(old, text)
        (self.copy / path).write_text(text.replace(old, new, 1))

    def assert_stale(self, study, table):
        found = pages("--check", self.copy)
        self.assertEqual(found.returncode, 1, found.stderr)
        self.assertEqual(found.stderr.count("\n"), 1, found.stderr)
        self.assertIn(f"{study}/README.md: the table '{table}'", found.stderr)

    def test_the_pages_are_those_of_the_tables(self):
        found = pages("--check")
        self.assertEqual((found.returncode, found.stderr), (0, ""))

    def test_the_critics_of_audits_are_those_of_the_studies(self):
        command = [sys.executable, GALLERY / "critics.py", "--check"]
        self.assertEqual(subprocess.run(command, check=False).returncode, 0)
        self.replace(
            "trot/tables/checkpoints.csv",
            "dog-trot,bn+ce,1,10000,standard",
            "dog-trot,bn+ce,2,10000,standard",
        )
        found = subprocess.run([*command, self.copy], capture_output=True, text=True, check=False)
        self.assertEqual(found.returncode, 1)
        self.assertIn("critics.csv: is not what", found.stderr)

    def test_a_changed_number_of_a_page_is_found_and_mended(self):
        page = (self.copy / "small" / "README.md").read_text()
        self.replace("small/README.md", "| 345 |", "| 346 |")
        self.assert_stale("small", "returns")
        self.assertEqual(pages(self.copy).returncode, 0)
        self.assertEqual((self.copy / "small" / "README.md").read_text(), page)

    def test_a_changed_number_of_a_table_is_found(self):
        self.replace("exact/tables/taus.csv", "0.3333,cannot be had", "0.3333,not decided")
        self.assert_stale("exact", "taus")

    def test_a_checkpoint_less_is_found(self):
        path = self.copy / "trot" / "tables" / "checkpoints.csv"
        lines = path.read_text().splitlines(keepends=True)
        last = max(
            i for i, line in enumerate(lines) if line.startswith("dog-trot,bn+ce,") and ",xqc," in line
        )
        path.write_text("".join(lines[:last] + lines[last + 1 :]))
        self.assert_stale("trot", "critics")

    def test_a_page_without_its_table_is_refused(self):
        self.replace("pixels/README.md", "<!-- table: tasks -->", "")
        found = pages("--check", self.copy)
        self.assertEqual(found.returncode, 1)
        self.assertIn("pixels/README.md: expected tables tasks, found 0", found.stderr)
