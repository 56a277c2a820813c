"""libkappascope in this process, by ctypes: include/kappascope.h says what its functions do."""

from __future__ import annotations

import ctypes
import os
import warnings
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_size_t, c_void_p
from typing import Any

from kappascope.names import VERSION
from kappascope.programs import program
from kappascope.refusal import fail

PRODUCT = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_double), POINTER(c_double))
WATCH = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_size_t)


def _fields(**types: Any) -> list[tuple[str, Any]]:
    return list(types.items())


class Sizes(ctypes.Structure):
    _fields_ = [
        (name, c_size_t)
        for name in "parameters statistics inputs outputs targets layers ensemble minibatches rows loss_rows "
        "frozen heads".split()
    ]


class Shape(ctypes.Structure):
    _fields_ = _fields(name=c_char_p, rows=c_size_t, columns=c_size_t)


class LayerParts(ctypes.Structure):
    _fields_ = [
        *_fields(name=c_char * 32, kind=c_char_p, outputs=c_size_t, trainable=c_bool, joint=c_bool),
        *_fields(parameter=Shape * 3, state=Shape * 3),
    ]


class HeadParts(ctypes.Structure):
    _fields_ = [
        *_fields(loss=c_char_p, outputs=c_size_t, targets=c_size_t),
        *_fields(min=c_double, max=c_double, delta=c_double, weight=c_double),
    ]


class Option(ctypes.Structure):
    _fields_ = _fields(name=c_char_p, value=c_char_p)


class Request(ctypes.Structure):
    _fields_ = _fields(options=c_size_t, option=POINTER(Option), watch=WATCH, watcher=c_void_p)


class Reading(ctypes.Structure):
    _fields_ = [
        *_fields(name=c_char_p, value=c_double, lower=c_double, upper=c_double),
        *_fields(what=c_char_p, meaning=c_char_p, text=c_char * 96),
    ]


class Attribute(ctypes.Structure):
    _fields_ = _fields(name=c_char_p, text=c_char_p, number=c_double, integer=c_bool)


class StoredArray(ctypes.Structure):
    _fields_ = _fields(name=c_char_p, rows=c_size_t, columns=c_size_t, values=POINTER(c_double))


# The functions that return a status, with their arguments.
_CALLS: dict[str, list[Any]] = {
    "arch_sizes": [c_char_p, c_size_t, POINTER(Sizes)],
    "arch_parts": [c_char_p, c_size_t, POINTER(LayerParts), POINTER(HeadParts)],
    "scout": [c_char_p],
    "analyze": [c_char_p, POINTER(Request), POINTER(c_void_p)],
    "operator_from_product": [c_size_t, PRODUCT, c_void_p, POINTER(c_void_p)],
    "operator_from_products": [c_size_t, PRODUCT, PRODUCT, c_void_p, POINTER(c_void_p)],
    "operator_analyze": [c_void_p, POINTER(Request), POINTER(c_void_p)],
    "spectrum_read": [c_char_p, POINTER(c_void_p)],
    "spectrum_write": [c_void_p, c_char_p],
    "spectrum_reading": [c_void_p, c_size_t, POINTER(Reading)],
    "spectrum_attribute": [c_void_p, c_size_t, POINTER(Attribute)],
    "spectrum_array": [c_void_p, c_size_t, POINTER(StoredArray)],
}
_THREADLESS = "arch_sizes", "arch_parts"
_USAGE, _IO, _MEMORY = 1, 3, 6  # of enum kappascope_status


class AnalysisError(RuntimeError):
    """An analysis failed: one line that says what was expected, and what was found."""


_ERRORS = {_USAGE: ValueError, _IO: OSError, _MEMORY: MemoryError}


class Library:
    """The functions of the library that this package calls."""

    def __init__(self, path: str) -> None:
        self.path, self.process = path, os.getpid()
        self._c = ctypes.CDLL(path)
        for name in ("version", "error", "blas_warning"):
            self._declare(name, c_char_p)
        found = self._c.kappascope_version().decode()
        if found != VERSION:
            raise OSError(f"{path}: expected version {VERSION}, as this package has, found {found}")
        for name, arguments in _CALLS.items():
            self._declare(name, c_int, *arguments)
        for name in ("operator_free", "spectrum_free"):
            self._declare(name, None, c_void_p)
        self._declare("spectrum_statistic_name", c_char_p, c_void_p, c_size_t)
        self._declare("spectrum_statistic", c_double, c_void_p, c_char_p)

    def _declare(self, name: str, result: Any, *arguments: Any) -> None:
        function = getattr(self._c, "kappascope_" + name)
        function.restype, function.argtypes = result, arguments

    def call(self, name: str, *arguments: Any) -> None:
        """Calls kappascope_NAME. Raises ValueError, OSError, MemoryError or AnalysisError."""
        if name not in _THREADLESS and os.getpid() != self.process:
            raise RuntimeError(
                "kappascope: expected the process that loaded the library, found a fork of it, where "
                "OpenMP's threads do not exist: start processes by multiprocessing's method 'spawn'"
            )
        status = getattr(self._c, "kappascope_" + name)(*arguments)
        if status != 0:
            message = self._c.kappascope_error().decode(errors="replace")
            raise _ERRORS.get(status, AnalysisError)(message)

    def parts(self, arch: str, inputs: int, rename: tuple[str, str]) -> tuple[Sizes, Any, Any]:
        """The sizes, the layers and the heads of a description. rename: what stands for the first word in the
        message of Refused."""
        text, sizes = arch.encode("utf-8", "surrogateescape"), Sizes()
        text = text.replace(b"\0", b"\1")  # which does not end the text, and is refused like it
        try:
            self.call("arch_sizes", text, inputs, sizes)
            layers, heads = (LayerParts * sizes.layers)(), (HeadParts * sizes.heads)()
            self.call("arch_parts", text, inputs, layers, heads)
        except (AnalysisError, ValueError) as error:
            fail(str(error).replace(*rename, 1))
        return sizes, layers, heads

    def free(self, name: str, handle: c_void_p) -> None:
        getattr(self._c, f"kappascope_{name}_free")(handle)

    def items(self, name: str, handle: c_void_p, kind: Any) -> list[Any]:
        """All items of a spectrum that kappascope_spectrum_NAME gives one by one."""
        function = getattr(self._c, "kappascope_spectrum_" + name)
        found: list[Any] = []
        while True:
            item = kind()
            if function(handle, len(found), ctypes.byref(item)) != 0:
                return found
            found.append(item)

    def summary(self, handle: c_void_p) -> dict[str, float]:
        """{statistic: number} of a spectrum, with the ends of intervals and statistics of fewer steps."""
        names: list[bytes] = []
        while name := self._c.kappascope_spectrum_statistic_name(handle, len(names)):
            names.append(name)
        return {name.decode(): self._c.kappascope_spectrum_statistic(handle, name) for name in names}

    def prepare_products(self) -> None:
        """Products take OpenMP's threads, so OpenBLAS has one. Warns if its kernel is slow."""
        self._c.kappascope_blas_one_thread()
        slow = self._c.kappascope_blas_warning()
        if slow:
            warnings.warn(slow.decode(), RuntimeWarning, stacklevel=3)


_loaded: dict[str, Library] = {}


def library() -> Library:
    """The library: the one in the folder lib beside the folder of the programs. Raises OSError."""
    folder = os.path.normpath(os.path.join(os.path.dirname(program()), "..", "lib"))
    if folder not in _loaded:
        names = [f"libkappascope.so.{VERSION}", "libkappascope.so"]  # an older version may be beside it
        found = [path for path in (os.path.join(folder, name) for name in names) if os.path.exists(path)]
        if not found:
            raise OSError(f"{folder}: expected {names[0]}, found none: run `make` in the checkout")
        _loaded[folder] = Library(found[0])
    return _loaded[folder]
