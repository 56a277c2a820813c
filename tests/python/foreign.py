"""An example critic as the files of another program, with a map and a description, and its import."""

import contextlib
import importlib.util
import io
import json
import os
import shutil
import tempfile
import unittest
import zipfile

import h5py
import numpy as np

from kappascope.description import Description
from kappascope.import_program import main

CE = """batchnorm
repeat 2 {
  dense 7 bias=no project=unit
  layernorm
  relu
}
dense 3 project=unit-kernel
loss ce min=-5 max=5
"""
MSE = "dense 4\nrelu\ndense 1\nloss mse\n"
IN, ENSEMBLE, MINIBATCHES, ROWS, LOSS_ROWS = 5, 2, 3, 6, 4


def packed_npz(path, arrays, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, np.asanyarray(array))
            archive.writestr(f"{name}.npy", data.getvalue())


def bfloat16(array):
    """The bytes of the upper halves of float32 numbers."""
    return (np.asarray(array, "<f4").view("<u4") >> 16).astype("<u2").tobytes()


def packed_safetensors(path, arrays, dtype=None):
    """The header is padded with spaces, as the format allows, so that its length starts the file as a pickle
    starts."""
    words = {"f2": "F16", "f4": "F32", "f8": "F64", "i8": "I64", "i4": "I32"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in arrays.items():
        word = dtype or words[array.dtype.str[1:]]
        more = bfloat16(array) if word == "BF16" else array.astype(array.dtype.newbyteorder("<")).tobytes()
        header[name] = {
            "dtype": word,
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + len(more)],
        }
        data += more
    text = json.dumps(header).encode()
    text = text.ljust((len(text) + 1023) // 1024 * 1024 + 0x80)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def needs(*packages):
    """Skips a test where a package is missing."""
    missing = [name for name in packages if not importlib.util.find_spec(name)]
    return unittest.skipIf(missing, f"no {' '.join(missing)}")


def pack(value):
    """MessagePack of dictionaries, lists, texts, bytes, numbers, True, and (code, bytes), an extension."""
    import msgpack

    return msgpack.packb(value, strict_types=True, default=lambda pair: msgpack.ExtType(*pair))


def flax_array(array):
    return 1, pack([list(array.shape), array.dtype.name, array.tobytes()])


def flax_chunks(array, most):
    """Chunks of `most` numbers, as Flax writes arrays of more than 1 GiB."""
    flat = array.ravel()
    chunks = [flat[i : i + most] for i in range(0, flat.size, most)]
    return {
        "__msgpack_chunked_array__": True,
        "shape": {str(i): d for i, d in enumerate(array.shape)},
        "chunks": {str(i): flax_array(chunk) for i, chunk in enumerate(chunks)},
    }


def packed_msgpack(path, arrays, most=1000):
    """{"params": {NAME: array, ...}, "step": 3}. Arrays of more than `most` numbers are in chunks."""
    leaves = {k: flax_chunks(a, most) if a.size > most else flax_array(a) for k, a in arrays.items()}
    with open(path, "wb") as file:
        file.write(pack({"params": leaves, "step": 3}))


def packed_hdf5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[f"params/{name}"] = array


class Example:
    """A critic of this description with random numbers. arrays: {"00_dense/kernel": [E, in, out]}, and the
    minibatches; `files` are what the other program has."""

    def __init__(self, folder, text=MSE, type="f8", layout="torch", stacked=False):
        rng = np.random.default_rng(13)
        self.folder, self.text, self.type, self.layout, self.stacked = folder, text, type, layout, stacked
        description = Description(text, IN)
        self.arrays, self.files = {}, {}
        for layer in description.layers:
            for name, shape in {**layer.params, **layer.state}.items():
                values = rng.standard_normal((ENSEMBLE, *shape)).astype(type)
                self.arrays[f"{layer.group}/{name}"] = values**2 if name in layer.state else values
        k = description.outputs
        target = rng.standard_normal((MINIBATCHES, LOSS_ROWS, k)) ** 2
        target = target / target.sum(-1, keepdims=True) if k > 1 else target
        self.batch = {
            "input": rng.standard_normal((MINIBATCHES, ROWS, IN)).astype(type),
            "target": (target if k > 1 else target[..., 0]).astype(type),
        }
        self.export()
        self.write_text("a.arch", text)
        source = "q" if stacked else "q*"
        lines = [f"{name} = {source}.{name.replace('/', '.')}" for name in self.arrays]
        self.write_text("m.map", f"# an example\nlayout = {layout}\n" + "\n".join(lines) + "\n")
        self.write()

    def export(self):
        """In the file's order, the last critic comes first: q10, q9."""
        self.files = {}
        for name, values in self.arrays.items():
            values = values.swapaxes(1, 2) if self.layout == "torch" and values.ndim == 3 else values
            name = name.replace("/", ".")
            if self.stacked:
                self.files[f"q.{name}"] = values
            else:
                self.files |= {f"q{9 + e}.{name}": values[e] for e in reversed(range(ENSEMBLE))}

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self):
        packed_npz(self.path("w.npz"), self.files)
        packed_npz(self.path("b.npz"), self.batch, zipfile.ZIP_STORED)

    def write_text(self, name, text, mode="w"):
        with open(self.path(name), mode, encoding="utf-8") as file:
            file.write(text)

    def write_bytes(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def read_bytes(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def extend_map(self, line):
        self.write_text("m.map", line + "\n", "a")

    def move_to_params(self):
        """Puts "params/" in front of the names of m.map."""
        with open(self.path("m.map"), encoding="utf-8") as file:
            text = file.read()
        self.write_text("m.map", text.replace("= q", "= params/q") + "ignore step\n")

    def arguments(self, *weights, options=()):
        """The arguments of an import to c.h5."""
        names = ("a.arch", "m.map", "b.npz", "c.h5")
        files = zip(("--arch", "--map", "--batch", "-o"), names, strict=True)
        words = [word for option, name in files for word in (option, self.path(name))]
        return [*words, *options, *map(self.path, weights)]

    def run(self, *weights, options=()):
        """Exit status, standard output and standard error of an import to c.h5."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(self.arguments(*weights, options=options))
        return status, out.getvalue(), err.getvalue()


class ImportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def example(self, *args, **kwargs):
        return Example(self.folder, *args, **kwargs)

    def imported(self, example, *weights, options=(), wide=None):
        """The import succeeds, and c.h5 holds the arrays of the example in the expected type."""
        status, out, err = example.run(*(weights or ["w.npz"]), options=options)
        self.assertEqual((status, err), (0, ""))
        wide = example.type == "f8" if wide is None else wide
        with h5py.File(example.path("c.h5")) as file:
            found = {f"{g}/{n}": file["critic"][g][n] for g in file["critic"] for n in file["critic"][g]}
            self.assertEqual(set(found), set(example.arrays))
            for name, expected in example.arrays.items():
                self.assertEqual(found[name].dtype, np.float64 if wide else np.float32)
                np.testing.assert_array_equal(found[name][()], expected)
            for name, expected in example.batch.items():
                array = file[f"batch/{name}"][()]
                np.testing.assert_array_equal(array.reshape(expected.shape), expected)
            self.assertEqual(file["critic"].attrs["ensemble"], ENSEMBLE)
            self.assertEqual(file["critic"].attrs["arch"].decode(), example.text)
            self.assertEqual(file.attrs["version"], 2 if "weight" in example.batch else 1)
        os.unlink(example.path("c.h5"))
        return out

    def refused(self, example, weights, *words, options=()):
        """The import fails with one line that has these words, and nothing is written."""
        names = sorted(os.listdir(self.folder))
        status, _, err = example.run(weights, options=options)
        self.assertEqual(status, 2, err)
        self.assertRegex(err, r"\Akappascope-import: [^\n]*\n\Z")
        for word in words:
            self.assertIn(word, err)
        self.assertEqual(sorted(os.listdir(self.folder)), names)


def safe(header):
    """A safetensors file with this text as its header."""
    text = header.encode()
    return len(text).to_bytes(8, "little") + text + bytes(8)
