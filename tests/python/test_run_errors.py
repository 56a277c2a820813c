"""Whatever goes wrong in a Run is a line on standard error and never ends the training; wrong arguments are
refused before it."""

import contextlib
import io
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import unittest

import h5py
import numpy as np
from test_run import RunTest

import kappascope


class TestNothingEndsTheTraining(RunTest):
    def expect(self, *patterns):
        lines = self.lines()
        self.assertEqual(len(lines), len(patterns), lines)
        for line, pattern in zip(lines, patterns):
            self.assertRegex(line, r"\Akappascope: .*" + pattern)
        self.said.truncate(0)
        self.said.seek(0)

    def test_wrong_types(self):
        run = self.run_of()
        for step in ("100", None, 1.5, [1], float("nan"), -1):
            self.assertFalse(run(step))
            run.evaluated(step, 0.0)
        run.evaluated(0, "12.5")
        run.evaluated(0, None)
        run.evaluated(0, np.zeros(2))
        self.assertFalse(os.path.exists(f"{run.folder}/returns.csv"))
        for line in self.lines():
            self.assertRegex(line, r"study/runs/Pendulum-v1/mine/seed0: .*(expected .*found|least 0).*")
        self.assertTrue(run(np.int64(0)))
        self.assertTrue(run(100.0))

    def test_save_raises(self):
        def save(path, step):
            if step == 100:
                raise ValueError("no replay\n  yet")
            if step == 200:
                open(path, "xb").close()
            if step == 300:
                with h5py.File(path, "w") as file:
                    file["other"] = 1
            if step == 500:
                self.save(path, step)

        run = self.run_of(save=save)
        self.assertEqual([step for step in range(50, 551, 50) if run(step)], [500])
        self.expect(
            r"step 100: .*seed0: save: test_run_errors.py:\d+: raise ValueError\(.*\): no replay yet: no "
            "checkpoint of this step; the next .* at step 200",
            r"step 200: .*seed0: expected save to write a checkpoint: .*",
            r"step 300: .*seed0: expected save to write a checkpoint, found a file without",
            r"step 400: .*seed0: expected save to write a file .* found none",
        )
        self.assertEqual(self.files(run), ["step_000000500.h5"])
        self.assertEqual([name for name in os.listdir(run.folder) if name.startswith(".")], [])

    def test_the_line_of_an_error(self):
        """An error inside of a library, and one of this package, name the line of the user's code."""

        def save(path, step):
            if step == 100:
                np.concatenate([np.ones((2, 3, 4)), np.ones((2, 3, 1))], 1)
            kappascope.save_arrays(path, {}, "dense 1\n", np.ones((2, 3, 4)), np.ones((2, 3)))

        run = self.run_of(save=save)
        run(100), run(200)
        self.expect(
            r"seed0: save: test_run_errors.py:\d+: np.concatenate\(.*, 1\): all the input array dimensions",
            r"seed0: save: test_run_errors.py:\d+: kappascope.save_arrays\(.*: loss: expected it as",
        )

    def test_shapes(self):
        """An error about shapes says what save gets, and what it expects; another one does not."""

        def save(path, step, minibatches):
            observations, rewards = minibatches.values()
            if step == 100:  # as torch.cat([x, a], 1) in a rule of targets
                np.concatenate([observations, np.ones((40, 1))], 1)
            if step == 200:  # rollouts of several environments as they are
                kappascope.save_arrays(path, {}, "dense 1\n", observations, rewards, loss="mse")
            raise ValueError("no targets yet")

        drawn = {"obs": np.ones((5, 2, 4, 3)), "reward": np.ones((5, 2, 4))}
        run = self.run_of(save=save, draw=lambda: drawn)
        for step in (100, 200, 300):
            self.assertFalse(run(step))
        hint = (
            r"\(save gets what draw returns, here \[5, 2, 4, 3\], \[5, 2, 4\]: \[N, R, \.\.\.\] are N "
            r"minibatches of R rows; flatten\(0, 1\) makes rows of them, and of rollouts \[T, envs, "
            r"\.\.\.\]\): no checkpoint"
        )
        self.expect(
            r"save: test_run_errors.py:\d+: np.concatenate\(.*must have same number of dimensions.* " + hint,
            r"save: test_run_errors.py:\d+: kappascope.save_arrays\(.*expected each as \[N, R, D\].* " + hint,
            r"save: test_run_errors.py:\d+: raise ValueError\(.*\): no targets yet: no checkpoint",
        )
        alone = self.run_of(seed=1, save=lambda path, step: np.ones(3) + np.ones(4))
        self.assertFalse(alone(100))
        self.expect(r"broadcast together.* \(\[N, R, \.\.\.\] are N minibatches of R rows; ")

    def test_save_makes_a_folder(self):
        """It is removed, and so is one that a killed process left: checkpoints of a run that starts again
        are saved."""

        def save(path, step):
            if step == 100:
                os.mkdir(path)
                open(f"{path}.npz", "xb").close()
            else:
                self.save(path, step)

        run = self.run_of(save=save)
        self.assertFalse(run(100))
        self.expect(r"step 100: .*seed0: expected save to write a file .* found none")
        self.assertEqual(os.listdir(run.folder), ["run.lock"])
        run.close()
        os.makedirs(f"{run.folder}/.kappascope-1-step_000000100.h5/inner")
        again = self.run_of(save=save)
        self.assertTrue(again(200), self.lines())
        self.assertEqual(sorted(os.listdir(run.folder)), ["run.lock", "step_000000200.h5"])

    def test_draw_raises(self):
        run = self.run_of(draw=lambda: random.sample([1, 2], 3))
        self.assertFalse(run(100))
        self.expect(r"step 100: .*seed0: draw: test_run_errors.py:\d+: .*: Sample larger than population")

        def full():
            raise MemoryError

        self.assertFalse(self.run_of(seed=1, draw=full)(100))
        self.expect(
            r"step 100: .*seed1: draw: test_run_errors.py:\d+: raise MemoryError: MemoryError: no checkpoint"
        )

    def test_full_disk(self):
        """No file may grow beyond a few bytes: checkpoints, minibatches, rows."""
        run = self.run_of(draw=self.draw)
        run.evaluated(0, 0.0)
        before = self.rows(run)
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 2, most[1]))
        try:
            self.assertFalse(run(100))
            run.evaluated(100, -123456.0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
        self.assertEqual(self.rows(run), before)
        self.expect(
            r"step 100: .*seed0: .*minibatches.npz.*: File too large: no checkpoint of this step",
            r"step 100: .*seed0: .*returns.csv.*: File too large: .*returns.csv has no row of this step",
        )
        self.assertTrue(run(200))
        run.evaluated(200, 1.0)
        self.assertEqual(self.rows(run), before + "200,1.0\n")
        self.assertEqual(self.files(run), ["minibatches.npz", "returns.csv", "step_000000200.h5"])

    def test_full_disk_at_the_start(self):
        """study.study is written when there is room."""
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (80, most[1]))
        try:
            run = self.run_of()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
        self.expect(r"seed0: .*File too large: it is tried again at the next checkpoint")
        self.assertEqual(os.listdir(self.study), ["runs"])
        self.assertTrue(run(0))
        self.assertEqual(sorted(os.listdir(self.study)), ["runs", "study.study"])

    def test_another_working_directory(self):
        """A program may change it."""
        before = os.getcwd()
        os.chdir(os.path.dirname(self.study))
        try:
            run = self.run_of()
            relative = kappascope.Run("other", env="e", name="n", seed=0, every=1, save=self.save)
        finally:
            os.chdir(before)
        self.assertTrue(run(0) and relative(0))
        self.assertTrue(
            os.path.exists(f"{os.path.dirname(self.study)}/other/runs/e/n/seed0/step_000000000.h5")
        )

    def test_folder_that_cannot_be_made(self):
        """Also when it can be made later."""
        with open(self.study, "x", encoding="utf-8"):
            run = self.run_of()
        self.assertFalse(run(0))
        run.evaluated(0, 1.0)
        self.assertIn(f"{self.study}/runs", self.lines()[0])
        os.unlink(self.study)
        self.assertTrue(run(100))
        run.evaluated(100, 1.0)
        self.assertEqual(self.files(run), ["returns.csv", "step_000000100.h5"])

    def test_two_runs_of_one_seed(self):
        """The second process waits, in case that the first one is about to end, and then keeps nothing."""
        code = (
            "import sys, kappascope, kappascope.run, test_run\n"
            "kappascope.run._WAIT = 0\n"
            "run = kappascope.Run(sys.argv[1], env='Pendulum-v1', name='mine', seed=0, every=1, save=print)\n"
            "run(0), run(1), run.evaluated(7, 1.0)\n"
        )
        first = self.run_of()
        self.train(first, range(0, 101, 10))
        before = self.rows(first)
        done = subprocess.run(
            [sys.executable, "-c", code, self.study], capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertEqual(self.rows(first), before)
        self.assertEqual(self.files(first), ["returns.csv", "step_000000000.h5", "step_000000100.h5"])
        self.said.write(done.stderr)
        self.expect(rf"seed0: another process \(.*, process {os.getpid()}\) writes into .*another seed")

    def test_again_in_one_process(self):
        """As in a notebook whose cell is evaluated again: the later Run goes on."""
        first = self.run_of()
        self.train(first, range(0, 101, 10))
        second = self.run_of()
        self.assertFalse(first(200))
        self.train(second, range(110, 201, 10))
        self.assertEqual(len(self.files(second)), 4)
        self.assertEqual(len(self.rows(second).splitlines()), 6)
        self.expect(r"seed0: a later Run of this program continues this one")

    def test_backwards(self):
        run = self.run_of()
        self.train(run, range(0, 201, 10))
        self.train(run, range(0, 151, 10))
        self.expect(
            r"step 0: .*seed0: given after step 200: nothing is saved",
            r"step 0: .*seed0: given after step 200: no row",
        )
        self.train(run, range(210, 301, 10))
        self.assertEqual(self.rows(run).splitlines()[-1], "300,-300.0")
        self.assertEqual(len(self.files(run)), 5)

    def test_forked(self):
        """A process that the training forked keeps nothing, and says so once."""
        run = self.run_of()
        fork = multiprocessing.get_context("fork")
        receive, send = fork.Pipe(duplex=False)

        def child():
            run(0)
            run.evaluated(0, 1.0)
            run.close()
            send.send(self.said.getvalue())

        process = fork.Process(target=child)
        process.start()
        self.said.write(receive.recv())
        process.join()
        self.expect(rf"seed0: process {os.getpid()} made this Run, .* keeps nothing")
        self.assertEqual(self.files(run), [])
        self.assertTrue(run(0))
        self.assertEqual(self.lines(), [])

    def test_closed_standard_error(self):
        closed = io.StringIO()
        closed.close()
        run = self.run_of()
        with contextlib.redirect_stderr(closed):
            self.assertFalse(run("x"))

    def test_two_tasks(self):
        self.run_of(env="ALE/Pong-v5")
        self.run_of(env="Hopper-v4", seed=1)
        self.expect(r"study: a study has one task, found ALE-Pong-v5 beside Hopper-v4")

    def test_arguments(self):
        """What cannot work is refused before the training."""
        for wrong, error in (
            (dict(every=0), ValueError),
            (dict(every="10"), TypeError),
            (dict(seed=-1), ValueError),
            (dict(seed=None), TypeError),
            (dict(name="a/b"), ValueError),
            (dict(name=".."), ValueError),
            (dict(name=""), TypeError),
            (dict(name="n" * 300), ValueError),
            (dict(env=3), TypeError),
            (dict(save="mine.h5"), TypeError),
            (dict(draw=3), TypeError),
            (dict(draw=self.draw, save=lambda path, step: None), TypeError),
            (dict(save=lambda path, step, minibatches: None), TypeError),
            (dict(minibatches="other"), ValueError),
            (dict(attributes={"seed": 3}), ValueError),
            (dict(attributes={1: 3}), ValueError),
            (dict(attributes={"gamma": [0.9, 0.99]}), ValueError),
            (dict(attributes={"gamma": "0.99"}), ValueError),
            (dict(attributes={"gamma": float("nan")}), ValueError),
            (dict(attributes={"reward_scale": np.inf}), ValueError),
            (dict(attributes={"learning_rate": "3e-4"}), ValueError),
            (dict(attributes={"architecture": 3}), ValueError),
            (dict(attributes={"return_mean": 999.0}), ValueError),
        ):
            with self.subTest(**wrong), self.assertRaisesRegex(error, r"\ARun: .*expected"):
                self.run_of(**{"save": self.save, **wrong})
        self.assertFalse(os.path.exists(self.study))


if __name__ == "__main__":
    unittest.main()
