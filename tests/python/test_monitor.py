"""Monitor: a run whose checkpoints are analyzed in the background."""

import contextlib
import csv
import io
import os
import resource
import subprocess
import sys
import time
import unittest

from test_run import RunTest

import kappascope
from kappascope.rows import append_row


class Writer:
    """Like TensorBoard's."""

    def __init__(self):
        self.rows = []

    def add_scalar(self, name, value, step):
        self.rows.append((name, value, step))


class Logger:
    """Like a run of wandb."""

    def __init__(self):
        self.rows, self.metrics = [], []

    def define_metric(self, name, step_metric):
        self.metrics.append((name, step_metric))

    def log(self, values):
        self.rows.append(values)


class TestMonitor(RunTest):
    def monitor(self, every=20, save=None, **arguments):
        given = dict(env="Pendulum-v1", name="mine", seed=0, every=every, save=save or self.save)
        monitor = kappascope.Monitor(self.study, **{**given, **arguments})
        self.addCleanup(monitor.close)
        return monitor

    def script(self, name, text):
        path = os.path.join(os.path.dirname(self.study), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)
        return path

    def wait(self, monitor):
        while monitor._process and monitor._process.poll() is None:
            time.sleep(0.01)

    def table(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def test_follows(self):
        """Analyses go to a table, a writer and a logger, the last one after the loop."""
        writer, logger = Writer(), Logger()
        path = os.path.join(os.path.dirname(self.study), "curves.csv")
        monitor = self.monitor(log=[path, writer, logger], options=["--order", "4"])
        for step in range(61):
            monitor(step)
            if step % 20 == 1:
                self.wait(monitor)
        monitor.close()
        monitor.close()
        rows = self.table(path)
        self.assertEqual([row["step"] for row in rows], ["0", "20", "40", "60"], self.lines())
        found = [float(row["lambda_max"]) for row in rows]
        self.assertEqual([s for n, _, s in writer.rows if n == "kappascope/lambda_max"], [0, 20, 40, 60])
        self.assertEqual(found, [row["kappascope/lambda_max"] for row in logger.rows])
        self.assertEqual(logger.metrics, [("kappascope/*", "kappascope/step")])
        spectrum = kappascope.load_spectrum(f"{monitor.folder}/monitor/step_000000060.spectrum.h5")
        self.assertEqual(spectrum.summary["lambda_max"], found[3])
        self.assertEqual(len(self.files(monitor)), 4)

    def test_resume(self):
        """The table of a run that starts again has one row per step."""
        for steps in (range(0, 61), range(40, 81)):
            monitor = self.monitor(options=["--order", "4"])
            for step in steps:
                monitor(step)
                self.wait(monitor)
            monitor.close()
        steps = [int(row["step"]) for row in self.table(f"{monitor.folder}/curves.csv")]
        self.assertEqual(steps, [0, 20, 40, 60, 80])

    def test_never_waits(self):
        """While an analysis runs, checkpoints are saved and not analyzed; the last one is stopped."""
        monitor = self.monitor(every=10, program=self.script("slow", "sleep 60"))
        self.assertEqual([step for step in range(50) if monitor(step)], [0, 10, 20, 30, 40])
        self.assertEqual(monitor.skipped, 4)
        child = os.fork()
        if child == 0:
            monitor(60)
            monitor.close()
            os._exit(monitor._process is None)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        process = monitor._process
        monitor.close(wait=0.1)
        self.assertIsNotNone(process.poll())
        self.assertEqual(len(self.lines()), 1)
        self.assertIn("stopped at the end of the program", self.lines()[0])

    def test_failures(self):
        """Each is said once, and the loop goes on."""

        def full(path, step):
            most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most[1]))
            try:
                self.save(path, step)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, most)

        failing = self.script("failing", "echo kappascope: expected memory >&2; exit 1")
        for number, (save, program, words) in enumerate(
            (
                (None, failing, "exit status 1: kappascope: expected memory"),
                (None, "/nowhere/missing", "missing"),
                (None, self.script("silent", "exit 0"), "no statistics and no message"),
                (None, self.script("crashing", "kill -SEGV $$"), "exit status -11"),
                (full, failing, "File too large"),
            )
        ):
            with self.subTest(words), contextlib.redirect_stderr(io.StringIO()) as said:
                monitor = self.monitor(every=1, save=save, program=program, seed=number)
                for step in range(4):
                    monitor(step)
                    self.wait(monitor)
                monitor.close()
                lines = said.getvalue().splitlines()
                ours = [line for line in lines if line.startswith("kappascope:")]
                self.assertEqual(len(ours), 1, lines)
                self.assertIn(words, said.getvalue())
                self.assertFalse(os.path.exists(f"{monitor.folder}/curves.csv"))

    def test_arguments(self):
        for wrong in (dict(options="--order=5"), dict(options=[5]), dict(threads="all"), dict(wait=None)):
            with self.subTest(**wrong), self.assertRaisesRegex(TypeError, r"\AMonitor: .*expected"):
                self.monitor(**wrong)
        self.assertFalse(os.path.exists(self.study))

    def test_end_of_the_program(self):
        """A program that forgets close() ends cleanly, with the last row."""
        code = (
            "import sys, test_run, kappascope\n"
            "save = test_run.RunTest().save\n"
            "monitor = kappascope.Monitor(sys.argv[1], env='e', name='n', seed=0, every=5, save=save)\n"
            "monitor(5)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, self.study], capture_output=True, text=True, check=False
        )
        said = [line for line in done.stderr.splitlines() if ": waiting for" not in line]
        self.assertEqual((done.returncode, said), (0, []))
        self.assertEqual(
            [row["step"] for row in self.table(f"{self.study}/runs/e/n/seed0/curves.csv")], ["5"]
        )


class TestRows(RunTest):
    def test_whole_rows(self):
        """A row that does not fit on the disk leaves the table as it was."""
        path = self.study
        append_row(path, {"step": 1, "kappa": 2.5})
        before, most = os.path.getsize(path), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (before + 2, most[1]))
        try:
            with self.assertRaisesRegex(OSError, f"File too large: '{path}'"):
                append_row(path, {"step": 1, "kappa": 2.5})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
        self.assertEqual(os.path.getsize(path), before)
        append_row(path, {"step": 2, "kappa": None})
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "step,kappa\n1,2.5\n2,\n")


if __name__ == "__main__":
    unittest.main()
