"""ZIP archives: NumPy's .npz with an .npy file for each array, which numpy.lib.format reads, and archives of
other programs."""

from __future__ import annotations

import zipfile
from typing import Any

from numpy.lib import format

from kappascope.names import Array
from kappascope.refusal import fail, first_line
from kappascope.stored import INFLATED, SAVEZ, Stored, Weights, no_surprises, widened
from kappascope.torch_files import open_torch

_npy: Any = format  # which has no types


def _check_size(w: Weights, entry: zipfile.ZipInfo) -> None:
    """Fails unless the bytes that the archive has for an entry can expand to the size that it claims."""
    method, name = entry.compress_type, entry.filename
    if entry.compress_size > w.size:
        fail(f"{w.path}: {name}: cannot be read: the archive gives it more bytes than the file has")
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        fail(
            f"{w.path}: {name}: expected an array that is stored or deflated, as NumPy writes it, found "
            f"the compression method {method}"
        )
    if entry.file_size > entry.compress_size * (INFLATED if method == zipfile.ZIP_DEFLATED else 1):
        fail(
            f"{w.path}: {name}: expected an array that fits into {entry.compress_size} bytes of the "
            f"archive, found a claim of {entry.file_size} bytes"
        )


def _add_npy(w: Weights, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    with archive.open(entry) as file:
        old = _npy.read_magic(file) == (1, 0)
        shape, _, dtype = (_npy.read_array_header_1_0 if old else _npy.read_array_header_2_0)(file)
        values = entry.file_size - file.tell()
    real = dtype.kind == "f" and dtype.itemsize <= 8

    def load() -> Array:
        with archive.open(entry) as file:
            return widened(_npy.read_array(file, allow_pickle=False))

    w.add(Stored(entry.filename.removesuffix(".npy"), dtype.name if real else dtype.str, shape, load), values)


_JIT = (
    "a program of TorchScript, which is not run",
    "where it may run, python3 -c 'import sys, torch; torch.save(torch.jit.load(sys.argv[1]).state_dict(), "
    "sys.argv[2])' {path} WEIGHTS.pt",
)
_EXPORTED = (
    "a program of torch.export",
    "torch.save(torch.export.load(FILE).state_dict, WEIGHTS.pt) in a Python with PyTorch",
)
# Archives of other programs: entries, or parts of their paths, that each has; what it is; and the way out.
_PROGRAMS = [
    (
        "config.json metadata.json",
        "a model of Keras (.keras)",
        "unzip -p {path} model.weights.h5 > model.weights.h5, and import that",
    ),
    (
        "data parameters parameter_list",
        "a model of Stable Baselines 2",
        "unzip -p {path} parameters > parameters.npz, and import that",
    ),
    ("constants.pkl", *_JIT),
    ("code", *_JIT),
    ("serialized_exported_program.json", *_EXPORTED),
    ("archive_format models", *_EXPORTED),
    (".data extern_modules", "a package of torch.package", "torch.save(module.state_dict(), WEIGHTS.pt)"),
]


def open_zip(w: Weights) -> None:
    """An archive of NumPy, or of PyTorch, or Stable-Baselines3's, which has one of PyTorch in it."""
    try:
        archive = zipfile.ZipFile(w.path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        end = "; its end is missing, as in a copy that was not completed" if "not a zip" in str(error) else ""
        fail(f"{w.path}: not a readable ZIP archive (.npz): {first_line(error)}{end}")
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    parts = {part for name in names if not name.endswith(".npy") for part in (name, *name.split("/")[1:])}
    for needed, what, way in _PROGRAMS:
        if set(needed.split()) <= parts:
            fail(f"{w.path}: expected arrays with names, found {what}. Way out: {way.format(path=w.path)}")
    if any(name.endswith("data.pkl") for name in names):
        for entry in entries:
            _check_size(w, entry)
        open_torch(w, w.path, sum(entry.file_size for entry in entries))
        return
    if "policy.pth" in names:
        entry = archive.getinfo("policy.pth")
        _check_size(w, entry)
        w.format = "policy.pth of Stable-Baselines3"
        with no_surprises(f"{w.path}: policy.pth"):
            data = archive.read(entry)
        open_torch(w, data, len(data), "policy.pth")
        return
    w.format = "a NumPy archive"
    for entry in entries:
        if not entry.filename.endswith(".npy"):
            inner = entry.filename.endswith((".npz", ".pt", ".pth", ".safetensors", ".h5", ".msgpack"))
            way = "unzip, and import that" if inner else SAVEZ
            fail(f"{w.path}: expected only .npy files in it, found {entry.filename}. Way out: {way}")
        _check_size(w, entry)
        with no_surprises(f"{w.path}: {entry.filename}"):
            _add_npy(w, archive, entry)
