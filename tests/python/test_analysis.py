"""Analyses in this process: of files and of operators, what is refused, and how they end."""

import multiprocessing
import os
import shutil
import subprocess
import tempfile
import threading
import unittest
import warnings

import numpy as np

import kappascope
from kappascope.description import Description

ARCH = "dense 3\nlayernorm\nrelu\ndense 1\n"


def matrix(n, seed=0):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return (a + a.T) / n


def fork(queue):
    try:
        kappascope.analyze(kappascope.Operator(lambda x: x, 4))
    except RuntimeError as error:
        width = Description("dense 7\nloss mse\n", 3).outputs  # needs no threads
        queue.put(f"{error}: {width}")


class TestFile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "c.h5")
        rng = np.random.default_rng(3)
        arrays = {
            "00_dense/kernel": rng.standard_normal((4, 3)),
            "00_dense/bias": rng.standard_normal(3),
            "01_layernorm/scale": np.ones(3),
            "01_layernorm/bias": np.zeros(3),
            "03_dense/kernel": rng.standard_normal((3, 1)),
            "03_dense/bias": np.zeros(1),
        }
        x, y = rng.standard_normal((3, 8, 4)), rng.standard_normal((3, 8))
        kappascope.save_arrays(self.path, arrays, ARCH, x, y, loss="mse")

    def test_program(self):
        """The same spectrum as the program's, up to rounding."""
        options = [
            "--order=12",
            "--operator=ggn",
            "--weight-decay=0.5",
            "--start=gradient",
            "--no-certificates",
        ]
        subprocess.run(
            [kappascope.program(), "analyze", "--quiet", *options, self.path],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        found = kappascope.analyze(
            self.path, order=12, operator="ggn", weight_decay=0.5, start="gradient", no_certificates=True
        )
        theirs = kappascope.load_spectrum(self.path[:-3] + ".spectrum.h5")
        self.assertEqual(found.summary.keys(), theirs.summary.keys())
        for name in ("lambda_max", "trace", "kappa_effective_bound"):  # OpenBLAS may have another kernel here
            self.assertAlmostEqual(found[name] / theirs[name], 1, 5)
        found.save(self.path + ".ours")
        again = kappascope.load_spectrum(self.path + ".ours")
        self.assertEqual(again.statistics.keys(), found.statistics.keys())
        np.testing.assert_array_equal(again["ritz/value"], found["ritz/value"])
        self.assertEqual((found["order"], found["probes"], found["checkpoint"]), (12, 2, self.path))
        top = found.statistics["lambda_max"]
        self.assertEqual(
            (top.what, top.value, top.upper), ("bound", found["lambda_max"], found["lambda_max_upper"])
        )
        self.assertIn("lambda_max", found._repr_html_())
        self.assertEqual(found._of(), "ggn of c.h5, n = 25")
        part = kappascope.analyze(self.path, order=3, layer="03_dense")
        self.assertEqual(part._of(), "hessian of c.h5, layer 3, n = 4")

    def test_refusals(self):
        for options, error, words in (
            ({"ordre": 3}, ValueError, "there is no option 'ordre'"),
            ({"order": 0}, ValueError, "order: expected an integer from 1 to 10000, found '0'"),
            ({"csv": True}, ValueError, "csv: expected an option that decides how a spectrum is computed"),
            ({"batches": 9}, ValueError, "expected 1 to 3, found 9"),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                kappascope.analyze(self.path, **options)
        with self.assertRaisesRegex(OSError, "nowhere.h5"):
            kappascope.analyze("nowhere.h5")
        with open(self.path, "r+b") as file:
            file.truncate(2000)
        with self.assertRaises((kappascope.AnalysisError, OSError)):
            kappascope.analyze(self.path)


class TestOperator(unittest.TestCase):
    def test_dense(self):
        h = matrix(200)
        true = np.linalg.eigvalsh(h)
        found = kappascope.analyze(kappascope.Operator(lambda x: h @ x, 200), order=80)
        self.assertLessEqual(found["lambda_max"], true[-1] + 1e-13)
        self.assertGreaterEqual(found["lambda_max_upper"], true[-1])
        count = found.statistics["directions_1e2"]
        inside = np.sum(np.abs(true) > np.abs(true).max() / 100)
        self.assertTrue(count.lower <= inside <= count.upper and count.what == "estimate")
        both = kappascope.analyze(kappascope.Operator(lambda x: h @ x, 200), order=80, complement=True)
        self.assertEqual(both["lambda_max"], found["lambda_max"])
        narrow = both.statistics["directions_1e2"]
        self.assertTrue(narrow.lower <= inside <= narrow.upper)
        self.assertLess(narrow.upper / narrow.lower, count.upper / count.lower)
        exact = kappascope.analyze(kappascope.Operator(lambda x: h @ x, 200), exact=True)
        np.testing.assert_allclose(exact["ritz/value"][0], true, atol=1e-13)

    def test_products(self):
        h = matrix(5)
        a = kappascope.Operator(lambda x: h @ x, 5)
        np.testing.assert_array_equal(a @ np.eye(5), h)
        with self.assertRaisesRegex(ValueError, r"expected \[5\] or \[5, k\], found \[4\]"):
            a @ np.ones(4)

    def test_float32(self):
        """Bounds hold for the matrix of the exact products."""
        h = matrix(100)
        rough = h.astype(np.float32)
        true = np.linalg.eigvalsh(h)
        a = kappascope.Operator(lambda x: rough @ x.astype(np.float32), 100, "f32", exact=lambda x: h @ x)
        found = kappascope.analyze(a, order=100)
        self.assertGreater(found["product_error"], 1e-9)
        self.assertTrue(found["lambda_max"] <= true[-1] + 1e-13 <= found["lambda_max_upper"] + 1e-12)
        self.assertNotIn("uncertified", repr(found))
        alone = kappascope.Operator(lambda x: rough @ x.astype(np.float32), 100, "f32")
        self.assertIn("uncertified", repr(kappascope.analyze(alone)))
        with self.assertRaisesRegex(ValueError, "exact: expected products in float64"):
            kappascope.analyze(alone, exact=True)

    def test_meanings(self):
        h = matrix(50)
        found = kappascope.analyze(kappascope.Operator(lambda x: h @ x, 50), order=20)
        for name, words in (("trace", "sum of the eigenvalues"), ("stable_rank", "sum of squares over")):
            one = found.statistics[name]
            self.assertEqual(one.what, "estimate")
            self.assertIn(words, one.meaning)

    def test_plot(self):
        """The band has the true share also between its points; the density counts the eigenvalues."""
        try:
            import matplotlib
        except ImportError:
            self.skipTest("matplotlib is not installed")
        matplotlib.use("Agg")
        h = matrix(200)
        true = np.linalg.eigvalsh(h)
        found = kappascope.analyze(kappascope.Operator(lambda x: h @ x, 200), order=80)
        axes = found.plot()
        self.assertEqual((axes.get_title(), axes.get_xlabel()), ("operator, n = 200", "eigenvalue x"))
        self.assertEqual(axes.get_ylabel(), "share of the eigenvalues that are at most x")
        band = axes.collections[0].get_paths()[0]
        for x in true[:-1] + np.diff(true) / 2:
            self.assertTrue(band.contains_point((x, np.mean(true <= x)), radius=1e-9), x)
        axes = found.plot(density=True)
        self.assertEqual(axes.get_ylabel(), "eigenvalues per decade")
        at, per_decade = axes.lines[0].get_data()
        decades = np.arcsinh(at / (1e-6 * np.abs(found["ritz/value"]).max())) / np.log(10)
        counted = np.sum(np.diff(decades) * (per_decade[1:] + per_decade[:-1]) / 2)
        self.assertLess(abs(counted - 200), 3)

    def test_refusals(self):
        h, rng = matrix(50), np.random.default_rng(1)
        for product, error, words in (
            (lambda x: np.triu(h) @ x, ValueError, "expected a symmetric operator"),
            (lambda x: (h @ x)[1:], ValueError, r"expected 50 numbers, found an array of shape \[49\]"),
            (lambda x: h @ x * np.nan, ValueError, "expected finite numbers, found nan at element 0"),
            (
                lambda x: h @ x + 0.01 * rng.standard_normal(50),
                ValueError,
                "the same product of the same vector",
            ),
            (lambda x: h @ x + 0j, TypeError, "expected real numbers"),
            (lambda x: {}["missing"], KeyError, "missing"),
            (lambda x: None, TypeError, "expected real numbers"),
        ):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                kappascope.analyze(kappascope.Operator(product, 50))
        for arguments, words in (
            ((lambda x: x, 0), "n: expected a whole number"),
            ((lambda x: x, 3.0), "n: expected a whole number"),
            ((lambda x: x, 3, "f16"), "precision: expected f64 or f32"),
            ((lambda x: x, 3, "f64", abs), "exact: expected with precision='f32'"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                kappascope.Operator(*arguments)
        for options, words in (
            ({"layer": 1}, "layer: expected with a checkpoint's file"),
            ({"start": "gradient"}, "start"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                kappascope.analyze(kappascope.Operator(lambda x: x, 3), **options)

    def test_late_failure(self):
        """What a product raises in the middle comes out, Ctrl-C included; then the operator can go on."""
        h, calls = matrix(60), []

        def product(x):
            calls.append(1)
            if len(calls) == 20:
                raise KeyboardInterrupt
            return h @ x

        a = kappascope.Operator(product, 60)
        with self.assertRaises(KeyboardInterrupt):
            kappascope.analyze(a)
        self.assertEqual(len(calls), 20)
        self.assertEqual(kappascope.analyze(a, order=10)["order"], 10)

    def test_users(self):
        h = matrix(30)
        started, go = threading.Event(), threading.Event()

        def slow(x):
            started.set()
            go.wait(10)
            return h @ x

        a = kappascope.Operator(slow, 30)
        thread = threading.Thread(target=kappascope.analyze, args=(a,))
        thread.start()
        started.wait(10)
        with self.assertRaisesRegex(RuntimeError, "expected one user at a time"):
            kappascope.analyze(a)
        go.set()
        thread.join()
        kappascope.analyze(a)
        again = kappascope.Operator(lambda x: kappascope.analyze(again) and x, 3)
        with self.assertRaisesRegex(RuntimeError, "expected one user at a time"):
            kappascope.analyze(again)

    def test_fork(self):
        kappascope.analyze(kappascope.Operator(lambda x: x, 4))
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=fork, args=(queue,))
        child.start()
        self.assertRegex(queue.get(timeout=30), "found a fork of it.*: 7$")
        child.join()


class TestHessians(unittest.TestCase):
    """Against dense Hessians in float64 of the same float32 parameters."""

    def compare(self, a, dense):
        true, size = np.linalg.eigvalsh((dense + dense.T) / 2), np.abs(dense).max()
        np.testing.assert_allclose(a @ np.eye(len(dense)), dense, atol=1e-5 * size)
        for _ in range(2):  # an exact product changes nothing
            found = kappascope.analyze(a, order=70)
            self.assertTrue(0 < found["product_error"] < 1e-5)
            self.assertLessEqual(found["lambda_max"], true[-1] * (1 + 1e-12))
            self.assertGreaterEqual(found["lambda_max_upper"], true[-1])
            self.assertNotIn("uncertified", repr(found))
            count = found.statistics["directions_1e2"]
            inside = np.sum(np.abs(true) >= np.abs(true).max() / 100)
            self.assertTrue(count.lower <= inside <= count.upper)

    def test_torch(self):
        """A convolution, a gate and a frozen layer: what no description expresses."""
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        torch.manual_seed(0)
        parts = (
            torch.nn.Conv1d(1, 4, 3),
            torch.nn.Linear(8, 24),
            torch.nn.LayerNorm(24),
            torch.nn.Linear(24, 1),
        )
        net = torch.nn.ModuleList(parts)
        net[1].requires_grad_(False)
        x, y = torch.randn(64, 1, 8), torch.randn(64, 1)

        def loss():
            wide = net[0].weight.dtype if x.dtype == torch.float32 else x.dtype
            hidden = net[0](x).flatten(1) * torch.sigmoid(net[1](x.squeeze(1))) + torch.zeros(24, dtype=wide)
            return torch.nn.functional.mse_loss(net[3](torch.sin(net[2](hidden)).float()), y)

        a = kappascope.torch_hessian(loss, net)
        before = [p.detach().clone() for p in net.parameters()]
        trained = [p for p in net.parameters() if p.requires_grad]
        self.assertEqual(a.shape[0], sum(p.numel() for p in trained))
        a.multiply(np.ones(a.shape[0]), exact=True)
        self.assertTrue(all(torch.equal(p, q) for p, q in zip(before, net.parameters())))
        dense = np.stack([a.multiply(e, exact=True) for e in np.eye(a.shape[0])])

        # the same by PyTorch alone, of a float64 copy
        def of(*values):
            names = [name for name, p in net.named_parameters() if p.requires_grad]
            full = {name: p.double() for name, p in net.named_parameters()} | dict(zip(names, values))
            conv = torch.nn.functional.conv1d(x.double(), full["0.weight"], full["0.bias"])
            gate = torch.sigmoid(x.double().squeeze(1) @ full["1.weight"].T + full["1.bias"])
            normed = torch.nn.functional.layer_norm(
                conv.flatten(1) * gate, (24,), full["2.weight"], full["2.bias"]
            )
            return ((torch.sin(normed) @ full["3.weight"].T + full["3.bias"] - y.double()) ** 2).mean()

        values = tuple(p.detach().double() for p in trained)
        blocks = torch.autograd.functional.hessian(of, values)
        sizes = [p.numel() for p in trained]
        expected = np.block(
            [
                [blocks[i][j].reshape(sizes[i], sizes[j]).numpy() for j in range(len(sizes))]
                for i in range(len(sizes))
            ]
        )
        np.testing.assert_allclose(dense, expected, atol=1e-12 * np.abs(expected).max())
        self.compare(a, expected)
        trained[0].data.mul_(1.5)
        with self.assertRaisesRegex(RuntimeError, "found them changed: make a new operator"):
            kappascope.analyze(a)
        with self.assertRaisesRegex(ValueError, "expected tensors that require a gradient"):
            kappascope.torch_hessian(loss, [x])

    def test_torch_another_function(self):
        """Losses that compute something else in float64, or when they are computed again."""
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        net, x = (
            torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)),
            torch.randn(64, 4),
        )
        script = torch.jit.script(net)

        def noisy():
            torch.manual_seed(7)
            out = net(x)
            return (torch.exp(out) * torch.randn_like(out)).mean()

        for loss in (
            noisy,
            lambda: (script(x) ** 2).mean(),
            lambda: (torch.nn.functional.dropout(net(x), 0.5) ** 2).mean(),
        ):
            # compiled, the script never ends in Debian 13's PyTorch 2.6 (LLVM)
            with (
                torch.jit.optimized_execution(False),
                self.assertRaisesRegex(ValueError, "found another one in float64: does the loss draw"),
            ):
                kappascope.analyze(kappascope.torch_hessian(loss, net))

    def test_torch_given_twice(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        z = torch.randn(3, dtype=torch.float64, requires_grad=True)
        a = kappascope.torch_hessian(lambda: (z**2).sum() / 2, [z, z])
        np.testing.assert_allclose(a @ np.eye(3), np.eye(3))
        with self.assertRaisesRegex(ValueError, "on which the loss depends, found none"):
            kappascope.torch_hessian(lambda: (z**2).sum(), torch.nn.Linear(2, 1))

    def test_torch_without_data(self):
        """A log-density: a loss without rows; and a linear loss, whose Hessian is zero."""
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        z = torch.randn(20, dtype=torch.float64, requires_grad=True)
        scale = torch.arange(1.0, 21.0, dtype=torch.float64)
        a = kappascope.torch_hessian(lambda: (z**2 * scale).sum() / 2, [z])
        np.testing.assert_allclose(
            kappascope.analyze(a)["ritz/value"][0][:20], np.arange(1.0, 21.0), rtol=1e-10
        )
        linear = kappascope.torch_hessian(lambda: (z * scale).sum(), [z])
        self.assertIn("zero", repr(kappascope.analyze(linear)))

    def test_torch_writes_within(self):
        """What a loss writes into a tensor that it has made counts in float64, too."""
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        z = torch.randn(3, requires_grad=True)

        def loss():
            made = torch.zeros(2)
            made.scatter_add_(0, torch.tensor([0, 1, 1]), z**2 / 2)
            return made.sum()

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            a = kappascope.torch_hessian(loss, [z])
        dense = np.stack([a.multiply(e, exact=True) for e in np.eye(3)])
        np.testing.assert_allclose(dense, np.eye(3), atol=1e-15)

    def test_jax(self):
        try:
            import jax
        except ImportError:
            self.skipTest("JAX is not installed")
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((40, 5), np.float32), rng.standard_normal(40, np.float32)
        p = {"k": rng.standard_normal((5, 6), np.float32), "b": rng.standard_normal(6, np.float32)}

        def loss(q):
            return ((jax.numpy.sin(x @ q["k"]) @ q["b"] - y) ** 2).mean()

        a = kappascope.jax_hessian(loss, p)
        dense = np.stack([a.multiply(e, exact=True) for e in np.eye(36)])
        k, b = p["k"].astype(float), p["b"].astype(float)
        s, c = np.sin(x @ k), np.cos(x @ k)
        # of the output layer alone: 2 S'S / rows
        np.testing.assert_allclose(dense[:6, :6], 2 * s.T @ s / 40, atol=1e-12)
        np.testing.assert_allclose(dense, dense.T, atol=1e-13)
        error = s @ b - y
        mixed = 2 * (x.T @ (c * s[:, [1]] * b)) / 40
        mixed[:, 1] += 2 * (x.T @ (c[:, 1] * error)) / 40
        np.testing.assert_allclose(dense[1, 6:].reshape(5, 6), mixed, atol=1e-6)
        self.compare(a, dense)


if __name__ == "__main__":
    unittest.main()
