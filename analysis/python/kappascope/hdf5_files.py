"""HDF5: all datasets of a file. The name of an array is its path without the first '/'."""

from __future__ import annotations

import math
from typing import Any

import h5py
import numpy as np

from kappascope.hdf5 import read_hdf5
from kappascope.names import Array
from kappascope.refusal import fail, first_line
from kappascope.stored import INFLATED, MOST_DIMS, Stored, Weights, length_of

_MOST_STEPS, _MOST_NAMES, _PATH, _PART = 1 << 14, 1 << 14, 256, 127
_UNWRITTEN = 1 << 20  # bytes that a dataset may have in memory and not in the file


def open_hdf5(w: Weights) -> None:
    """Adds all datasets. The child reads their values, too, as the caller will."""
    w.format = "HDF5"

    def read_all(file: Any) -> None:
        tried = Weights(w.path)
        _walk(tried, file)
        for s in tried.arrays:
            if s.real:
                s.check()
                np.asarray(file[s.name][()])

    try:
        read_hdf5(w.path, lambda file: _walk(w, file), read_all)
    except OSError as error:
        fail(f"{w.path}: not a readable HDF5 file: {first_line(error)}")


def _walk(w: Weights, file: Any) -> None:
    """First the datasets behind hard links, which shows whether there is a link to another file; then those
    behind soft links."""
    soft: list[str] = []
    steps = _add_group(w, file, "", soft, 0)
    while soft:
        steps = _add_link(w, file, soft.pop(0), soft, steps)


def _add_group(w: Weights, group: Any, path: str, soft: list[str], steps: int) -> int:
    names = list(group)
    for name in names:
        object = f"{path}/{name}"
        if length_of(object) >= _PATH or length_of(name) >= _PART or len(names) >= _MOST_NAMES:
            fail(
                f"{w.path}: {object[:40]}: expected fewer than {_MOST_NAMES} objects in a group, with "
                f"names of fewer than {_PART} bytes and paths of fewer than {_PATH}"
            )
        if not name or "/" in name or name == ".":  # "/" and "/." are one group
            fail(f"{w.path}: {path[:40] or '/'}: expected names of objects, found the name '{name}'")
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            soft.append(object)
        elif isinstance(link, h5py.HardLink):
            steps = _add_object(w, group[name], object, soft, steps)
        else:
            fail(f"{w.path}: {object}: expected an object of this file, found an external link")
    return steps


def _add_link(w: Weights, file: Any, object: str, soft: list[str], steps: int) -> int:
    found = file.get(object)
    return steps + 1 if found is None else _add_object(w, found, object, soft, steps)


def _add_object(w: Weights, found: Any, object: str, soft: list[str], steps: int) -> int:
    if steps >= _MOST_STEPS:
        fail(f"{w.path}: expected at most {_MOST_STEPS} objects")
    if isinstance(found, h5py.Group):
        return _add_group(w, found, object, soft, steps + 1)
    if not isinstance(found, h5py.Dataset):
        return steps + 1
    if found.is_virtual or found.external:
        fail(f"{w.path}: {object}: expected numbers in this file, found some in another one")
    kind, shape = found.dtype.kind, found.shape
    if (
        shape is None
        or len(shape) > MOST_DIMS
        or kind not in "iuf"
        or (kind == "f" and found.dtype.itemsize > 8)
    ):
        w.add(Stored(object[1:], "no array"))
        return steps + 1
    type = "integer" if kind != "f" else "float32" if found.dtype.itemsize <= 4 else "float64"
    claim, has = math.prod(shape) * found.dtype.itemsize, found.id.get_storage_size()
    most = max(has * (INFLATED if found.chunks else 1), _UNWRITTEN)

    def check() -> None:
        if claim > most:
            fail(
                f"{w.path}: {object[1:]}: expected an array that fits into {has} bytes of the file, found "
                f"a claim of {claim} bytes"
            )

    def load() -> Array:
        kind = np.float64 if type == "float64" else np.float32
        return read_hdf5(w.path, lambda file: np.asarray(file[object][()], kind), known=True)

    w.add(Stored(object[1:], type, shape, load, check))
    return steps + 1
