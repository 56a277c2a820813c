"""Functions of the package that need no framework: arrays as a checkpoint, the programs, spectra, returns."""

import io
import os
import sys
import tempfile
import unittest
from unittest import mock

import h5py
import numpy as np

import kappascope
from kappascope import programs

ARCH = "dense 3\ntanh\ndense 1\n"


def critic(rng, ensemble=2):
    """Parameters, inputs, targets, and the outputs and the loss that NumPy computes."""
    shapes = {
        "00_dense/kernel": (4, 3),
        "00_dense/bias": (3,),
        "02_dense/kernel": (3, 1),
        "02_dense/bias": (1,),
    }
    w = {name: rng.standard_normal((ensemble, *shape)) for name, shape in shapes.items()}
    x, y = rng.standard_normal((2, 8, 4)), rng.standard_normal((2, 8, 1))
    hidden = np.tanh(np.einsum("nri,eij->nrej", x, w["00_dense/kernel"]) + w["00_dense/bias"])
    q = np.einsum("nrei,eij->nrej", hidden, w["02_dense/kernel"]) + w["02_dense/bias"]
    loss = 0.5 * ((q - y[:, :, None]) ** 2).mean((1, 3)).sum(1)
    return w, x, y, {"output": q, "loss": loss}


class FunctionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "c.h5")
        self.rng = np.random.default_rng(1)


class TestSaveArrays(FunctionTest):
    def test_reference_results(self):
        """The analyzer finds the same outputs and losses; a wrong one is refused."""
        w, x, y, results = critic(self.rng)
        text = kappascope.save_arrays(self.path, w, ARCH, x, y, loss="mse", results=results, step=7)
        self.assertEqual(text, ARCH + "loss mse\n")
        self.assertEqual(kappascope.analyze(self.path, order=5)["dimension"], 2 * (4 * 3 + 3 + 3 + 1))
        with h5py.File(self.path) as file:
            self.assertEqual((file.attrs["env_step"], file["critic"].attrs["ensemble"]), (7, 2))
        results["output"][1, 2, 0, 0] += 1e-3
        kappascope.save_arrays(self.path, w, ARCH, x, y, loss="mse", results=results)
        with self.assertRaisesRegex(kappascope.AnalysisError, r"/batch/output") as raised:
            kappascope.analyze(self.path)
        self.assertEqual(len(str(raised.exception).splitlines()), 1)

    def test_one_critic_one_minibatch(self):
        w, x, y, _ = critic(self.rng, 1)
        kappascope.save_arrays(
            self.path, {name: a[0] for name, a in w.items()}, ARCH, x[0], y[0, :, 0], loss="mse"
        )
        with h5py.File(self.path) as file:
            self.assertEqual(file["critic/00_dense/kernel"].shape, (1, 4, 3))
            self.assertEqual((file["batch/input"].shape, file["batch/target"].shape), ((1, 8, 4), (1, 8, 1)))

    def test_optimizer(self):
        w, x, y, _ = critic(self.rng)
        moments = {name: a**2 for name, a in w.items()}
        adam = {"m": w, "v": moments, "step": 12}
        with self.assertWarnsRegex(UserWarning, "assumed beta1 = 0.9, beta2 = 0.999, eps = 1e-08, which"):
            kappascope.save_arrays(self.path, w, ARCH, x, y, loss="mse", optimizer=adam)
        with h5py.File(self.path) as file:
            self.assertEqual(file.attrs["adam_assumed"], "beta1 beta2 eps")
        self.assertEqual(kappascope.analyze(self.path, operator="preconditioned", order=4)["order"], 4)
        with self.assertRaisesRegex(kappascope.Refused, "optimizer: expected m, v and step, found m"):
            kappascope.save_arrays(self.path, w, ARCH, x, y, loss="mse", optimizer={"m": w})

    def test_refusals(self):
        w, x, y, results = critic(self.rng)
        kernel, adam = "00_dense/kernel", {"m": w, "v": {name: a**2 for name, a in w.items()}, "step": 12}
        adam |= {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
        for change, words in (
            (dict(arrays={**w, kernel: w[kernel].swapaxes(1, 2)}), "transpose it, kernels are .in, out."),
            (dict(arrays={**w, kernel: w[kernel][:1]}), r"expected \[1, 3\], found \[2, 3\]"),
            (dict(arrays={k: a for k, a in w.items() if k != kernel}), r"kernel \[4, 3\] is missing"),
            (
                dict(arrays={**w, "00_dense/kernal": w[kernel]}),
                "no such array; did you mean '00_dense/kernel'",
            ),
            (dict(arrays={**w, kernel: w[kernel] * np.nan}), "finite"),
            (dict(results={"output": results["output"][:, :5]}), r"results: output: expected \[2, 8, 2, 1\]"),
            (
                dict(results={"loss": [1.0, 2.0, 3.0]}),
                r"results: loss: expected \[2\], or those of the first minibatch alone, found \[3\]",
            ),
            (dict(results={"value": 1.0}), "expected output, loss or gradient_norm, found value"),
            (dict(loss=None), "loss: expected it as an argument"),
            (dict(targets=y[:, :, None]), "targets"),
            (dict(arch="nowhere.arch"), "nowhere.arch: no such file"),
            (dict(arch=None), "arch: expected the path of a description, or its text, found NoneType"),
            (dict(arch="dense 1"), "those of the description"),
            (dict(loss=abs), "loss: expected a line, such as 'mse' for the mean of .f - t..2 / 2, found abs"),
            (dict(arch="dens 3\ndense 1\n"), "description:1: unknown layer 'dens': did you mean 'dense'"),
            (dict(arch=ARCH + "loss huber\n"), "loss: the description has 'huber', the argument is 'mse'"),
            (dict(arch="dense 1\0\n"), "description:1: width: expected a number"),
            (dict(loss="MSELoss"), "loss: unknown loss 'MSELoss': did you mean 'mse weight=2'"),
            (dict(loss="mse weight=nan"), "loss: weight: expected"),
            (dict(loss="huber delta=0"), "loss: delta: expected"),
            (dict(loss="ce min=2 max=1"), "loss: ce: expected min < max, found 2 and 1"),
            (dict(loss="mse weight=1 weight=2"), "loss: option 'weight' is given twice"),
            (dict(step=1.5), "env_step: expected a whole number, found 1.5"),
            (dict(step=2**63), "env_step: expected a number below 2.63"),
            (dict(attributes={"gamma": "0.99"}), "attributes: gamma: expected a finite number, found '0.99'"),
            (dict(attributes={"seed": 0.5}), "attributes: seed: expected a whole number"),
            (dict(attributes={"env": 3}), "attributes: env: expected a string, found 3"),
            (
                dict(attributes={"minibatches": "same"}),
                "attributes: minibatches: expected 'fixed' or 'fresh'",
            ),
            (dict(attributes={"returns": "x"}), "attributes: returns: expected numbers"),
            (dict(attributes={"mine": [[1], [2, 3]]}), "attributes: mine: expected numbers or a string"),
            (dict(attributes={1: 2}), "attributes: expected names, found 1"),
            (dict(optimizer={**adam, "step": -1}), "optimizer: step: expected at least 0, found -1"),
            (
                dict(optimizer={**adam, "beta1": 1}),
                "optimizer: beta1: expected at least 0 and below 1, found 1",
            ),
            (dict(optimizer={**adam, "v": w}), "/optimizer/v/0._dense/.*: expected means of squares"),
        ):
            given = dict(arrays=w, arch=ARCH, inputs=x, targets=y, loss="mse", results=results)
            with self.subTest(words), self.assertRaisesRegex(kappascope.Refused, words):
                kappascope.save_arrays(self.path, **{**given, **change})
        self.assertFalse(os.path.exists(self.path))


class TestPrograms(FunctionTest):
    def setUp(self):
        super().setUp()
        w, x, y, results = critic(self.rng)
        kappascope.save_arrays(self.path, w, ARCH, x, y, loss="mse", results=results)

    def test_audit(self):
        found = kappascope.audit(self.path, fail_if=["kappa_effective_bound>1", "lambda_max>1e9"], order=30)
        self.assertTrue(found["limit_met"])
        self.assertFalse(kappascope.audit(self.path, fail_if="lambda_max>1e9", order=30)["limit_met"])
        self.assertIn("Findings", found["text"])
        self.assertTrue(any("condition number is at least" in one for one in found["findings"]))
        exact = kappascope.analyze(self.path, exact=True)
        self.assertAlmostEqual(found["hessian"]["lambda_max"] / exact["lambda_max"], 1, 5)
        self.assertGreater(found["ggn"]["lambda_max"], 0)
        self.assertNotIn("preconditioned", found)
        with self.assertRaisesRegex(kappascope.ProgramError, "--fail-if"):
            kappascope.audit(self.path, fail_if="kappa>1")
        for options in (  # as numbers that are written in other ways
            dict(order=30.0, batches=2.0),
            dict(order="030", seed="0"),
            dict(order="3e1", count_above=np.float64(0.1)),
            dict(order=np.int64(30), batches=None, seed=False),
        ):
            with self.subTest(**options):
                other = kappascope.audit(self.path, **options)
                self.assertEqual(other["hessian"]["lambda_max"], found["hessian"]["lambda_max"])
                self.assertIn("residual", other)
        for given, options, words in (
            (self.path, dict(order=[10, 30]), r"audit: order: expected one value, found \[10, 30\]"),
            ([self.path, self.path], {}, "audit: checkpoint: expected one path"),
            (self.path, dict(help=True), "audit: expected no option help"),
        ):
            with self.assertRaisesRegex(TypeError, words):
                kappascope.audit(given, **options)

    def test_load_spectrum(self):
        """The Hessian of a linear critic with the squared error is X'X/N, of the inputs and a column of 1."""
        x, y = self.rng.standard_normal((3, 8, 4)), self.rng.standard_normal((3, 8))
        arrays = {"00_dense/kernel": np.ones((4, 1)), "00_dense/bias": np.ones(1)}
        kappascope.save_arrays(self.path, arrays, "dense 1\n", x, y, loss="mse")
        rows = np.concatenate([x, np.ones((3, 8, 1))], -1).reshape(24, 5)
        expected = np.linalg.eigvalsh(rows.T @ rows / 24)
        kappascope.analyze(self.path, exact=True, precision="f64").save(self.path + ".spectrum")
        spectrum = kappascope.load_spectrum(self.path + ".spectrum")
        np.testing.assert_allclose(spectrum["ritz/value"], expected[None], rtol=1e-10)
        self.assertEqual(spectrum.attributes["operator"], "hessian")
        self.assertAlmostEqual(spectrum.summary["lambda_max"], expected[-1])

    def test_table(self):
        spectrum = kappascope.analyze(self.path, order=12, probes=2)
        table = spectrum.table("ritz")
        self.assertEqual(list(table), ["probe", "value", "weight", "residual"])
        self.assertEqual(len(table["probe"]), 24)
        probe, weight = np.asarray(table["probe"]), np.asarray(table["weight"])
        self.assertAlmostEqual(weight[probe == 1].sum(), 1)
        self.assertEqual(list(spectrum.table("distribution")), ["eigenvalue", "lower", "upper"])
        with self.assertRaisesRegex(KeyError, "no group other"):
            spectrum.table("other")

    def test_without_pandas(self):
        spectrum = kappascope.analyze(self.path, order=12)
        with mock.patch.dict(sys.modules, {"pandas": None}):
            self.assertEqual(spectrum.table()["statistic"], list(spectrum.statistics))
            self.assertIsInstance(spectrum.table("ritz"), dict)

    def test_no_spectrum(self):
        for path, words in (
            (self.path, "expected a spectrum: .*kappascope-spectrum.*kappascope-checkpoint"),
            (os.path.join(self.folder, "nowhere"), "nowhere: expected a spectrum"),
            (__file__, "test_functions.py: expected a spectrum"),
            ("", "expected a spectrum"),
        ):
            with self.assertRaisesRegex(kappascope.Refused, words):
                kappascope.load_spectrum(path)

    def test_where_programs_are(self):
        """Those of a wheel, of a checkout, of the PATH, in this order."""
        folders = [os.path.join(self.folder, name) for name in ("wheel", "checkout", "path")]
        found = []
        with (
            mock.patch.object(programs, "_FOLDERS", folders[:2]),
            mock.patch.dict(os.environ, {"PATH": folders[2]}),
        ):
            del os.environ["KAPPASCOPE_PROGRAMS"]
            with self.assertRaisesRegex(FileNotFoundError, r"kappascope: no such program in .*make programs"):
                kappascope.program()
            for folder in reversed(folders):
                os.mkdir(folder)
                for name in ("kappascope", "kappascope-analyze"):
                    path = os.path.join(folder, name)
                    open(path, "xb").close()
                    os.chmod(path, 0o755)
                found.append(os.path.dirname(kappascope.program()))
            os.environ["KAPPASCOPE_PROGRAMS"] = folders[2]  # as the programs say where they are
            found.append(os.path.dirname(kappascope.program()))
            w, x, y, _ = critic(self.rng)
            with self.assertRaisesRegex(OSError, "lib: expected libkappascope.so.*, found none: run `make`"):
                kappascope.save_arrays(self.path, w, ARCH, x, y, loss="mse")
        self.assertEqual(found, [*folders[::-1], folders[2]])


class TestReturns(FunctionTest):
    def setUp(self):
        super().setUp()
        self.run_folder = os.path.join(self.folder, "study", "runs", "e", "n", "seed0")
        self.source = os.path.join(self.folder, "evaluations.npz")

    def text(self):
        with open(os.path.join(self.run_folder, "returns.csv"), encoding="utf-8") as file:
            return file.read()

    def test_evaluations(self):
        """As Stable-Baselines3 writes them: the returns of each episode."""
        np.savez(self.source, timesteps=[100, 200], results=[[1.0, 2.0], [3.0, 5.0]], ep_lengths=[[9, 9]] * 2)
        self.assertEqual(kappascope.returns(self.source, self.run_folder), [(100, 1.5), (200, 4.0)])
        self.assertEqual(self.text(), "env_step,return\n100,1.5\n200,4.0\n")

    def test_started_again(self):
        """Of steps that a run came to twice, the later values count."""
        np.savez(self.source, timesteps=[100, 200, 300, 200, 300], results=np.arange(5.0)[:, None])
        self.assertEqual(
            kappascope.returns(self.source, self.run_folder), [(100, 0.0), (200, 3.0), (300, 4.0)]
        )

    def test_refusals(self):
        for arrays, words in (
            (dict(timesteps=[1]), "evaluations.npz of Stable-Baselines3"),
            (dict(timesteps=[1, 2], results=[[1.0]]), r"found \[2\] of int64 and \[1, 1\] of float64"),
            (dict(timesteps=[1.5], results=[[1.0]]), "expected timesteps"),
            (dict(timesteps=[1], results=np.array([[None]])), "evaluations.npz of Stable-Baselines3"),
            (dict(timesteps=[1], results=[["a"]]), "expected timesteps"),
        ):
            np.savez(self.source, **arrays)
            with self.subTest(words), self.assertRaisesRegex(kappascope.Refused, words):
                kappascope.returns(self.source, self.run_folder)
        with self.assertRaisesRegex(kappascope.Refused, "nowhere: no such file or folder"):
            kappascope.returns("nowhere", self.run_folder)
        np.savez_compressed(self.source, timesteps=range(50), results=self.rng.random((50, 9)))
        with self.assertRaisesRegex(
            kappascope.Refused, "test_functions.py/seed0: cannot be created: Not a dir"
        ):
            kappascope.returns(self.source, os.path.join(__file__, "seed0"))
        with open(self.source, "rb") as file:
            whole = file.read()
        array = io.BytesIO()
        np.save(array, np.ones((3, 1)))
        middle = len(whole) // 2
        for damaged in (
            whole[:middle],
            whole[:middle] + bytes(64) + whole[middle + 64 :],
            array.getvalue(),
            b"",
        ):
            with open(self.source, "wb") as file:
                file.write(damaged)
            with self.assertRaisesRegex(kappascope.Refused, "evaluations.npz of Stable-Baselines3"):
                kappascope.returns(self.source, self.run_folder)
        self.assertFalse(os.path.exists(self.run_folder))

    def table(self, text):
        path = os.path.join(self.folder, "progress.csv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return path

    def test_tables(self):
        """As other programs write them, some rows without a return, some with a mark of the byte order."""
        expected = [(1000, -189.5), (2000, -124.9)]
        for text, names in (
            ("total_timesteps,ep_rew_mean,critic_loss\n1000,-189.5,1.9\n2000,-124.9,1.2\n", {}),
            ("\ufeffstep,reward\r\n1000,-189.5\r\n2000,-124.9\r\n", {}),
            (
                "rollout/ep_rew_mean,eval/mean_reward,time/total_timesteps\n"
                "7,-189.5,1000\n8,,1500\n9,-124.9,2000.0\n",
                {},
            ),
            (
                '# a log\n"x","mine - J","loss"\n1000,-189.5,1\n2000,-124.9,2\n',
                {"tag": "mine - J", "step": "x"},
            ),
        ):
            with self.subTest(text):
                self.assertEqual(kappascope.returns(self.table(text), self.run_folder, **names), expected)
                self.assertEqual(self.text(), "env_step,return\n1000,-189.5\n2000,-124.9\n")

    def test_a_table_whose_end_is_missing(self):
        with self.assertWarnsRegex(UserWarning, "progress.csv: the last line has no end"):
            found = kappascope.returns(self.table("step,return\n10,100\n20,90"), self.run_folder)
        self.assertEqual(found, [(10, 100.0)])

    def test_tables_that_are_refused(self):
        for text, words in (
            (
                "#{}\nr,l,t\n1,2,3\n",
                "progress.csv: expected a column env_step or .*, found r, l, t. Way out: step=",
            ),
            ("step,loss\n1,2\n", "expected a column return or .*, found step, loss. Way out: tag=NAME"),
            ("step,return\n1,two\n", "expected a step and a return in each row, found 1,two"),
            ("step,return\n", "expected returns, found none"),
            ("", "expected a column env_step"),
        ):
            with self.subTest(text), self.assertRaisesRegex(kappascope.Refused, words):
                kappascope.returns(self.table(text), self.run_folder)
        os.rename(self.table("step,return\n1,2\n"), os.path.join(self.folder, "progress.txt"))
        for name in ("progress.txt", ""):
            with self.assertRaisesRegex(kappascope.Refused, "expected evaluations.npz .*, a table .csv, or"):
                kappascope.returns(os.path.join(self.folder, name), self.run_folder)
        self.assertFalse(os.path.exists(self.run_folder))

    def test_without_tensorboard(self):
        open(os.path.join(self.folder, "events.out.tfevents.1"), "xb").close()
        with (
            mock.patch.dict(sys.modules, {"tensorboard": None}),
            self.assertRaisesRegex(
                kappascope.Refused, r"need the package tensorboard .*pip install tensorboard"
            ),
        ):
            kappascope.returns(self.folder, self.run_folder)


if __name__ == "__main__":
    unittest.main()
