"""Reading HDF5: the only place where the package opens a file of HDF5 to read it; and all datasets of a file
of another program, whose names are their paths without the first '/'."""

from __future__ import annotations

import faulthandler
import math
import os
import signal
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import h5py
import numpy as np

from kappascope.names import Array, Path
from kappascope.refusal import fail, first_line
from kappascope.stored import INFLATED, Stored, Weights, check_regular, limited_memory, widened

_MOST_LINKS = 1 << 14
_UNWRITTEN = 1 << 20  # bytes that a dataset may have in memory and not in the file
T = TypeVar("T")


def read_hdf5(
    path: Path,
    read: Callable[[Any], T],
    first: Callable[[Any], Any] | None = None,
    known: bool = False,
    **how: Any,
) -> T:
    """What read(file) returns. libhdf5 may crash on a damaged file, or not come to an end: so a child process
    does the same before, unless the file is `known`: this process wrote it, or has read all of it.

    first  what the child does, if it is to read more than `read` does
    how    further arguments of h5py.File

    Raises OSError if the file cannot be opened, Refused if the child does not survive, and as `read` does."""
    check_regular(os.fspath(path))
    if not known:
        _scout(os.fspath(path), first or read)
    with h5py.File(path, **{"mode": "r", **how}) as file:
        return read(file)


def _scout(path: str, read: Callable[[Any], Any]) -> None:
    """Reads in a child process with limits on its memory and its time."""
    import resource

    size = os.path.getsize(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of JAX and Python, about threads, none of which the child needs
        child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()
            for number in (signal.SIGALRM, signal.SIGXCPU):
                signal.signal(number, signal.SIG_DFL)
            seconds = 20 + size // 10_000_000
            for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, seconds)):
                hard = resource.getrlimit(kind)[1]
                resource.setrlimit(kind, (most if hard < 0 else min(most, hard), hard))
            signal.alarm(4 * seconds)  # on a busy machine
            with limited_memory((2 << 30) + 4 * size), h5py.File(path, "r") as file:
                read(file)
        except BaseException:  # the parent finds it, too, and says so
            pass
        finally:
            os._exit(0)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    if status != 0:
        endless = status & 127 in (signal.SIGXCPU, signal.SIGALRM)
        what = "does not come to an end" if endless else f"crashes (signal {status & 127})"
        fail(f"{path}: the file is damaged: libhdf5 {what} while reading it")


# --- files of other programs ---


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
