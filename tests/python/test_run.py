"""A training run in the folder of a study: what Run writes. test_run_errors.py has what goes wrong."""

import contextlib
import io
import os
import random
import subprocess
import sys
import tempfile
import typing
import unittest

import h5py
import numpy as np

import kappascope

ARCH = "dense 1\n"


class Transitions(typing.NamedTuple):
    x: np.ndarray
    y: np.ndarray


def write(path, x, y, kernel=1.0):
    """A linear critic: its output is kernel * the sum of its inputs."""
    arrays = {"00_dense/kernel": np.full((x.shape[-1], 1), kernel), "00_dense/bias": np.zeros(1)}
    kappascope.save_arrays(path, arrays, ARCH, x, y, loss="mse")


def read(path):
    """(attributes, /batch/input)"""
    with h5py.File(path) as file:
        return dict(file.attrs), file["batch/input"][()]


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.study = os.path.join(folder.name, "study")
        self.rng = np.random.default_rng(0)
        self.said = io.StringIO()
        redirect = contextlib.redirect_stderr(self.said)
        redirect.__enter__()
        self.addCleanup(redirect.__exit__, None, None, None)

    def draw(self):
        return Transitions(self.rng.standard_normal((2, 8, 3)), self.rng.standard_normal((2, 8, 1)))

    def save(self, path, step, minibatches=None):
        write(path, *(minibatches or Transitions(np.ones((2, 8, 3)), np.ones((2, 8, 1)))), kernel=step + 1.0)

    def run_of(self, every=100, save=None, **arguments):
        given = dict(env="Pendulum-v1", name="mine", seed=0, every=every, save=save or self.save)
        run = kappascope.Run(self.study, **{**given, **arguments})
        self.addCleanup(run.close)
        return run

    def train(self, run, steps):
        for step in steps:
            run(step)
            if step % 50 == 0:
                run.evaluated(step, -float(step))

    def files(self, run):
        return sorted(name for name in os.listdir(run.folder) if name.endswith((".h5", ".npz", ".csv")))

    def rows(self, run):
        with open(os.path.join(run.folder, "returns.csv"), encoding="utf-8") as file:
            return file.read()

    def lines(self):
        return self.said.getvalue().splitlines()


class TestRun(RunTest):
    def test_files(self):
        run = self.run_of(attributes={"gamma": 0.99, "algorithm": "sac"})
        self.assertTrue(run.folder.endswith("study/runs/Pendulum-v1/mine/seed0"))
        self.assertEqual([step for step in range(0, 251, 10) if run(step)], [0, 100, 200])
        self.assertEqual(
            self.files(run), ["step_000000000.h5", "step_000000100.h5", "step_000000200.h5"], self.lines()
        )
        attributes, _ = read(f"{run.folder}/step_000000100.h5")
        self.assertEqual(
            {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()},
            {
                "format": "kappascope-checkpoint",
                "version": 1,
                "env": "Pendulum-v1",
                "seed": 0,
                "env_step": 100,
                "minibatches": "fixed",
                "gamma": 0.99,
                "algorithm": "sac",
            },
        )
        with open(f"{self.study}/study.study", encoding="utf-8") as file:
            self.assertIn("trained = elsewhere", file.read())
        self.assertEqual(self.lines(), [])

    def test_steps_between(self):
        """Several environments at a time: the first call behind a multiple. The first call of all is not."""
        run = self.run_of()
        self.assertEqual([step for step in range(66, 500, 24) if run(step)], [114, 210, 306, 402])
        self.assertTrue(run(500, now=True))
        self.assertFalse(run(510))

    def test_training_begins_late(self):
        """As a training that evaluates from the start and calls the run when it makes its first update."""
        run = self.run_of(every=500)
        run.evaluated(200, 1.0), run.evaluated(400, 2.0)
        self.assertEqual([step for step in range(501, 1601) if run(step)], [1000, 1500])
        self.assertEqual(self.lines(), [])

    def test_returns(self):
        run = self.run_of()
        run.evaluated(0, np.float32(-1.5), success=0.0)
        run.evaluated(np.int64(100), -0.1, success=0.25)
        self.assertEqual(self.rows(run), "env_step,return,success\n0,-1.5,0.0\n100,-0.1,0.25\n")
        run.evaluated(100, 3, success=1)
        self.assertEqual(self.rows(run), "env_step,return,success\n0,-1.5,0.0\n100,3.0,1.0\n")
        run.evaluated(200, float("nan"))
        self.assertEqual(self.rows(run).splitlines()[-1], "200,nan,")
        self.assertEqual(
            [line.partition("returns.csv: ")[2] for line in self.lines()],
            [
                "evaluated twice: the last return is kept (the training goes on; this is said once)",
                "a return of nan: the study leaves this row out (the training goes on; this is said once)",
            ],
        )

    def test_columns(self):
        run = self.run_of()
        with open(run.returns, "w", encoding="utf-8") as file:
            file.write("epoch,return\n")
        run.evaluated(100, 1.0)
        self.assertEqual(self.rows(run), "epoch,return\n")
        os.unlink(run.returns)
        run.evaluated(200, 1.0)
        run.evaluated(300, 2.0, success=1.0)
        self.assertEqual(self.rows(run), "env_step,return\n200,1.0\n300,2.0\n")
        self.assertRegex(
            self.lines()[0], r"returns.csv: expected columns env_step and return, found epoch, return"
        )
        self.assertRegex(self.lines()[1], r"returns.csv: it has no column success: not kept")

    def test_columns_that_cannot_be_kept(self):
        """A dictionary of the user's logs: the step and the return stay those of the evaluation."""
        run = self.run_of()
        logs = {"return": -9.0, "env_step": 7, "loss, mean": 1.0, "success": "a,b", "length": np.float32(0.5)}
        run.evaluated(100, 1.0, **logs)
        run.evaluated(200, 2.0, **logs)
        self.assertEqual(self.rows(run), "env_step,return,success,length\n100,1.0,,0.5\n200,2.0,,0.5\n")
        other = "expected another name for a further column, found "
        said = "; ".join(
            [
                *(other + name for name in list(logs)[:3]),
                "success: expected a number, found a value of type str",
            ]
        )
        self.assertEqual(len(self.lines()), 1)
        self.assertIn(f"{run.returns}: {said}: not kept", self.lines()[0])

    def test_nothing_saved(self):
        """A run that ends before its first checkpoint says so, once."""
        code = (
            "import sys, kappascope\n"
            "run = kappascope.Run(sys.argv[1], env='e', name='n', seed=0, every=10**6, save=print)\n"
        )
        called = "run(50), run(100)\n"
        for end in (called, f"{called}run.close()\n", f"{called}del run\n", "run.evaluated(150, 1.0)\n"):
            done = subprocess.run(
                [sys.executable, "-c", code + end, self.study], capture_output=True, text=True, check=True
            )
            self.assertRegex(
                done.stderr,
                r"\Akappascope: .*seed0: no checkpoint was saved: the "
                + (r"first was due at step 1000000\n\Z" if called in end else r"run was never called\n\Z"),
            )

    def test_random_numbers(self):
        """Training is the same with and without checkpoints."""

        def draw():
            random.random()
            return Transitions(np.random.standard_normal((2, 8, 3)), np.ones((2, 8, 1)))

        run = self.run_of(draw=draw)
        random.seed(1), np.random.seed(1)
        expected = random.random(), np.random.random()
        random.seed(1), np.random.seed(1)
        self.assertTrue(run(0))
        self.assertEqual((random.random(), np.random.random()), expected)

    def test_study_file(self):
        """It is written once; what the user made of it stays."""
        self.run_of()
        with open(f"{self.study}/study.study", "w", encoding="utf-8") as file:
            file.write("mine")
        self.run_of(seed=1)
        with open(f"{self.study}/study.study", encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")
        self.assertEqual(sorted(os.listdir(self.study)), ["runs", "study.study"])

    def test_at_the_same_time(self):
        """Many seeds start together: each has its folder, and study.study appears whole, once."""
        code = (
            "import sys, kappascope\n"
            "for k in range(20):\n"
            "    kappascope.Run(f'{sys.argv[1]}/{k}', env='e', name='n', seed=int(sys.argv[2]), every=1,\n"
            "                   save=print)\n"
            "    text = open(f'{sys.argv[1]}/{k}/study.study').read()\n"
            "    assert text.endswith('compat = xqc\\n'), text\n"
        )
        started = [
            subprocess.Popen([sys.executable, "-c", code, self.study, str(seed)], stderr=subprocess.PIPE)
            for seed in range(4)
        ]
        self.assertEqual([one.communicate()[1] for one in started], [b""] * 4)
        self.assertEqual([one.returncode for one in started], [0] * 4)
        for k in range(20):
            self.assertEqual(sorted(os.listdir(f"{self.study}/{k}")), ["runs", "study.study"])
            self.assertEqual(len(os.listdir(f"{self.study}/{k}/runs/e/n")), 4)

    def test_programs_read_it(self):
        run = self.run_of(draw=self.draw)
        run(0)
        found = kappascope.analyze(f"{run.folder}/step_000000000.h5", order=5)
        self.assertEqual((found["order"], found["dimension"]), (5, 4))
        self.assertEqual((found.attributes["env"], found.attributes["env_step"]), ("Pendulum-v1", 0))

    def test_study_at_the_start(self):
        """A study can be looked at when its runs are at step 0."""
        run = self.run_of(draw=self.draw)
        run(0)
        run.evaluated(0, 1.0)
        kappascope.programs.call("study", "--quiet", self.study)
        self.assertIn("return_curves.csv", os.listdir(f"{self.study}/tables"))
        self.assertIn("returns.svg", os.listdir(f"{self.study}/figures"))


class TestMinibatches(RunTest):
    def test_fixed(self):
        run = self.run_of(draw=self.draw)
        self.train(run, range(0, 201, 10))
        x = [read(f"{run.folder}/step_{step:09d}.h5")[1] for step in (0, 100, 200)]
        np.testing.assert_array_equal(x[0], x[1])
        np.testing.assert_array_equal(x[0], x[2])
        self.assertEqual(x[0].shape, (2, 8, 3))

    def test_memory_of_their_own(self):
        """Neither a replay buffer that is written on nor a save that changes its arguments changes them."""
        buffer = self.draw()

        def save(path, step, minibatches):
            self.save(path, step, minibatches)
            minibatches.x[:] = 7

        run = self.run_of(draw=lambda: buffer, save=save)
        first = buffer.x.copy()
        run(0)
        buffer.x[:] = 0
        run(100)
        np.testing.assert_array_equal(read(f"{run.folder}/step_000000100.h5")[1], first)

    def test_structures(self):
        given = {
            "a": [np.arange(3), 2.5],
            "b": (None, np.float32(1), True),
            "c": Transitions(np.ones(2), np.ones(1)),
        }
        seen = []
        run = self.run_of(
            draw=lambda: given, save=lambda path, step, m: (seen.append(m), self.save(path, step))
        )
        run(0)
        self.assertEqual(repr(seen[0]), repr(given), self.lines())
        self.assertEqual(seen[0]["a"][0].dtype, given["a"][0].dtype)

    def test_arrays_of_another_framework(self):
        class Lazy:
            def __array__(self, dtype=None, copy=None):
                return np.arange(3.0)

        seen = []
        run = self.run_of(draw=Lazy, save=lambda path, step, m: (seen.append(m), self.save(path, step)))
        self.assertTrue(run(0), self.lines())
        np.testing.assert_array_equal(seen[0], np.arange(3.0))

    def test_fresh(self):
        run = self.run_of(draw=self.draw, minibatches="fresh")
        self.train(run, range(0, 101, 10))
        found = [read(f"{run.folder}/step_{step:09d}.h5") for step in (0, 100)]
        self.assertFalse(np.array_equal(found[0][1], found[1][1]))
        self.assertEqual(found[1][0]["minibatches"], b"fresh")
        self.assertNotIn("minibatches.npz", os.listdir(run.folder))

    def test_not_as_said(self):
        """save draws anew although the run says that the minibatches are fixed."""
        run = self.run_of(save=lambda path, step: write(path, *self.draw()))
        self.train(run, range(0, 201, 10))
        said = [read(f"{run.folder}/step_{step:09d}.h5")[0]["minibatches"] for step in (0, 100, 200)]
        self.assertEqual(said, [b"fixed", b"fresh", b"fresh"])
        self.assertEqual(len(self.lines()), 1)
        self.assertRegex(self.lines()[0], r"step_000000100.h5: /batch/input is not .* Give Run draw=")


class TestResume(RunTest):
    def test_resume(self):
        """Files are as of a run that was never stopped; what was written later is moved away."""
        first = self.run_of(draw=self.draw)
        self.train(first, range(0, 331, 10))
        kept = read(f"{first.folder}/step_000000100.h5")[1]
        open(f"{first.folder}/step_000000300.spectrum.h5", "xb").close()
        first.close()
        again = self.run_of(draw=self.draw)
        self.train(again, range(210, 431, 10))
        self.assertEqual(
            self.files(again),
            ["minibatches.npz", "returns.csv"] + [f"step_{s:09d}.h5" for s in range(0, 401, 100)],
        )
        self.assertEqual(
            self.rows(again), "env_step,return\n" + "".join(f"{s},{-float(s)!r}\n" for s in range(0, 401, 50))
        )
        np.testing.assert_array_equal(read(f"{again.folder}/step_000000400.h5")[1], kept)
        away = f"{again.folder}/replaced-1"
        self.assertEqual(
            sorted(os.listdir(away)), ["returns.csv", "step_000000300.h5", "step_000000300.spectrum.h5"]
        )
        self.assertEqual(len(self.lines()), 1, self.lines())
        self.assertIn("goes on from here", self.lines()[0])

    def test_from_a_checkpoint(self):
        """At the step of a checkpoint, and at the step of an evaluation that comes first or second."""
        for evaluation_first in (False, True):
            with self.subTest(evaluation_first=evaluation_first):
                first = self.run_of(name=f"n{evaluation_first}")
                self.train(first, range(0, 201, 10))
                first.close()
                again = self.run_of(name=f"n{evaluation_first}")
                if evaluation_first:
                    again.evaluated(200, 7.0)
                self.assertTrue(again(200))
                again.evaluated(250, 8.0)
                again.evaluated(250, 8.0)
                end = "200,7.0\n250,8.0\n" if evaluation_first else "200,-200.0\n250,8.0\n"
                self.assertTrue(self.rows(again).endswith(end), self.rows(again))
                self.assertEqual(len(self.rows(again).splitlines()), 7)
                again.close()
        third = self.run_of(name="nTrue")
        self.assertTrue(third(300))
        before = len(self.lines())
        third.evaluated(300, 9.0)
        self.assertEqual(len(self.lines()), before)
        third.close()
        fourth = self.run_of(name="nTrue")
        self.assertTrue(fourth(300))
        fourth.evaluated(300, 10.0)  # not twice: the row is of the process that was stopped here
        self.assertTrue(self.rows(fourth).endswith("250,8.0\n300,10.0\n"))
        self.assertEqual(len(self.lines()), before)

    def test_missed(self):
        """The checkpoint that was due between the last step of one process and the first of the next."""
        first = self.run_of()
        self.train(first, range(0, 195, 6))
        first.close()
        self.assertTrue(self.run_of()(204))

    def test_from_the_beginning(self):
        first = self.run_of(draw=self.draw)
        self.train(first, range(0, 201, 10))
        kept = read(f"{first.folder}/step_000000000.h5")[1]
        first.close()
        again = self.run_of(draw=self.draw)
        self.train(again, range(10, 111, 10))
        self.assertEqual(
            self.files(again), ["minibatches.npz", "returns.csv", "step_000000000.h5", "step_000000100.h5"]
        )
        again.close()
        os.unlink(f"{again.folder}/step_000000000.h5")
        third = self.run_of(draw=self.draw)  # nothing of the former runs remains: other minibatches
        self.train(third, range(0, 11, 10))
        self.assertFalse(np.array_equal(read(f"{third.folder}/step_000000000.h5")[1], kept))
        self.assertIn("minibatches.npz", os.listdir(f"{third.folder}/replaced-2"))

    def test_incomplete_line(self):
        first = self.run_of()
        self.train(first, range(0, 101, 10))
        first.close()
        with open(f"{first.folder}/returns.csv", "a", encoding="utf-8") as file:
            file.write("150,-1")
        open(f"{first.folder}/.kappascope-1-step_000000100.h5", "xb").close()
        again = self.run_of()
        again.evaluated(150, -150.0)
        self.assertTrue(self.rows(again).endswith("100,-100.0\n150,-150.0\n"), self.rows(again))
        self.assertFalse([name for name in os.listdir(again.folder) if name.startswith(".")])

    def test_other_arrays(self):
        first = self.run_of(draw=self.draw)
        first(0)
        first.close()
        again = self.run_of(draw=lambda: self.draw().x)
        self.assertFalse(again(100))
        self.assertRegex(
            self.lines()[0], r"minibatches.npz: the minibatches of this run have 2 arrays .* remove the file"
        )

    def test_lost_minibatches(self):
        """Without the file, the resumed run says that its minibatches are others."""
        first = self.run_of(draw=self.draw)
        self.train(first, range(0, 101, 10))
        first.close()
        path = f"{first.folder}/minibatches.npz"
        os.truncate(path, os.path.getsize(path) // 2)
        again = self.run_of(draw=self.draw)
        self.assertFalse(again(200))
        os.unlink(path)
        self.assertTrue(again(300))
        again.close()
        third = self.run_of(draw=self.draw)
        self.assertTrue(third(400))
        said = [read(f"{first.folder}/step_{step:09d}.h5")[0]["minibatches"] for step in (100, 300, 400)]
        self.assertEqual(said, [b"fixed", b"fresh", b"fresh"])
        self.assertRegex(
            self.lines()[0], "minibatches.npz: the minibatches of this run cannot be read .*remove"
        )
        self.assertRegex(self.lines()[1], "minibatches.npz: expected the minibatches .* new ones are drawn")


if __name__ == "__main__":
    unittest.main()
