"""What `kappascope import` refuses, its messages and options, and what stays when an import ends early."""

import fcntl
import os
import pickle
import signal
import stat
import subprocess
import sys
import time
import unittest
import unittest.mock
import zipfile

import numpy as np
from foreign import CE, ImportTest, needs, packed_npz


class TestRefusals(ImportTest):
    def test_shapes(self):
        e = self.example()
        kernel = e.files["q9.00_dense.kernel"]
        e.files["q9.00_dense.kernel"] = kernel.T
        e.write()
        self.refused(
            e,
            "w.npz",
            "q9.00_dense.kernel: expected shape [4, 5] for 00_dense/kernel with layout = torch, found [5, "
            "4], as the other layout has it",
        )
        e.files["q9.00_dense.kernel"] = kernel.ravel()
        e.write()
        self.refused(e, "w.npz", "layout = torch, found [20]\n")

    def test_types(self):
        """Integers where real numbers belong, and what else is not a real number."""
        e = self.example()
        bias = e.files["q9.00_dense.bias"]
        for type in ("i8", "?", "O", "c16", "U3", [("a", "f4")]):
            e.files["q9.00_dense.bias"] = (
                bias.astype(type) if not isinstance(type, list) else np.zeros(4, type)
            )
            e.write()
            self.refused(e, "w.npz", "q9.00_dense.bias: expected real numbers for 00_dense/bias, found")
        e.files["q9.00_dense.bias"] = np.array([0, np.nan, 0, 0])
        e.write()
        self.refused(e, "w.npz", "expected finite numbers, found nan at element 1")
        e.files["q9.00_dense.bias"] = bias
        e.batch["target"] = e.batch["target"].astype(int)
        e.write()
        self.refused(e, "w.npz", "b.npz: target: expected real numbers, found")

    def test_statistics(self):
        e = self.example(CE, layout="flax")
        e.files["q9.00_batchnorm.var"] = np.array([1, 1, -1, 1, 1.0])
        e.write()
        self.refused(e, "w.npz", "00_batchnorm.var: expected variances, found -1 at element 2")
        e.export()
        e.batch["target"][0, 0, 0] += 1
        e.write()
        self.refused(e, "w.npz", "b.npz: target: row 0 of minibatch 0: expected")

    def test_batch(self):
        e = self.example()
        x, t = e.batch["input"], e.batch["target"]
        for batch, words in (
            (
                {"input": x, "target": t[[0, 1, 2, 0]]},
                "b.npz: target: expected [3, rows, 1] or without the last",
            ),
            ({"input": x.reshape(3, -1), "target": t}, "input: expected [minibatches, rows, inputs]"),
            ({"input": x, "targets": t}, "targets: expected no arrays but"),
            ({"input": x}, "expected an array target, found none"),
            ({"input": x[:0], "target": t}, "input: expected 1 to 1073741824 in each dimension, found 0"),
        ):
            packed_npz(e.path("b.npz"), batch)
            self.refused(e, "w.npz", words)

    def test_other_files(self):
        e = self.example()
        e.write_text("a.txt", "text")
        self.refused(e, "a.txt", "expected a file of safetensors")
        self.refused(e, "none.npz", "cannot be opened")
        self.refused(e, "", "found a folder")

    def test_archives(self):
        e = self.example()
        with zipfile.ZipFile(e.path("m.keras"), "w") as archive:
            for name in ("config.json", "metadata.json", "model.weights.h5"):
                archive.writestr(name, "{}")
        self.refused(e, "m.keras", "a model of Keras (.keras). Way out: unzip")
        with zipfile.ZipFile(e.path("s.pt"), "w") as archive:
            for name in ("s/data.pkl", "s/constants.pkl", "s/code/__torch__.py"):
                archive.writestr(name, "x")
        self.refused(e, "s.pt", "a program of TorchScript, which is not run. Way out")
        for names, words in (
            ("data policy.pth pytorch_variables.pth", ("m.zip: policy.pth: ",)),
            ("data parameters parameter_list", ("Stable Baselines 2", "unzip -p")),
            ("m/archive_format m/models/model.json", ("torch.export",)),
            ("p/.data/version p/.data/extern_modules p/a.py", ("torch.package",)),
            ("run/weights.npz", ("found run/weights.npz. Way out: unzip",)),
            ("weights.bin", ("expected only .npy files in it, found weights.bin. Way out: numpy.savez",)),
        ):
            with zipfile.ZipFile(e.path("m.zip"), "w") as archive:
                for name in names.split():
                    archive.writestr(name, "x")
            self.refused(e, "m.zip", *words)
        np.savez(e.path("own.npz"), **{"params/code/kernel": np.ones(3)})  # a layer of this name
        self.refused(e, "own.npz", "params/code/kernel")

    def test_contents(self):
        e = self.example()
        for data, words in (
            (b"\x93NUMPY\1\0", "a single array of NumPy (.npy). Way out: numpy.savez"),
            (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
            (b"", "found an empty file"),
            (b"BZh9", "a file that bzip2 compressed"),
            (e.read_bytes("w.npz")[:-40], "its end is missing"),
            (pickle.dumps({"w": np.ones(3)}), "found a pickle, whose code is not run. Way out: numpy.savez"),
        ):
            e.write_bytes("w.pt", data)
            self.refused(e, "w.pt", words)

    def test_folders_and_names(self):
        e = self.example()
        for name, words in (
            ("others/3/default/deeper/_METADATA", "found a folder with 3 in it"),
            ("orbax/3/default/_METADATA", "found a folder of Orbax. Way out"),
            ("zarr/params.Dense_0.kernel/.zarray", "found a folder of Orbax. Way out"),
            ("tf/saved_model.pb", "found a folder of TensorFlow"),
            ("tf2/ckpt-1.index", "found a folder of TensorFlow. Way out"),
            ("dcp/__0_0.distcp", "dcp_to_torch_save"),
        ):
            os.makedirs(os.path.dirname(e.path(name)), exist_ok=True)
            e.write_text(name, "{}")
            self.refused(e, name.split("/")[0], words)

        for name, words in (
            ("tf2/ckpt-1.index", "a part of a checkpoint of TensorFlow"),
            ("tf2/ckpt-1", "the prefix of a checkpoint of TensorFlow"),
            ("m.onnx", "a model of ONNX. Way out"),
            ("m.eqx", "arrays of Equinox, which have no names"),
        ):
            if not os.path.exists(e.path(name)) and name != "tf2/ckpt-1":
                e.write_text(name, "x")
            self.refused(e, name, words)

    def test_pipes(self):
        """A pipe without a writer is refused, and not waited for."""
        e = self.example()
        for name in ("a.arch", "m.map", "b.npz", "w.npz"):
            os.rename(e.path(name), e.path("kept"))
            os.mkfifo(e.path(name))
            self.refused(e, "w.npz", f"{name}: expected a regular file")
            os.replace(e.path("kept"), e.path(name))

    def test_abandoned(self):
        """What a killed import has left is removed by the next one, what another one works with is not."""
        e = self.example()
        for name in ("old", "new"):
            os.mkdir(e.path(f".kappascope-import-{name}"))
            e.write_text(f".kappascope-import-{name}/lock", "")
        with open(e.path(".kappascope-import-new/lock")) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.imported(e)
        found = [name for name in os.listdir(self.folder) if name.startswith(".kappascope")]
        self.assertEqual(found, [".kappascope-import-new"])

    def test_no_processes(self):
        """A program that cannot be started is a line of our own (ulimit -u)."""
        e = self.example()
        with unittest.mock.patch("subprocess.Popen", side_effect=BlockingIOError(11, "no")):
            status, _, err = e.run("w.npz")
        self.assertEqual((status, err.count("\n")), (1, 1))
        self.assertIn("(ulimit -u)", err)

    @needs("msgpack")
    def test_surrogates(self):
        """Names in a file that are no text."""
        e = self.example()
        e.write_bytes("w.msgpack", b"\x81\xa1\xff\xc7\x02\x01\x93\xc0")
        self.refused(e, "w.msgpack", "\\xff: not an array of Flax")

    def test_control_characters(self):
        e = self.example()
        e.files["a\x1b[2J\n"] = np.zeros(1)
        e.write()
        self.refused(e, "w.npz", "a\\x1b[2J\\x0a float64 [1]")

    def test_inputs_stay(self):
        e = self.example()
        os.rename(e.path("w.npz"), e.path("c.h5"))
        before = e.read_bytes("c.h5")
        self.refused(e, "c.h5", "the checkpoint would replace this input")
        self.assertEqual(e.read_bytes("c.h5"), before)

    def test_an_older_checkpoint_stays(self):
        e = self.example()
        e.write_text("c.h5", "older")
        e.files.pop("q9.00_dense.bias")
        e.write()
        self.refused(e, "w.npz", "matches 1 arrays, but")
        self.assertEqual(e.read_bytes("c.h5"), b"older")

    def test_a_folder_that_does_not_exist(self):
        e = self.example()
        words = "none/c.h5: cannot be created: there is no folder "
        self.refused(e, "w.npz", words, options=("-o", e.path("none/c.h5")))

    @staticmethod
    def default_signals():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    def test_signals(self):
        """An import that a signal ends leaves nothing behind, and its processes end, too."""
        e = self.example()
        programs = os.environ["KAPPASCOPE_PROGRAMS"]
        os.mkdir(e.path("programs"))
        os.symlink(os.path.join(programs, "kappascope"), e.path("programs/kappascope"))
        os.symlink(os.path.join(programs, "..", "lib"), e.path("lib"))
        e.write_text("programs/kappascope-analyze", '#!/bin/sh\necho $$ >"${0%/*}/id"\nexec sleep 1000\n')
        os.chmod(e.path("programs/kappascope-analyze"), 0o755)
        names = sorted(os.listdir(self.folder))
        command = [sys.executable, "-m", "kappascope.import_program", "--quiet", *e.arguments("w.npz")]
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            environment = {**os.environ, "KAPPASCOPE_PROGRAMS": e.path("programs")}
            # What runs in the background of a script ignores SIGINT, and so would the import.
            process = subprocess.Popen(command, env=environment, preexec_fn=self.default_signals)
            while not os.path.exists(e.path("programs/id")) or not e.read_bytes("programs/id"):
                self.assertIsNone(process.poll(), "the import ended early")
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual(process.wait(), -number)
            self.assertEqual(sorted(os.listdir(self.folder)), names)
            while os.path.exists(f"/proc/{int(e.read_bytes('programs/id'))}"):  # until init has waited for it
                time.sleep(0.01)
            os.unlink(e.path("programs/id"))

    def test_what_is_no_file_is_not_replaced(self):
        e = self.example()
        os.mkfifo(e.path("fifo"))
        os.mkdir(e.path("folder"))
        for name, words in (("fifo", "it exists and is a special file"), ("folder", "found a folder")):
            self.refused(e, "w.npz", f"{name}: cannot be created: ", words, options=("-o", e.path(name)))
        self.assertTrue(stat.S_ISFIFO(os.stat(e.path("fifo")).st_mode))

    def test_options(self):
        e = self.example()
        for options, words in (
            (("--slice", "0"), "--slice: expected AXIS:INDEX, such as 0:3, found '0'"),
            (("--ensemble-axis", "8"), "--ensemble-axis: expected an integer from 0 to 7, found '8'"),
            (("--ensemble-axis", "1", "--slice", "1:0"), "expected two axes, both are 1"),
            (("--foo",), "option --foo not recognized (see --help)"),
            (("--foo=1",), "option --foo not recognized (see --help)"),
            (("-qx",), "option -x not recognized (see --help)"),
            (("-1",), "option -1 not recognized (see --help)"),
            (("--quiet=1",), "option --quiet must not have an argument (see --help)"),
            (("--slice", "-1:2"), "--slice: expected AXIS:INDEX, such as 0:3, found '-1:2'"),
            (("--", "-q"), "-q: cannot be opened: No such file or directory"),
            (("--output=",), "cannot be created: expected the name of a file, found a folder"),
            (("--ensemble-axis", "3"), "expected critics in axis 3 (--ensemble-axis)"),
        ):
            self.refused(
                e, "w.npz", *([] if words.startswith("expected critics") else [words]), options=options
            )
