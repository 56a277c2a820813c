"""Checks checkpoints with h5py, an independent implementation: python3 h5py_checkpoint.py PROGRAM

PROGRAM is build/tests/io/test_checkpoint. Reads a checkpoint that it writes and compares every object with
the table of the file format; then writes a checkpoint, with everything that another framework may do
differently, and lets PROGRAM read it."""

import subprocess
import sys
import tempfile

import h5py
import numpy as np

PARAMETERS = {
    "00_batchnorm/scale": (5,), "00_batchnorm/bias": (5,), "01_dense/kernel": (5, 7),
    "02_layernorm/scale": (7,), "02_layernorm/bias": (7,), "04_dense/kernel": (7, 7),
    "05_layernorm/scale": (7,), "05_layernorm/bias": (7,), "07_dense/kernel": (7, 3),
    "07_dense/bias": (3,)}
STATES = {"00_batchnorm/mean": (5,), "00_batchnorm/var": (5,)}
ACTOR = {
    "00_dense/kernel": (3, 6), "00_dense/bias": (6,), "01_batchnorm/scale": (6,),
    "01_batchnorm/bias": (6,), "01_batchnorm/mean": (6,), "01_batchnorm/var": (6,),
    "03_dense/kernel": (6, 4), "03_dense/bias": (4,)}


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def expect(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")


def check_written(path):
    shapes = {"batch/input": (3, 6, 5), "batch/target": (3, 4, 3), "batch/target_raw": (3, 4, 3),
              "batch/output": (3, 4, 2, 3), "batch/loss": (1,), "batch/gradient_norm": (3,)}
    for group in "critic", "target":
        shapes |= {f"{group}/{name}": (2, *s) for name, s in (PARAMETERS | STATES).items()}
    for group in "optimizer/m", "optimizer/v":
        shapes |= {f"{group}/{name}": (2, *s) for name, s in PARAMETERS.items()}
    shapes |= {f"actor/{name}": (1, *s) for name, s in ACTOR.items()}
    with h5py.File(path) as f:
        found = {}
        f.visititems(lambda name, o: found.update({name: o} if isinstance(o, h5py.Dataset) else {}))
        expect({name: o.shape for name, o in found.items()}, shapes, "datasets")
        for name, o in found.items():
            expect((o.dtype, o.compression, o.shuffle, o.fletcher32),
                   (np.dtype("<f8" if name == "batch/gradient_norm" else "<f4"), "gzip", True, True), name)
            if not np.isfinite(o[()]).all():
                sys.exit(f"{name}: not finite")
        expect(text(f.attrs["format"]), "kappascope-checkpoint", "format")
        expect(int(f.attrs["version"]), 1, "version")
        for group, ensemble in ("critic", 2), ("target", 2), ("actor", 1):
            expect(int(f[group].attrs["ensemble"]), ensemble, f"{group} ensemble")
        expect(text(f["critic"].attrs["arch"]).splitlines()[-1], "loss ce min=-5 max=5", "arch")
        expect(int(f["optimizer"].attrs["step"]), 12345678901, "step")
        expect(list(f.attrs["returns"]), [1, 2.5, -3], "returns")
        expect(text(f.attrs["env"]), "dog-trot", "env")
        expect(f["metrics"].attrs["critic_effective_lr_03"], 1e-7, "metrics")


def check_read(program, path):
    rng = np.random.default_rng(0)
    w = rng.standard_normal((2, 4, 6))
    batch = rng.standard_normal((3, 8, 4))
    target = rng.standard_normal((3, 5))
    with h5py.File(path, "w", userblock_size=512) as f:
        f.attrs["format"] = "kappascope-checkpoint"  # a string of variable length
        f.attrs["version"] = np.uint8(1)
        f.attrs["made_by"] = ["nobody", "knows"]
        f.attrs["seed"] = np.array([3], ">i4")
        f["critic/00_dense/kernel"] = w.astype(">f8")
        f.create_dataset("critic/00_dense/bias", data=np.zeros((2, 6)), dtype="f2")
        f.create_dataset("critic/02_dense/kernel", data=np.ones((2, 6, 1)), maxshape=(None, 6, 1))
        f.create_dataset("critic/02_dense/bias", (2, 1), "f4")  # never written, so zeros
        f["critic"].attrs["arch"] = "dense 6  # hidden\n\nrelu\ndense 1\nloss mse weight=2\n"
        f["critic"].attrs["ensemble"] = np.int8(2)
        f["notes"] = "ignored"
        f.create_dataset("batch/input", data=batch, chunks=(1, 3, 4), compression="gzip")
        f.create_dataset("batch/target", data=target, compression="gzip", fletcher32=True)
    out = subprocess.run([program, "read", path], check=True, stdout=subprocess.PIPE, text=True)
    found = [float(x) for x in out.stdout.split()]
    expect(found, [2, 37, 3, 8, 5, w[0, 0, 1], batch[0, 0, 2], target[0, 3]], "read back")


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], "write", folder + "/c.h5"], check=True, stdout=subprocess.PIPE)
        check_written(folder + "/c.h5")
        check_read(sys.argv[1], folder + "/python.h5")
    print("h5py and KappaScope read each other's checkpoints")


main()
