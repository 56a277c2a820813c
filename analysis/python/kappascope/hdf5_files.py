"""HDF5: all datasets of a file. The name of an array is its path without the first '/'."""

from __future__ import annotations

import math
from typing import Any

import h5py
import numpy as np

from kappascope.hdf5 import read_hdf5
from kappascope.names import Array
from kappascope.refusal import fail, first_line
from kappascope.stored import INFLATED, Stored, Weights, widened

_MOST_LINKS = 1 << 14
_UNWRITTEN = 1 << 20  # bytes that a dataset may have in memory and not in the file


def open_hdf5(w: Weights) -> None:
    """Adds all datasets. The child reads their values, too, as the caller will."""
    w.format = "HDF5"

    def read_all(file: Any) -> None:
        tried = Weights(w.path)
        _add_all(tried, file)
        for s in tried.arrays:
            if s.real:
                s.check()
                np.asarray(file[s.name][()])

    try:
        read_hdf5(w.path, lambda file: _add_all(w, file), read_all)
    except OSError as error:
        fail(f"{w.path}: not a readable HDF5 file: {first_line(error)}")


def _add_all(w: Weights, file: Any) -> None:
    """First the datasets behind hard links, which shows whether there is a link to another file; then those
    behind soft links, which may lead to each other."""
    paths, soft = _links(w, file, "")
    while soft and len(paths) + len(soft) <= _MOST_LINKS:
        link = soft.pop(0)
        found = file.get(link)
        if isinstance(found, h5py.Dataset):
            paths.append(link)
        elif isinstance(found, h5py.Group):
            more, further = _links(w, found, f"{link}/")
            paths, soft = paths + more, soft + further
    if len(paths) + len(soft) > _MOST_LINKS:
        fail(f"{w.path}: expected at most {_MOST_LINKS} links to objects")
    for path in paths:
        if isinstance(file[path], h5py.Dataset):
            _add(w, path, file[path])


def _links(w: Weights, group: Any, start: str) -> tuple[list[str], list[str]]:
    """The paths of all hard links in a group and its groups, each of which is visited once, and those of the
    soft links."""
    found: dict[int, list[str]] = {h5py.h5l.TYPE_HARD: [], h5py.h5l.TYPE_SOFT: []}

    def visit(name: bytes, link: Any) -> bool:
        found.setdefault(link.type, []).append(start + name.decode("utf-8", "surrogateescape"))
        return sum(map(len, found.values())) > _MOST_LINKS  # then it visits no more

    group.id.links.visit(visit, info=True)
    hard, soft, *others = found.values()
    if others:
        fail(f"{w.path}: {others[0][0][:40]}: expected an object of this file, found an external link")
    return hard, soft


def _add(w: Weights, path: str, found: Any) -> None:
    if found.is_virtual or found.external:
        fail(f"{w.path}: {path}: expected numbers in this file, found some in another one")
    if found.shape is None or found.dtype.kind not in "iuf":
        w.add(Stored(path, "no array"))
        return
    claim, has = math.prod(found.shape) * found.dtype.itemsize, found.id.get_storage_size()
    most = max(has * (INFLATED if found.chunks else 1), _UNWRITTEN)

    def check() -> None:
        if claim > most:
            fail(
                f"{w.path}: {path}: expected an array that fits into {has} bytes of the file, found "
                f"a claim of {claim} bytes"
            )

    def load() -> Array:
        return read_hdf5(w.path, lambda file: widened(np.asarray(file[path][()])), known=True)

    w.add(Stored(path, found.dtype.name, found.shape, load, check))
