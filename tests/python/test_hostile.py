"""Files of weights that are damaged or lie: each ends in one line, and what they claim beyond their bytes is
refused before memory is allocated for it.

$KS_MUTATIONS: the number of mutations of each file; make nightly sets more than the default."""

import argparse
import collections
import io
import json
import os
import pickle
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile

import h5py
import numpy as np
from foreign import (
    CE,
    MSE,
    ImportTest,
    flax_array,
    needs,
    pack,
    packed_hdf5,
    packed_msgpack,
    packed_npz,
    packed_safetensors,
    safe,
)

import kappascope
from kappascope.arrays import open_weights
from kappascope.hdf5 import read_hdf5
from kappascope.maps import read_map
from kappascope.refusal import Refused, printable

MUTATIONS = int(os.environ.get("KS_MUTATIONS", 200))
ROOM = 256 << 20  # bytes that reading files of a few KB may take


class TestClaims(ImportTest):
    @needs("safetensors")
    def test_safetensors(self):
        e = self.example(MSE, "f4")
        for entry in (
            {"shape": [2], "data_offsets": [0, 9]},
            {"shape": [2], "data_offsets": [8, 0]},
            {"shape": [3], "data_offsets": [0, 8]},
            {"shape": [1 << 32, 1 << 32], "data_offsets": [0, 8]},
            {"shape": [(1 << 44) + 1], "data_offsets": [0, 8]},
            {"shape": [-1], "data_offsets": [0, 8]},
            {"shape": [True], "data_offsets": [0, 8]},
            3,
        ):
            entry = {"dtype": "F32", **entry} if isinstance(entry, dict) else entry
            e.write_bytes("w.safetensors", safe(json.dumps({"a": entry})))
            self.refused(e, "w.safetensors", "not a readable safetensors file")
        entry = {"dtype": "F32", "shape": [1] * 8 + [2], "data_offsets": [0, 8]}
        e.write_bytes("w.safetensors", safe(json.dumps({"a": entry})))
        self.refused(e, "w.safetensors", "a: expected a shape of at most 8 dimensions")
        for data in (
            safe('{"a":3'),
            safe('{"a":' + "[" * 100000),
            safe('{"a":' + "9" * 9999 + "}"),
            b"\xff" * 8 + b"{}",
            b"abc",
        ):
            e.write_bytes("w.safetensors", data)
            self.refused(e, "w.safetensors", "not a readable safetensors file")
        e.write_bytes("w", safe("[]"))
        self.refused(e, "w", "found something else")

    @needs("msgpack")
    def test_msgpack(self):
        """Claims of many objects in few bytes."""
        e = self.example(MSE, "f4")
        for data in (
            b"\xdf\xff\xff\xff\xff\xa1a\xc0",  # a map of 2^32 - 1 entries
            b"\x81\xa1a\xdd\x10\0\0\0\xc0",  # a list of 2^28
            b"\x81\xa1a\xc6\xff\xff\xff\xff\xc0",  # 4 GiB of bytes
            b"\x81\xa1a\xc1",  # a format that does not exist
            b"\x81\xa1a",  # ends before the value
            b"\x81\xa1a\xc0\xc0",  # goes on behind the object
            b"\x81\xa1a" + b"\x91" * 5000 + b"\xc0",  # too deep
            b"\x81\xa1a"
            + (b"\xdd" + (1 << 16).to_bytes(4, "big")) * 1000
            + bytes(1 << 16),  # 2^16 lists in lists
            b"\x82\xa1a\xc0\xa1a\xc0",  # two entries of one name
            b"\x81\x01\xc0",  # a number in place of a name
        ):
            e.write_bytes("w.msgpack", data)
            self.refused(e, "w.msgpack", "expected a whole dictionary with names")
        for data, words in (
            (b"\x81\xa1a\xc7\x02\x01\x93\xc0", "a: not an array of Flax"),
            (b"\x81\xa1a" * 28 + b"\xc0", "expected at most 24 dictionaries in dictionaries"),
            (pack({"a": (1, pack([[-1], "float32", b""]))}), "a: expected a shape of at most 8 dimensions"),
            (pack({"a": (1, pack([[1] * 9, "float32", bytes(4)]))}), "a: expected a shape of at most 8"),
            (pack({"a": (1, pack([[True], "float32", bytes(4)]))}), "a: expected a shape of at most 8"),
            (pack({"a": (1, pack([[1 << 40], "float32", b""]))}), "a: expected 4398046511104 bytes for"),
            (pack({"a": (1, pack([[1 << 45], "float32", b""]))}), "more numbers than can be addressed"),
        ):
            e.write_bytes("w.msgpack", data)
            self.refused(e, "w.msgpack", words)

    @needs("msgpack")
    def test_chunks_of_msgpack(self):
        """Chunks of two types would be read as one of them."""
        e = self.example()
        chunks = {"0": flax_array(np.zeros(2, "f4")), "1": flax_array(np.zeros(1, "f8"))}
        tree = {"a": {"__msgpack_chunked_array__": True, "shape": {"0": 2}, "chunks": chunks}}
        e.write_bytes("w.msgpack", pack(tree))
        self.refused(e, "w.msgpack", "a: not an array of Flax")

    def archive(self, e, shape, size=None):
        """An archive with one array a, whose header has this shape, and without values."""
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(118)
        with zipfile.ZipFile(e.path("w.npz"), "w") as archive:
            archive.writestr("a.npy", b"\x93NUMPY\1\0\x76\0" + text.encode())
        if size:  # in the list of entries (APPNOTE.TXT of PKWARE, 4.3.12)
            data = bytearray(e.read_bytes("w.npz"))
            at = data.index(b"PK\1\2") + 24
            data[at : at + 4] = size.to_bytes(4, "little")
            e.write_bytes("w.npz", bytes(data))

    def test_npz(self):
        e = self.example()
        self.archive(e, "(2000000000,)")
        self.refused(e, "w.npz", "a: expected 16000000000 bytes for float64")
        for shape in ("(1, 1, 1, 1, 1, 1, 1, 1, 1)", "(-1,)", "(True,)"):
            self.archive(e, shape)
            self.refused(e, "w.npz", "a: expected a shape of at most 8 dimensions")
        for shape in ("((((", "(a,)"):
            self.archive(e, shape)
            self.refused(e, "w.npz", "a.npy: cannot be read: ")
        self.archive(e, "(131072,)", 128 + 8 * 131072)
        self.refused(
            e,
            "w.npz",
            "a.npy: expected an array that fits into 128 bytes of the archive, found a claim of 1048704 "
            "bytes",
        )

    def test_two_arrays_of_one_name(self):
        e = self.example()
        data = io.BytesIO()
        np.save(data, np.zeros(1))
        with zipfile.ZipFile(e.path("w.npz"), "w") as archive:
            archive.writestr("a.npy", data.getvalue())
            with self.assertWarns(UserWarning):
                archive.writestr("a.npy", data.getvalue())
        self.refused(e, "w.npz", "two arrays have the name a")

    def test_hdf5(self):
        """Datasets without values, which take no room in the file, for 2^33 critics."""
        e = self.example(MSE, stacked=True)
        with h5py.File(e.path("w.h5"), "w") as file:
            for name, array in e.files.items():
                file.create_dataset(
                    name, (1 << 33, *array.shape[1:]), "f8", chunks=(1024, *(1 for _ in array.shape[1:]))
                )
        self.refused(e, "w.h5", "expected an array that fits into 0 bytes", options=("--ensemble-axis", "0"))

    def test_numbers_elsewhere(self):
        e = self.example(MSE, "f4")
        with h5py.File(e.path("w.h5"), "w") as file:
            file.create_dataset("a", (3,), "f4", external=[("/etc/passwd", 0, 12)])
        self.refused(e, "w.h5", "expected numbers in this file, found some in another one")

    def test_names_of_hdf5(self):
        """A group without a name: "/" and its path would be the same, so the walk would go in circles. Newer
        versions of HDF5 refuse it themselves."""
        e = self.example()
        with h5py.File(e.path("w.h5"), "w") as file:
            file.create_group("NAMELESS")
        data = e.read_bytes("w.h5")
        self.assertEqual(data.count(b"NAMELESS"), 1)
        e.write_bytes("w.h5", data.replace(b"NAMELESS", bytes(8)))
        self.refused(e, "w.h5")
        said = e.run("w.h5")[2]
        self.assertRegex(said, "w.h5: cannot be read: .*(no name given|invalid link name)")


def mutate(rng, data):
    """The bytes with a random change; sizes and addresses that a reader may trust are among them."""
    data, run = bytearray(data), 64
    at, other = rng.randrange(len(data) - run), rng.randrange(len(data) - run)
    numbers = [0, 1, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 16, (1 << 64) - 1, rng.randrange(1 << 20)]
    value = rng.choice(numbers).to_bytes(8, "little")
    how = rng.randrange(8)
    if how == 0:
        data[at] = rng.randrange(256)
    elif how == 1:
        data[at] ^= 1 << rng.randrange(8)
    elif how in (2, 3):  # most fields are aligned
        data[at // 8 * 8 : at // 8 * 8 + 8] = value
    elif how == 4:
        data[at : at + 4] = value[:4]
    elif how == 5:
        data[at : at + run] = bytes(run)
    elif how == 6:
        data[at : at + run] = data[other : other + run]
    else:
        return bytes(data[:at])
    return bytes(data)


class TestMutations(ImportTest):
    """Opening a file with random bytes changed and reading all that it lists succeeds, or fails with one
    line that names the file; no claim of a size is believed."""

    def read_all(self, path, expected):
        """expected: of an archive with checksums, what is read is what was written."""
        try:
            w = open_weights(path)
        except Refused as error:
            self.assertRegex(printable(str(error)), f"^{path}: [^\n]*$")
            return
        for s in w.arrays:
            try:
                values = w.read(s) if s.real else None
            except Refused as error:
                self.assertRegex(printable(str(error)), f"^{path}: [^\n]*$")
                continue
            if expected and s.name in expected and values is not None:
                np.testing.assert_array_equal(values, expected[s.name])

    def check(self, name, seed, expected=None, count=MUTATIONS):
        e, rng = self.written, random.Random(seed)
        good, bad = e.read_bytes(name), "bad" + name[name.index(".") :]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.read_all(e.path(name), expected)
        for _ in range(count):
            e.write_bytes(bad, mutate(rng, good))
            self.read_all(e.path(bad), expected)
        self.assertLess((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, ROOM)

    def setUp(self):
        super().setUp()
        self.written = self.example(CE, "f4")

    def test_npz(self):
        e = self.written
        for seed, compression in enumerate((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)):
            packed_npz(e.path("good.npz"), e.files, compression)
            self.check("good.npz", seed, e.files)

    @needs("safetensors")
    def test_safetensors(self):
        packed_safetensors(self.written.path("good.safetensors"), self.written.files)
        self.check("good.safetensors", 2)

    @needs("msgpack")
    def test_msgpack(self):
        packed_msgpack(self.written.path("good.msgpack"), self.written.files, 20)
        self.check("good.msgpack", 3)

    def test_hdf5(self):
        """Fewer, since each forks."""
        packed_hdf5(self.written.path("good.h5"), self.written.files)
        self.check("good.h5", 4, count=max(MUTATIONS // 10, 20))

    def test_map(self):
        e, rng = self.written, random.Random(5)
        good = e.read_bytes("m.map")
        for _ in range(MUTATIONS):
            e.write_bytes("bad.map", mutate(rng, good))
            try:
                read_map(e.path("bad.map"))
            except Refused as error:
                self.assertRegex(str(error), f"^{e.path('bad.map')}:")


class TestScout(unittest.TestCase):
    """Each file of HDF5 that somebody hands in is read by a child first."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.h5")
        with h5py.File(self.path, "w") as file:
            file["a"] = 1.0

    def test_a_crash_and_an_endless_read(self):
        parent = os.getpid()
        for number, words in ((signal.SIGSEGV, r"crashes \(signal 11\)"), (signal.SIGXCPU, "an end")):

            def read(file, number=number):
                if os.getpid() != parent:
                    os.kill(os.getpid(), number)
                return file["a"][()]

            with self.assertRaisesRegex(Refused, f"a.h5: the file is damaged: libhdf5 .*{words}"):
                read_hdf5(self.path, read)
            self.assertEqual(read_hdf5(self.path, read, known=True), 1.0)

    def test_what_the_child_cannot_read_is_found_by_the_parent(self):
        with self.assertRaises(KeyError):
            read_hdf5(self.path, lambda file: file["b"])

    def test_limits_that_are_lower(self):
        """A limit that may not be raised stays, and the child reads."""
        code = (
            "import os, resource, sys\n"
            "from kappascope.hdf5 import read_hdf5\n"
            "resource.setrlimit(resource.RLIMIT_CPU, (9, 9))\n"
            "parent = os.getpid()\n"
            "read_hdf5(sys.argv[1], lambda file: os.getpid() == parent or os.abort())\n"
        )
        done = subprocess.run([sys.executable, "-c", code, self.path], capture_output=True, text=True)
        self.assertIn("crashes (signal 6)", done.stderr)

    def test_damaged_files(self):
        files = os.path.join(os.path.dirname(__file__), *[".."] * 3, "shared", "cases", "files", "segv.h5")
        if not os.path.exists(files):
            self.skipTest("no damaged files")
        for load in (kappascope.load_spectrum, lambda path: kappascope.load_vectors(path, {}), open_weights):
            with self.assertRaisesRegex(Refused, "segv.h5: "):
                load(files)

    def test_no_other_place_opens_files(self):
        """Only read_hdf5 opens a file to read it."""
        folder = os.path.dirname(kappascope.__file__)
        found = []
        for name in sorted(name for name in os.listdir(folder) if name.endswith(".py")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found += [(name, line.strip()) for line in file if re.search(r"\bFile\(|h5f\.open", line)]
        self.assertEqual([name for name, _ in found], ["checkpoint.py", "hdf5.py", "hdf5.py"])
        self.assertIn('"w"', found[0][1])


class Executed:
    def __reduce__(self):
        return os.mkdir, ("executed",)


class TestMissingPackages(ImportTest):
    """One line names the file, the package and how to install it."""

    def test_missing(self):
        e = self.example()
        for name, package, words in (
            (
                "a.safetensors",
                "safetensors",
                "python3 -m pip install safetensors, which 'kappascope[import]'",
            ),
            ("a.msgpack", "msgpack", "or install Debian's python3-msgpack"),
            (
                "a.pt",
                "torch",
                "install python3-torch, or convert it where it is: python3 -c 'import sys, torch",
            ),
        ):
            e.write_text(name, "anything")
            with unittest.mock.patch.dict(sys.modules, {package: None}):
                self.refused(e, name, name, words)


@needs("torch")
class TestPyTorch(ImportTest):
    """.pt, .pth and Stable-Baselines3's .zip."""

    def setUp(self):
        super().setUp()
        import torch

        self.torch = torch

    def save(self, e, name, value, **options):
        self.torch.save(value, e.path(name), **options)

    def test_pickles(self):
        e = self.example()
        e.write_bytes("a.bin", pickle.dumps({"a": 1}))
        self.refused(e, "a.bin", "a.bin: expected tensors with names, found a pickle")

    def test_files(self):
        for type in ("f4", "f8"):
            e = self.example(CE, type)
            state = {k: self.torch.from_numpy(np.array(a)) for k, a in e.files.items()}
            self.save(e, "w.pt", state)
            self.imported(e, "w.pt")
            self.save(e, "w.pth", state, _use_new_zipfile_serialization=False)
            self.imported(e, "w.pth")
            with zipfile.ZipFile(e.path("sb3.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(e.path("w.pt"), "policy.pth")
                archive.writestr("data", "{}")
            self.imported(e, "sb3.zip")
            self.save(e, "nested.pt", {"params": state, "step": 3})
            e.write_text(
                "m.map", e.read_bytes("m.map").decode().replace("= q", "= params.q") + "ignore step\n"
            )
            self.imported(e, "nested.pt")

    def test_nothing_is_executed(self):
        e = self.example()
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            for options in ({}, {"_use_new_zipfile_serialization": False}):
                self.save(e, "evil.pt", {"a": Executed()}, **options)
                self.refused(
                    e, "evil.pt", "whose code is not run: posix.mkdir. Way out: torch.save({k: v for"
                )
        finally:
            os.chdir(here)
        self.assertFalse(os.path.exists(e.path("executed")))

    def test_objects_that_are_no_tensors(self):
        """The first is named, and without them the file is read: the way out that the line names."""
        for options in ({}, {"_use_new_zipfile_serialization": False}):
            e, torch = self.example(CE, "f4"), self.torch
            state = collections.OrderedDict((k, torch.from_numpy(np.array(a))) for k, a in e.files.items())
            others = {"size": torch.Size([2]), "cfg": argparse.Namespace(seed=1)}
            self.save(e, "w.pt", {**others, **state}, **options)
            self.refused(e, "w.pt", "is not run: argparse.Namespace. Way out", "torch.is_tensor(v)}, FILE)")
            self.save(
                e, "w.pt", {k: v for k, v in {**others, **state}.items() if torch.is_tensor(v)}, **options
            )
            self.imported(e, "w.pt")

    def test_programs_are_not_run(self):
        """TorchScript, which torch.load runs before 2.6, also inside another archive; archives of tar."""
        e, torch = self.example(), self.torch
        torch.jit.script(torch.nn.Linear(2, 2)).save(e.path("script.pt"))
        self.refused(e, "script.pt", "found a program of TorchScript, which is not run")
        with zipfile.ZipFile(e.path("sb3.zip"), "w") as archive:
            archive.write(e.path("script.pt"), "policy.pth")
        self.refused(e, "sb3.zip", "whose code is not run")
        with tarfile.open(e.path("tar.pt"), "w") as archive:
            for name in ("storages", "tensors", "pickle"):
                entry = tarfile.TarInfo(name)
                data = pickle.dumps(Executed())
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        self.refused(e, "tar.pt", "tar.pt: ")
        self.assertFalse(os.path.exists("executed"))

    def test_mutations(self):
        e, rng = self.example(MSE, "f4"), random.Random(6)
        state = {k: self.torch.from_numpy(np.array(a)) for k, a in e.files.items()}
        for options in ({}, {"_use_new_zipfile_serialization": False}):
            self.save(e, "good.pt", state, **options)
            good = e.read_bytes("good.pt")
            for _ in range(MUTATIONS // 4):
                e.write_bytes("bad.pt", mutate(rng, good))
                TestMutations.read_all(self, e.path("bad.pt"), None)


if __name__ == "__main__":
    unittest.main()
