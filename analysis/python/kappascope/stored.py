"""One array of a file of another program, and the list of a file's arrays, with what all formats share."""

from __future__ import annotations

import importlib
import math
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kappascope.names import Array
from kappascope.refusal import Refused, fail, first_line

_MOST_ARRAYS, _MOST_DIMS = 1 << 16, 8  # of a file, of an array
LONGEST_NAME = 512  # bytes of a name, with the last zero
_MOST_NUMBERS = 1 << 44  # of an array: as many doubles as an address space of 47 bits has
INFLATED = 1032  # Deflate expands one byte to at most this many (zlib, "Technical Details")
_SMALL = 8_000_000  # for an array of more numbers, the free memory is looked up
_MOST_COUNTS = 1 << 16  # numbers of steps in an array
SAVEZ = "numpy.savez(FILE.npz, **arrays) in the program that wrote it"
_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}  # the types of real numbers


def length_of(name: str) -> int:
    """Bytes of a name, which may be none in UTF-8."""
    return len(name.encode("utf-8", "surrogateescape"))


def _nothing() -> Array:
    raise AssertionError("only real numbers are read")


def check_regular(path: str) -> None:
    """A pipe or a device might never come to an end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        fail(f"{path}: expected a regular file, found a folder, a device or a pipe")


@dataclass
class Stored:
    """One array of a file. type: "float32"; of what has no real numbers, the word that the file has."""

    name: str
    type: str
    shape: tuple[int, ...] = ()
    load: Callable[[], Array] = _nothing  # the values, in float32 or float64
    check: Callable[[], object] = tuple  # before load: fails if the file cannot have so many values

    @property
    def real(self) -> bool:
        return self.type in _BYTES

    def describe(self) -> str:
        return f"{self.type[:10]} {list(self.shape)}"


class Weights:
    """The arrays of a file, in the file's order."""

    def __init__(self, path: str) -> None:
        self.path, self.format = path, ""
        self.size = os.path.getsize(path)
        self.arrays: list[Stored] = []

    def find(self, name: str) -> Stored | None:
        return next((s for s in self.arrays if s.name == name), None)

    def add(self, s: Stored, found: int | None = None) -> None:
        """Appends an array. found: the bytes that the file has for it; real numbers must fill them."""
        if len(self.arrays) == _MOST_ARRAYS:
            fail(f"{self.path}: expected at most {_MOST_ARRAYS} arrays")
        if length_of(s.name) >= LONGEST_NAME:
            fail(f"{self.path}: {s.name[:40]}...: expected a name of at most {LONGEST_NAME - 1} bytes")
        if len(s.shape) > _MOST_DIMS or not all(type(d) is int and 0 <= d < 1 << 63 for d in s.shape):
            fail(
                f"{self.path}: {s.name}: expected a shape of at most {_MOST_DIMS} dimensions, found "
                f"{str(list(s.shape))[:60]}"
            )
        if math.prod(max(d, 1) for d in s.shape) > _MOST_NUMBERS:
            fail(f"{self.path}: {s.name}: more numbers than can be addressed")
        expected = math.prod(s.shape) * _BYTES.get(s.type, 0)
        if s.real and found is not None and found != expected:
            fail(f"{self.path}: {s.name}: expected {expected} bytes for {s.describe()}, found {found}")
        self.arrays.append(s)

    def read_count(self, s: Stored) -> Array:
        """A few numbers, also integers."""
        try:
            if math.prod(s.shape) <= _MOST_COUNTS and s.load is not _nothing:
                return s.load()
        except Exception:  # of a damaged file, or of a type that is no number
            pass
        fail(
            f"{self.path}: {s.name}: expected a number, found {s.describe()}. Way out: the number in the map"
        )

    def read(self, s: Stored) -> Array:
        """The finite real numbers of an array, in float32 or float64."""
        if not s.real:
            fail(f"{self.path}: {s.name}: expected real numbers, found {s.type}")
        s.check()
        needed, free = 8 * math.prod(s.shape), memory_available() if math.prod(s.shape) > _SMALL else math.inf
        if needed > free:
            fail(
                f"{self.path}: {s.name}: expected at least {needed / 1e9:.3g} GB of free memory, found "
                f"{free / 1e9:.3g} GB"
            )
        with no_surprises(f"{self.path}: {s.name}"):
            values = s.load()
        flat = values.ravel(order="K")  # in the order of the file
        wrong = np.flatnonzero(~np.isfinite(flat))
        if len(wrong):
            fail(
                f"{self.path}: {s.name}: expected finite numbers, found {flat[wrong[0]]:g} at element "
                f"{wrong[0]}"
            )
        return values


def memory_available() -> float:
    """Bytes that this machine can still give, or infinity where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            sizes = dict(line.split()[:2] for line in file)
        return 1024.0 * int(sizes["MemAvailable:"])
    except (OSError, KeyError, ValueError):
        return math.inf


@contextmanager
def no_surprises(what: str) -> Iterator[None]:
    """Whatever a library raises while it reads a damaged file is a refusal, in one line, without warnings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Refused:
        raise
    except Exception as error:
        fail(f"{what}: cannot be read: {first_line(error)}")


def values_of(data: bytes, type: str, shape: tuple[int, ...]) -> Array:
    """An array of the bytes of numbers, the lowest byte first."""
    if type == "bfloat16":  # the upper half of a float32
        upper = np.frombuffer(data, "<u2").astype(np.uint32) << 16
        return upper.view(np.float32).reshape(shape)
    return widened(np.frombuffer(data, np.dtype(type).newbyteorder("<")).reshape(shape))


def widened(values: Array) -> Array:
    """In float32 or float64, which hold a number of float16 or an integer of 32 bits without rounding."""
    narrow = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    return values.astype(np.float32 if narrow else np.float64)


def needed(path: str, package: str, also: str = "") -> Any:
    """The package that reads this file's format. also: another way to install it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        fail(
            f"{path}: this format is read by the package {package}, which {sys.executable} does not have. "
            f"Way out: python3 -m pip install {package}, which 'kappascope[import]' does, too{also}"
        )


@contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """The process may allocate `more` bytes than it has: whoever believes the sizes in a file fails."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    most, hard = now + more, limits[1]
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
