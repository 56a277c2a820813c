"""Importing a critic: files of other programs give the checkpoint that has the same numbers."""

import importlib.util
import os
import re
import unittest

import h5py
import numpy as np
from foreign import (
    CE,
    ENSEMBLE,
    IN,
    LOSS_ROWS,
    MINIBATCHES,
    MSE,
    ROWS,
    ImportTest,
    needs,
    packed_hdf5,
    packed_msgpack,
    packed_npz,
    packed_safetensors,
)


class TestCritics(ImportTest):
    def test_round_trip(self):
        """Descriptions, layouts and precisions; critics by a wildcard, the last one first in the file."""
        for text in (MSE, CE):
            for type in ("f4", "f8"):
                for layout in ("torch", "flax"):
                    self.imported(self.example(text, type, layout))

    def test_frozen(self):
        """A layer with trainable=no has its own place in the checkpoint."""
        text = "dense 4 trainable=no\nbatchnorm\nrelu\ndense 5\nrelu\ndense 1 trainable=no\nloss mse\n"
        self.imported(self.example(text))

    def test_kinds(self):
        """Convolutions, norms of kernels, containers."""
        self.imported(
            self.example("conv2d 3 size=2 channels=1 height=1 width=5 padding=1\nrelu\ndense 1\nloss mse\n")
        )
        self.imported(
            self.example("dense 4 norm=weight\nresidual {\n  dense 4\n  tanh\n}\ndense 1\nloss mse\n")
        )
        self.imported(self.example("dense 4\nrelu\ndense 3\nloss huber\n"))
        self.imported(self.example("dense 4 norm=spectral\nrelu\ndense 1\nloss mse\n"))
        self.imported(
            self.example(
                "branch {\n  dense 2\n  loss mse\n}\nbranch {\n  dense 3\n  loss quantile\n}\n".replace(
                    "2", "1"
                )
            )
        )

    def test_axes(self):
        """Critics in an axis, and several seeds in an axis in front of it or behind it."""
        for at in (0, 1):
            e = self.example(CE, stacked=True)
            e.files = {k: np.stack([np.zeros_like(a), np.zeros_like(a), a], at) for k, a in e.files.items()}
            e.write()
            self.imported(e, options=("--ensemble-axis", str(1 - at), "--slice", f"{at}:2"))

    def test_last_axis(self):
        """The last axis is another one in vectors [E, d, S] than in matrices [E, rows, columns, S]."""
        e = self.example(CE, stacked=True)
        e.files = {k: np.stack([a, a, a], -1) for k, a in e.files.items()}
        e.write()
        self.refused(
            e,
            "w.npz",
            "q.01_dense.kernel: expected shape [7, 5] for 01_dense/kernel with layout = torch, found [7, 3]",
            options=("--ensemble-axis", "0", "--slice", "2:2"),
        )

    def test_squeezed(self):
        """Biases [E, 1, out] beside kernels [E, out, in], and arrays with more axes of length 1."""
        e, options = self.example(MSE, stacked=True), ("--ensemble-axis", "0")
        for name, axis in (
            ("00_dense.bias", 1),
            ("02_dense.bias", 1),
            ("00_dense.kernel", 3),
            ("02_dense.kernel", 2),
        ):
            e.files[f"q.{name}"] = np.expand_dims(e.files[f"q.{name}"], axis)
        e.write()
        self.imported(e, options=options)
        e.files["q.00_dense.bias"] = e.files["q.00_dense.bias"].reshape(ENSEMBLE, 2, 2)
        e.write()
        self.refused(
            e,
            "w.npz",
            "q.00_dense.bias: expected shape [4] for 00_dense/bias with layout = torch, found [2, 2]",
            options=options,
        )

    def test_axis_of_the_options(self):
        """Critics in an axis without the option: the refusal names it; also a byte order mark is no word."""
        e = self.example(MSE, stacked=True)
        for name in ("a.arch", "m.map"):
            e.write_bytes(name, b"\xef\xbb\xbf" + e.read_bytes(name))
        words = "found [2, 4, 5]: if axis 0 has several critics, --ensemble-axis 0; if it has several seeds"
        self.refused(e, "w.npz", words, "--slice 0:INDEX")
        e.text = MSE
        self.imported(e, options=("--ensemble-axis", "0"))
        e.files = {k: np.stack([a, a, a], 1) for k, a in e.files.items()}
        e.write()
        words = "found [2, 3, 4, 5]: if axis 0 has several critics, --ensemble-axis 0 --slice 1:INDEX, or"
        self.refused(e, "w.npz", words)
        words = "found [3, 4, 5]: if axis 1 has several critics, --ensemble-axis 1"
        self.refused(e, "w.npz", words, options=("--slice", "0:1"))

    def test_files(self):
        """One file for each critic."""
        e = self.example()
        for i in range(ENSEMBLE):
            packed_npz(e.path(f"w{i}.npz"), {k: a for k, a in e.files.items() if k.startswith(f"q{9 + i}.")})
        self.imported(e, "w0.npz", "w1.npz")

    def test_types(self):
        """Half precision, bytes and axes in the other order: the same numbers."""
        for type in ("<f2", ">f2", ">f4", ">f8"):
            e = self.example()
            for arrays in (e.arrays, e.batch):
                for k, a in arrays.items():
                    i = np.arange(a.size).reshape(a.shape)
                    arrays[k] = (1 + i % 100 / 128) * np.where(i % 3, 1, -2)  # representable everywhere
            e.export()
            same = e.batch
            e.batch = {k: np.asfortranarray(a.astype(type)) for k, a in same.items()}
            e.files = {
                k: np.asarray(a, type, order="F" if i % 2 else "C")
                for i, (k, a) in enumerate(e.files.items())
            }
            e.write()
            e.batch = same
            self.imported(e, wide=type == ">f8")

    @needs("safetensors")
    def test_half_of_safetensors(self):
        """bfloat16 and float16."""
        for dtype, type in (("BF16", "f4"), ("F16", "f2")):
            e = self.example(MSE, "f4")
            e.arrays = {k: np.full_like(a, -1.5) for k, a in e.arrays.items()}
            e.export()
            packed_safetensors(
                e.path("w.safetensors"), {k: a.astype(type) for k, a in e.files.items()}, dtype
            )
            self.imported(e, "w.safetensors")

    def test_listing(self):
        e = self.example(MSE, "f4")
        out = self.imported(e)
        self.assertIn(f"{e.path('w.npz')}: a NumPy archive, 8 arrays\n", out)
        self.assertIn(
            "taken      q9.00_dense.kernel float32 [4, 5] -> 00_dense/kernel [5, 4], transposed, source 1 "
            "of 2\n",
            out,
        )
        self.assertIn("nothing was compared", out)
        self.assertTrue(
            out.endswith("c.h5: 2 critics of 29 parameters, 3 minibatches of 6 rows, in float32\n")
        )
        self.assertEqual(self.imported(e, options=("--quiet",)), "")


class TestFormats(ImportTest):
    WRITERS = {"w.safetensors": packed_safetensors, "w.npz": packed_npz, "w.h5": packed_hdf5}
    WRITERS |= {"w.msgpack": packed_msgpack, "chunks.msgpack": lambda *what: packed_msgpack(*what, 3)}

    def check(self, name):
        """All arrays, and integers where real numbers are expected."""
        for type in ("f4", "f8"):
            e = self.example(CE, type)
            if name.endswith((".msgpack", ".h5")):
                e.move_to_params()
            self.WRITERS[name](e.path(name), e.files)
            self.imported(e, name)
        e.files["q9.01_dense.kernel"] = e.files["q9.01_dense.kernel"].astype("i4")
        self.WRITERS[name](e.path(name), e.files)
        words = "q9.01_dense.kernel: expected real numbers for 01_dense/kernel, found "
        self.refused(e, name, words + ("<i4" if name == "w.npz" else "int32"))

    @needs("safetensors")
    def test_safetensors(self):
        self.check("w.safetensors")

    @needs("msgpack")
    def test_msgpack(self):
        self.check("w.msgpack")
        self.check("chunks.msgpack")

    def test_npz(self):
        self.check("w.npz")

    def test_hdf5(self):
        self.check("w.h5")

    def test_links_of_hdf5(self):
        e = self.example(CE)
        e.move_to_params()
        packed_hdf5(e.path("soft.h5"), e.files)
        with h5py.File(e.path("soft.h5"), "r+") as file:
            file.move("params", "moved")
            file["params"] = h5py.SoftLink("/moved")
            file["dangling"] = h5py.SoftLink("/nowhere")
        e.extend_map("ignore moved/**")
        self.imported(e, "soft.h5")
        for link, words in (
            (h5py.ExternalLink("/etc/passwd", "/a"), "found an external link"),
            (h5py.SoftLink("/"), "arrays unused"),
        ):
            packed_hdf5(e.path("w.h5"), e.files)
            with h5py.File(e.path("w.h5"), "r+") as file:
                file["params/again"] = link
            self.refused(e, "w.h5", words)

    def test_circle_of_hdf5(self):
        """A group that has itself in it is visited once."""
        e = self.example(CE)
        e.move_to_params()
        packed_hdf5(e.path("w.h5"), e.files)
        with h5py.File(e.path("w.h5"), "r+") as file:
            file["params/again"] = file["/"]
        self.imported(e, "w.h5")


class TestBatches(ImportTest):
    def test_targets_of_each_critic(self):
        e = self.example()
        e.batch["target"] = (
            np.arange(MINIBATCHES * LOSS_ROWS * ENSEMBLE).reshape(MINIBATCHES, LOSS_ROWS, ENSEMBLE, 1) / 7
        )
        e.write()
        self.imported(e)
        e.batch["target"] = e.batch["target"].swapaxes(2, 3)
        e.write()
        self.refused(e, "w.npz", "each critic [3, rows, 2, 1]")

    def test_weight(self):
        e = self.example()
        e.batch["weight"] = np.arange(MINIBATCHES * LOSS_ROWS).reshape(MINIBATCHES, LOSS_ROWS) / 7
        e.write()
        self.imported(e)
        e.batch["weight"][1, 1] = -1
        e.write()
        self.refused(e, "w.npz", "b.npz: weight: row 1 of minibatch 1: expected")
        e.batch["weight"] = e.batch["weight"].T
        e.write()
        self.refused(e, "w.npz", "weight: expected [3, 4], found float64 [4, 3]")

    def test_results(self):
        """Results of the other program are stored; wrong ones, and a square kernel in the other layout, are
        refused."""
        e = self.example("dense 5\nrelu\ndense 1\nloss mse\n")
        w = {k: a.astype("f8") for k, a in e.arrays.items()}
        hidden = np.einsum("nri,eio->nreo", e.batch["input"], w["00_dense/kernel"]) + w["00_dense/bias"]
        active = np.maximum(hidden, 0)
        output = np.einsum("nrei,eio->nreo", active, w["02_dense/kernel"]) + w["02_dense/bias"]
        d = (output[:, :LOSS_ROWS, :, 0] - e.batch["target"][..., None]) / LOSS_ROWS
        back = d[..., None] * w["02_dense/kernel"][:, :, 0] * (hidden[:, :LOSS_ROWS] > 0)
        x, active = e.batch["input"][:, :LOSS_ROWS], active[:, :LOSS_ROWS]
        gradient = [
            np.einsum("nre,nrei->nei", d, active),
            d.sum(1),
            np.einsum("nri,nreo->neio", x, back),
            back.sum(1),
        ]
        norm = np.sqrt(sum((g[0] ** 2).sum() for g in gradient))
        loss = 0.5 * (d**2).sum((1, 2)) * LOSS_ROWS
        e.batch |= {"output": output, "loss": loss.astype("f4"), "gradient_norm": np.array([norm])}
        e.write()
        self.assertIn("b.npz: loss: equal to what is computed here, up to rounding\n", self.imported(e))
        e.batch["gradient_norm"] = e.batch["gradient_norm"] * (1 + 1e-6)
        e.write()
        self.refused(e, "w.npz", "b.npz: gradient_norm: minibatch 0")
        e.batch["gradient_norm"] = e.batch["gradient_norm"][:, None]
        e.write()
        self.refused(
            e, "w.npz", "gradient_norm: expected [3], or those of the first minibatch alone, found [1, 1]"
        )
        e.batch["gradient_norm"] = np.array([norm])
        e.batch["output"] = output.reshape(MINIBATCHES, 1, ENSEMBLE * ROWS, 1)
        e.write()
        self.refused(
            e, "w.npz", "output: expected [3, 6, 2, 1], or those of the first minibatch alone, found"
        )
        e.batch["output"] = output
        for q in ("q9", "q10"):
            e.files[f"{q}.02_dense.kernel"] = e.files[f"{q}.02_dense.kernel"].T
        e.write()
        with open(e.path("m.map"), encoding="utf-8") as file:
            text = file.read()
        e.write_text("m.map", text.replace("torch", "flax"))
        self.refused(e, "w.npz", "b.npz: output: minibatch 0, row 0")

    def test_columns(self):
        e = self.example()
        self.assertEqual(e.batch["input"].shape[-1], IN)
        os.unlink(e.path("b.npz"))
        self.refused(e, "w.npz", "b.npz: cannot be opened")


class AdamTest(ImportTest):
    """Adam's moments, for two critics, in the layout of the weights."""

    def moments(self, layout="torch", step=None):
        """An example whose file has moments too, named by the place of the parameter in the optimizer."""
        example = self.example(layout=layout)
        self.sources = {}
        names = list(example.files)
        for i, name in enumerate(names):
            self.sources[name] = i
            example.files[f"o.{i}.exp_avg"] = -0.1 * example.files[name]
            example.files[f"o.{i}.exp_avg_sq"] = example.files[name] ** 2
            example.files[f"o.{i}.step"] = np.array(70.0 if step is None else step[i])
        example.write()
        example.extend_map("adam = 0.9 0.99 1e-7\nadam/step = o.*.step")
        for name in example.arrays:
            own = [self.sources[f"q{9 + e}.{name.replace('/', '.')}"] for e in range(ENSEMBLE)]
            example.extend_map(f"adam/m/{name} = " + " ".join(f"o.{i}.exp_avg" for i in own))
            example.extend_map(f"adam/v/{name} = " + " ".join(f"o.{i}.exp_avg_sq" for i in own))
        return example

    def test_moments(self):
        for layout in ("torch", "flax"):
            example = self.moments(layout)
            listing = self.imported_with_moments(example)
            self.assertIn("taken      o.0.step float64 [] -> adam/step", listing)
            example.extend_map("ignore o.*.step")
            with open(example.path("m.map"), encoding="utf-8") as file:
                text = file.read()
            example.write_text("m.map", text.replace("= o.*.step", "= 70"))
            self.imported_with_moments(example)

    def test_integer_steps(self):
        """As optax counts them."""
        packers = {packed_npz: "", packed_hdf5: "params/"}
        if importlib.util.find_spec("msgpack"):
            packers[packed_msgpack] = "params/"
        for pack, prefix in packers.items():
            example = self.moments(step=np.full(8, 70, np.int32))
            pack(example.path("w.npz"), example.files)
            if prefix:
                with open(example.path("m.map"), encoding="utf-8") as file:
                    text = re.sub(r"(?<= )(?=[qo]\W|[qo][0-9*])", prefix, file.read())
                example.write_text("m.map", text + ("ignore step\n" if pack is packed_msgpack else ""))
            self.imported_with_moments(example)

    def imported_with_moments(self, example):
        status, out, err = example.run("w.npz")
        self.assertEqual((status, err), (0, ""))
        with h5py.File(example.path("c.h5")) as file:
            self.assertEqual(set(file["optimizer"].attrs), {"step", "beta1", "beta2", "eps"})
            self.assertEqual(dict(file["optimizer"].attrs), dict(step=70, beta1=0.9, beta2=0.99, eps=1e-7))
            for name, expected in example.arrays.items():
                np.testing.assert_array_equal(file[f"critic/{name}"][()], expected)
                np.testing.assert_array_equal(file[f"optimizer/m/{name}"][()], -0.1 * expected)
                np.testing.assert_array_equal(file[f"optimizer/v/{name}"][()], expected**2)
        os.unlink(example.path("c.h5"))
        return out

    def test_one_row(self):
        """Warned of as by save; -q warns of nothing."""
        example = self.example(CE)
        example.batch = {key: array[:, :1] for key, array in example.batch.items()}
        example.write()
        status, _, err = example.run("w.npz")
        self.assertEqual(status, 0)
        words = "batch normalization over minibatches of one row: the outputs do not depend on the inputs"
        self.assertEqual(err, f"kappascope-import: {example.path('b.npz')}: {words}\n")
        self.assertEqual(example.run("w.npz", options=["-q"])[2], "")
        self.assertEqual(self.example().run("w.npz")[2], "")

    def test_refused_moments(self):
        example = self.moments(step=[70, 70, 70, 71, 70, 70, 70, 70])
        self.refused(example, "w.npz", "adam/step: expected one number of steps from 1, found 70, 71")
        example = self.moments(step=[0.0] * 8)
        self.refused(example, "w.npz", "expected one number of steps from 1, found 0")
        example = self.moments()
        with open(example.path("m.map"), encoding="utf-8") as file:
            text = file.read()
        lines = [line for line in text.splitlines() if not line.startswith("adam/v/02_dense/bias")]
        example.write_text("m.map", "\n".join(lines))
        self.refused(example, "w.npz", "2 arrays unused, 1 missing")
        for line, word in (
            ("adam = 0.9 0.99 1e-7", "expected a line 'adam = BETA1 BETA2 EPS'"),
            ("adam/step = o.*.step", "expected a line 'adam/step = STEPS'"),
        ):
            example.write_text("m.map", text.replace(line, ""))
            self.refused(example, "w.npz", word)
        for values in ("0.9 0.99", "0.9 x 1e-8", "0.9 1 1e-8", "0.9 0.99 0", "nan 0.9 1e-8"):
            example.write_text("m.map", text.replace("0.9 0.99 1e-7", values))
            self.refused(
                example, "w.npz", f"'adam = BETA1 BETA2 EPS', such as 0.9 0.999 1e-8, found '{values}'"
            )
        example.write_text("m.map", "layout = torch\nadam = 0.9 0.99 1e-8\n")
        self.refused(example, "w.npz", "expected a line 'adam/step = STEPS', since others are about Adam's")
        example.write_text("m.map", text)
        example.files["o.0.exp_avg_sq"] = -example.files["o.0.exp_avg_sq"]
        example.write()
        self.refused(example, "w.npz", "/optimizer/v")


if __name__ == "__main__":
    unittest.main()
