"""Files of PyTorch, which torch.save writes. They are read with weights_only=True, so that nothing in them is
executed."""

from __future__ import annotations

import io
import os
import re
from typing import Any, NoReturn

import numpy as np

from kappascope.refusal import fail, first_line
from kappascope.stored import SAVEZ, Stored, Weights, limited_memory

_DEEPEST = 24  # dictionaries in dictionaries
_CONVERT = (
    "python3 -c 'import sys, torch, numpy; numpy.savez(sys.argv[2], **{{k: v.numpy() for k, v in "
    'torch.load(sys.argv[1], map_location="cpu", weights_only=True).items()}})\' {path} {stem}.npz'
)
_CLASS = re.compile(
    r"nsupported (?:class|(?:global: )?GLOBAL) ([\w.]+)"
)  # what PyTorch says of others than tensors
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LEGACY = b"l\xfc\x9cF\xf9 j\xa8P\x19"  # the number with which files of torch.save before version 1.6 begin


def open_torch(w: Weights, source: Any, size: int, entry: str = "") -> None:
    """source: a path, or the bytes of a file, which is this entry of an archive."""
    w.format, path = w.format or "PyTorch", w.path
    where = f"{path}: {entry}" if entry else path
    if isinstance(source, str):
        with open(source, "rb") as file:
            source = file.read()
    if source[:1] == b"\x80" and _LEGACY not in source[:64]:
        fail(
            f"{where}: expected tensors with names, found a pickle, whose code is not run. Way out: " + SAVEZ
        )
    try:
        from unittest import mock  # which imports much

        import torch
    except ImportError:
        unzip = f"unzip -p {path} {entry} > {entry}; " if entry else ""
        stem = os.path.basename(path).split(".")[0]
        fail(
            f"{where}: a file of PyTorch needs PyTorch to be read: install python3-torch, or convert it "
            f"where it is: {unzip}{_CONVERT.format(path=entry or path, stem=stem)}"
        )
    if tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2]) < (1, 13):
        fail(f"{where}: expected PyTorch 1.13 or newer, with weights_only=True, found {torch.__version__}")
    # Before version 2.6, torch.load runs TorchScript even with weights_only=True. (It unpacks archives of
    # tar, too, but only from files with a descriptor; here it is given bytes.)
    refusal = ValueError("weights_only=True: it is a program of TorchScript")
    try:
        with limited_memory((2 << 30) + 4 * size), mock.patch.object(torch.jit, "load", side_effect=refusal):
            found = torch.load(io.BytesIO(source), map_location="cpu", weights_only=True)
    except Exception as error:
        _refuse(where, torch.__version__, error)
    _add_tensors(w, torch, "", found, 0)


def _refuse(where: str, version: str, error: Exception) -> NoReturn:
    """Says why PyTorch does not read a file, and the way out."""
    said = str(error)
    if "nsupported" not in said and "eights" not in said:
        fail(f"{where}: cannot be read by PyTorch: {first_line(error)}")
    if version.startswith("1.") and "operand 71" in said:  # BINFLOAT of pickle
        fail(
            f"{where}: expected tensors alone, as PyTorch {version} reads no numbers with "
            "weights_only=True, found numbers. Way out: a newer PyTorch, or of an optimizer only its "
            "state_dict()['state']"
        )
    named = _CLASS.search(said)
    fail(
        f"{where}: expected tensors with names, which weights_only=True reads, found other objects, "
        f"whose code is not run: {named[1] if named else _COLOURS.sub('', first_line(error))}. Way out: "
        "torch.save({k: v for k, v in state.items() if torch.is_tensor(v)}, FILE) of the dictionary with "
        "the tensors"
    )


def _add_tensors(w: Weights, torch: Any, name: str, value: Any, depth: int) -> None:
    """Adds a tensor, or those in a dictionary or list. The names are joined by '.'."""
    if isinstance(value, (list, tuple, dict)) and depth < _DEEPEST:
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
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
