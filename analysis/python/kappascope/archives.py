"""ZIP archives: NumPy's .npz with an .npy file for each array (numpy/lib/format.py, versions 1.0 to 3.0),
and files of PyTorch, which torch.save writes. They are read with weights_only=True, so that nothing in them
is executed."""

from __future__ import annotations

import contextlib
import io
import os
import pickletools
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kappascope.names import Array
from kappascope.refusal import fail, first_line
from kappascope.stored import (
    DEEPEST,
    INFLATED,
    LONGEST_NAME,
    MOST_DIMS,
    Stored,
    Weights,
    from_bytes,
    limited_memory,
    no_surprises,
)

_PAIR = re.compile(
    r"""\s*(['"])(\w+)\1\s*:\s*(?:(['"])([^'"]*)\3|(True|False)|\(([\d\s,]*)\)|(\[))\s*,?\s*"""
)


def _npy_header(text: str) -> tuple[str, str, tuple[int, ...]] | None:
    """(descr, "F" or "C", shape), or None if it is not as NumPy writes it."""
    text = text.strip()
    descr = order = shape = None
    at = 1
    while at < len(text) - 1:
        pair = _PAIR.match(text, at)
        if not pair:
            return None
        key, quoted, word, numbers, structure = pair.group(2, 4, 5, 6, 7)
        if key == "descr" and structure:
            return "structured", "C", ()
        if key == "descr" and quoted is not None:
            descr = quoted
        elif key == "fortran_order" and word:
            order = "F" if word == "True" else "C"
        elif key == "shape" and numbers is not None and len(numbers) < LONGEST_NAME:
            shape = tuple(int(n) for n in numbers.replace(",", " ").split())
        else:
            return None
        at = pair.end()
    if (
        descr is None
        or order is None
        or shape is None
        or text[:1] + text[-1:] != "{}"
        or len(shape) > MOST_DIMS
    ):
        return None
    return descr, order, shape


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


def _open_npy(w: Weights, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a second line, about entries that overlap
        file = archive.open(entry)
    with file:
        start = file.read(10)
        if len(start) < 10 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3) or start[7] != 0:
            fail(f"{w.path}: {name}: cannot be read: expected an .npy file of version 1 to 3")
        more = file.read(2) if start[6] > 1 else b""
        if any(more):
            fail(f"{w.path}: {name}: cannot be read: its header is longer than 65535 bytes")
        length = int.from_bytes(start[8:10], "little")
        text = file.read(length)
    header = _npy_header(text.decode("latin-1"))
    if len(text) < length or not header:
        fail(
            f"{w.path}: {name}: expected a header as NumPy writes it, with at most {MOST_DIMS} dimensions"
            + (", found that it ends too early" if len(text) < length else "")
        )
    descr, order, shape = header
    skip = len(start) + len(more) + length
    type = {"f2": "float16", "f4": "float32", "f8": "float64"}.get(descr[1:], "") if descr[0] in "<>" else ""

    def load() -> Array:
        with archive.open(entry) as file:
            file.read(skip)
            data = file.read()  # to its end, where the checksum is compared
        return from_bytes(data, type or descr, shape, order, descr[0] == ">")

    w.add(Stored(name.removesuffix(".npy"), type or descr, shape, load), entry.file_size - skip)


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
    parts = {part for name in names for part in (name, *name.split("/")[1:])}
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
            way = "numpy.savez(FILE.npz, **arrays) in the program that wrote it"
            if entry.filename.endswith((".npz", ".pt", ".pth", ".safetensors", ".h5", ".msgpack")):
                way = "unzip, and import that"
            fail(f"{w.path}: expected only .npy files in it, found {entry.filename}. Way out: {way}")
        _check_size(w, entry)
        with no_surprises(f"{w.path}: {entry.filename}"):
            _open_npy(w, archive, entry)


# --- PyTorch ---

_CONVERT = (
    "python3 -c 'import sys, torch, numpy; numpy.savez(sys.argv[2], **{{k: v.numpy() for k, v in "
    'torch.load(sys.argv[1], map_location="cpu", weights_only=True).items()}})\' {path} {stem}.npz'
)

# What the pickle of a dictionary of tensors names.
_TENSORS = re.compile(
    r"torch\.(_utils\._rebuild|storage\.|\w*Storage$|Size$|b?float|u?int|bool)|collections\.Ord"
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

_LEGACY = b"l\xfc\x9cF\xf9 j\xa8P\x19"  # the number with which files of torch.save before version 1.6 begin


@contextmanager
def _no_programs(torch: Any) -> Iterator[None]:
    """Before version 2.6, torch.load runs TorchScript even with weights_only=True. (It unpacks archives of
    tar, too, but only from files with a descriptor; here it is given bytes.)"""

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("weights_only=True: it is a program of TorchScript")

    kept, torch.jit.load = torch.jit.load, refuse
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.jit.load = kept


def open_torch(w: Weights, source: Any, size: int, entry: str = "") -> None:
    """source: a path, or the bytes of a file, which is this entry of an archive."""
    w.format, path = w.format or "PyTorch", w.path
    where = f"{path}: {entry}" if entry else path
    unzip = f"unzip -p {path} {entry} > {entry}; " if entry else ""
    if isinstance(source, str):
        with open(source, "rb") as file:
            source = file.read()
    if source[:1] == b"\x80" and _LEGACY not in source[:64]:
        fail(
            f"{where}: expected tensors with names, found a pickle, whose code is not run. Way out: "
            "numpy.savez(FILE.npz, **arrays) in the program that wrote it"
        )
    try:
        import torch
    except ImportError:
        stem = os.path.basename(path).split(".")[0]
        fail(
            f"{where}: a file of PyTorch needs PyTorch to be read: install python3-torch, or convert it "
            f"where it is: {unzip}{_CONVERT.format(path=entry or path, stem=stem)}"
        )
    if tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2]) < (1, 13):
        fail(f"{where}: expected PyTorch 1.13 or newer, with weights_only=True, found {torch.__version__}")
    try:
        with limited_memory((2 << 30) + 4 * size), _no_programs(torch):
            found = torch.load(io.BytesIO(source), map_location="cpu", weights_only=True)
    except Exception as error:
        if "nsupported" not in str(error) and "eights" not in str(error):
            fail(f"{where}: cannot be read by PyTorch: {first_line(error)}")
        if torch.__version__.startswith("1.") and "operand 71" in str(error):  # BINFLOAT of pickle
            fail(
                f"{where}: expected tensors alone, as PyTorch {torch.__version__} reads no numbers with "
                "weights_only=True, found numbers. Way out: a newer PyTorch, or of an optimizer only its "
                "state_dict()['state']"
            )
        said = ", ".join(_foreign_classes(source)) or _COLOURS.sub("", first_line(error))
        fail(
            f"{where}: expected tensors with names, which weights_only=True reads, found other objects, "
            f"whose code is not run: {said}. Way out: torch.save({{k: v for k, v in state.items() if "
            "torch.is_tensor(v)}, FILE) of the dictionary with the tensors"
        )
    _add_tensors(w, torch, "", found, 0)


def _foreign_classes(source: bytes) -> list[str]:
    """The classes and functions that a file of torch.save names, but for those of tensors; nothing is run."""
    names: list[str] = []
    with contextlib.suppress(Exception):  # behind the pickles of an old file are the values of its tensors
        if zipfile.is_zipfile(io.BytesIO(source)):
            with zipfile.ZipFile(io.BytesIO(source)) as archive:
                source = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
        stream = io.BytesIO(source)
        while True:
            names += [str(word) for code, word, _ in pickletools.genops(stream) if code.name == "GLOBAL"]
    return [
        name for name in dict.fromkeys(one.replace(" ", ".") for one in names) if not _TENSORS.match(name)
    ]


def _add_tensors(w: Weights, torch: Any, name: str, value: Any, depth: int) -> None:
    """Adds a tensor, or those in a dictionary or list. The names are joined by '.'."""
    parts = None
    if isinstance(value, (list, tuple, dict)) and depth < DEEPEST:
        parts = value.items() if isinstance(value, dict) else enumerate(value)
    if parts is not None:
        for key, part in parts:
            _add_tensors(w, torch, f"{name}.{key}" if name else str(key), part, depth + 1)
        return
    if isinstance(value, (int, float)) and not isinstance(value, bool):  # such as the number of Adam's steps
        w.add(Stored(name, "number", (), lambda: np.array(value, np.float64)))
        return
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_quantized:
        w.add(Stored(name, "no array"))
        return
    type = str(value.dtype).removeprefix("torch.")
    to = torch.float64 if type in ("float64", "int32", "int64") else torch.float32
    w.add(Stored(name, type, tuple(value.shape), lambda: np.array(value.detach().to(to).numpy())))
