"""Reading HDF5: the only place where the package opens a file of HDF5 to read it."""

from __future__ import annotations

import faulthandler
import os
import signal
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import h5py

from kappascope.names import Path
from kappascope.refusal import Refused, fail
from kappascope.stored import check_regular, limited_memory

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


def read_own(path: Path, format: str, what: str, read: Callable[[Any], T]) -> T:
    """What read(file) returns, of a file that `kappascope analyze` wrote, whose attribute `format` is this;
    what: such files in words. Raises Refused."""

    def checked(file: Any) -> T:
        found = file.attrs.get("format", "another file of HDF5")
        found = found.decode("utf-8", "replace") if isinstance(found, bytes) else found
        if found != format:
            fail(f"{path}: expected {what} ({format}), found {found}")
        return read(file)

    try:
        return read_hdf5(path, checked)
    except Refused:
        raise
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        fail(f"{path}: expected {what}, which `kappascope analyze` writes: {said}")


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
