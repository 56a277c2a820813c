"""Files of other programs with named arrays: safetensors, NumPy's .npz, Flax's msgpack, HDF5, PyTorch.

Such a file may come from anywhere, and it may be damaged or made to do harm. Opening it reads only names,
types and shapes, and compares them with the bytes that the file has. Memory for values is allocated later,
array by array, and only for arrays that are asked for. Nothing in a file is executed.

To add a format, write a function that returns the arrays of a file, and add it to FORMATS."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kappascope.names import Array
from kappascope.refusal import Refused, fail

_MOST_ARRAYS, _DIMS, _NAME = 1 << 16, 8, 512  # of a file, of an array, bytes of a name with the last zero
_MOST_NUMBERS = 1 << 44  # of an array: as many doubles as an address space of 47 bits has
_INFLATED = 1032  # Deflate expands one byte to at most this many (zlib, "Technical Details")
_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}  # the types of real numbers


def shape_text(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def length_of(name: str) -> int:
    """Bytes of a name, which may be none in UTF-8."""
    return len(name.encode("utf-8", "surrogateescape"))


def _nothing() -> Array:
    raise AssertionError("only real numbers are read")


@dataclass
class Stored:
    """One array of a file. type: "float32"; of what has no real numbers, the word that the file has."""

    name: str
    type: str
    shape: tuple[int, ...] = ()
    load: Callable[[], Array] = _nothing  # the values, in float32 or float64

    @property
    def real(self) -> bool:
        return self.type in _BYTES

    def describe(self) -> str:
        return f"{self.type[:10]} {shape_text(self.shape)}"


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
        if length_of(s.name) >= _NAME:
            fail(f"{self.path}: {s.name[:40]}...: expected a name of at most {_NAME - 1} bytes")
        if math.prod(max(d, 1) for d in s.shape) > _MOST_NUMBERS:
            fail(f"{self.path}: {s.name}: more numbers than can be addressed")
        expected = math.prod(s.shape) * _BYTES.get(s.type, 0)
        if s.real and found is not None and found != expected:
            fail(f"{self.path}: {s.name}: expected {expected} bytes for {s.describe()}, found {found}")
        self.arrays.append(s)

    def read(self, s: Stored) -> Array:
        """The finite real numbers of an array, in float32 or float64."""
        if not s.real:
            fail(f"{self.path}: {s.name}: expected real numbers, found {s.type}")
        with _no_surprises(f"{self.path}: {s.name}"):
            values = s.load()
        flat = values.ravel(order="K")  # in the order of the file
        wrong = np.flatnonzero(~np.isfinite(flat))
        if len(wrong):
            fail(
                f"{self.path}: {s.name}: expected finite numbers, found {flat[wrong[0]]:g} at element "
                f"{wrong[0]}"
            )
        return values


@contextmanager
def _no_surprises(what: str) -> Iterator[None]:
    """Whatever a library raises while it reads a damaged file is a refusal, in one line."""
    try:
        yield
    except Refused:
        raise
    except Exception as error:
        fail(f"{what}: cannot be read: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _from_bytes(data: Any, type: str, shape: tuple[int, ...], order: Any = "C", big: bool = False) -> Array:
    """An array of the bytes of real numbers; float16 and bfloat16 widen to float32 without rounding."""
    byte_order = ">" if big else "<"
    if type == "bfloat16":  # the upper half of a float32
        upper = np.frombuffer(data, byte_order + "u2").astype(np.uint32) << 16
        return upper.view(np.float32).reshape(shape, order=order)
    values = np.frombuffer(data, f"{byte_order}f{_BYTES[type]}")
    return values.astype(np.float64 if type == "float64" else np.float32).reshape(shape, order=order)


# --- NumPy's .npz: a ZIP archive of .npy files (numpy/lib/format.py, versions 1.0 to 3.0) ---

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
        elif key == "shape" and numbers is not None and len(numbers) < _NAME:
            shape = tuple(int(n) for n in numbers.replace(",", " ").split())
        else:
            return None
        at = pair.end()
    if descr is None or order is None or shape is None or text[:1] + text[-1:] != "{}" or len(shape) > _DIMS:
        return None
    return descr, order, shape


def _check_size(w: Weights, entry: zipfile.ZipInfo) -> None:
    """Fails unless the bytes that the archive has for an entry can expand to the size that it claims."""
    method, name = entry.compress_type, entry.filename
    if entry.compress_size > w.size:
        fail(f"{w.path}: {name}: cannot be read: the archive gives it more bytes than the file has")
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        fail(
            f"{w.path}: {name}: expected an array that is stored or deflated, as NumPy writes it, found the "
            f"compression method {method}"
        )
    if entry.file_size > entry.compress_size * (_INFLATED if method == zipfile.ZIP_DEFLATED else 1):
        fail(
            f"{w.path}: {name}: expected an array that fits into {entry.compress_size} bytes of the archive, "
            f"found a claim of {entry.file_size} bytes"
        )


def _open_npy(w: Weights, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    with archive.open(entry) as file:
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
            f"{w.path}: {name}: expected a header as NumPy writes it, with at most {_DIMS} dimensions"
            + (", found that it ends too early" if len(text) < length else "")
        )
    descr, order, shape = header
    skip = len(start) + len(more) + length
    type = {"f2": "float16", "f4": "float32", "f8": "float64"}.get(descr[1:], "") if descr[0] in "<>" else ""

    def load() -> Array:
        with archive.open(entry) as file:
            file.read(skip)
            data = file.read()  # to its end, where the checksum is compared
        return _from_bytes(data, type, shape, order, descr[0] == ">")

    w.add(Stored(name.removesuffix(".npy"), type or descr, shape, load), entry.file_size - skip)


def _open_zip(w: Weights) -> None:
    """An archive of NumPy, or of PyTorch, or Stable-Baselines3's, which has one of PyTorch in it."""
    try:
        archive = zipfile.ZipFile(w.path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        fail(f"{w.path}: not a readable ZIP archive (.npz): {_first_line(error)}")
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if {"config.json", "metadata.json"} <= set(names):
        fail(
            f"{w.path}: expected arrays with names, found a model of Keras (.keras). Way out: unzip the file "
            "model.weights.h5 in it, and import that"
        )
    if any(name.endswith("data.pkl") for name in names):
        if any(name.endswith("constants.pkl") or "/code/" in name for name in names):
            fail(
                f"{w.path}: expected arrays with names, found a program of TorchScript, which is not run. "
                f"Way "
                "out, where it may run: python3 -c 'import sys, torch; "
                "torch.save(torch.jit.load(sys.argv[1]).state_dict(), sys.argv[2])' FILE WEIGHTS.pt"
            )
        for entry in entries:
            _check_size(w, entry)
        _open_torch(w, w.path, sum(entry.file_size for entry in entries))
        return
    if "policy.pth" in names:
        entry = archive.getinfo("policy.pth")
        _check_size(w, entry)
        w.format = "policy.pth of Stable-Baselines3"
        with _no_surprises(f"{w.path}: policy.pth"):
            data = archive.read(entry)
        _open_torch(w, data, len(data))
        return
    w.format = "a NumPy archive"
    for entry in entries:
        if not entry.filename.endswith(".npy"):
            fail(f"{w.path}: expected only .npy files in it, found {entry.filename}")
        _check_size(w, entry)
        with _no_surprises(f"{w.path}: {entry.filename}"):
            _open_npy(w, archive, entry)


# --- PyTorch: what torch.save writes, read with weights_only=True, so that nothing in it is executed ---

_CONVERT = (
    "python3 -c 'import sys, torch, numpy; numpy.savez(sys.argv[2], **{{k: v.numpy() for k, v in "
    'torch.load(sys.argv[1], map_location="cpu", weights_only=True).items()}})\' {path} {stem}.npz'
)


@contextmanager
def _limited_memory(more: int) -> Iterator[None]:
    """The process may allocate `more` bytes than it has: whoever believes the sizes in a file fails."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    wanted = now + more
    hard = limits[1]
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _open_torch(w: Weights, source: Any, size: int) -> None:
    """source: a path, or the bytes of a file."""
    import io

    w.format = w.format or "PyTorch"
    try:
        import torch
    except ImportError:
        stem = os.path.basename(w.path).split(".")[0]
        fail(
            f"{w.path}: a file of PyTorch needs PyTorch to be read: install python3-torch, or convert it "
            f"where it "
            f"is: {_CONVERT.format(path=w.path, stem=stem)}"
        )
    if isinstance(source, bytes):
        source = io.BytesIO(source)
    try:
        with _limited_memory((1 << 30) + 4 * size):
            found = torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:
        if "nsupported" not in str(error) and "eights" not in str(error):
            fail(f"{w.path}: cannot be read by PyTorch: {_first_line(error)}")
        fail(
            f"{w.path}: expected tensors with names, which weights_only=True reads, found other objects, "
            f"whose "
            f"code is not run: {_first_line(error)}. Way out: torch.save(module.state_dict(), FILE)"
        )
    _add_tensors(w, torch, "", found, 0)


def _add_tensors(w: Weights, torch: Any, name: str, value: Any, depth: int) -> None:
    """Adds a tensor, or those in a dictionary or list. The names are joined by '.'."""
    parts = None
    if isinstance(value, (list, tuple, dict)) and depth < _DEEPEST:
        parts = value.items() if isinstance(value, dict) else enumerate(value)
    if parts is not None:
        for key, part in parts:
            _add_tensors(w, torch, f"{name}.{key}" if name else str(key), part, depth + 1)
        return
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.is_quantized:
        w.add(Stored(name, "no array"))
        return
    type = str(value.dtype).removeprefix("torch.")
    to = torch.float64 if type == "float64" else torch.float32
    w.add(Stored(name, type, tuple(value.shape), lambda: np.array(value.detach().to(to).numpy())))


# --- safetensors (github.com/huggingface/safetensors, "Format"): 8 bytes with the length of a header, the
# header in JSON, then the values. Offsets count from the end of the header. ---

_START, _LONGEST_HEADER = 8, 1 << 24
_SAFE_TYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"duplicate object key {key!r}")
        found[key] = value
    return found


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _open_safetensors(w: Weights) -> None:
    w.format = "safetensors"
    wrong = f"{w.path}: not a readable safetensors file: "
    with open(w.path, "rb") as file:
        head = file.read(_START)
        if len(head) < _START:
            fail(wrong + "it ends in its first 8 bytes")
        length = int.from_bytes(head, "little")
        if length > w.size - _START or length > _LONGEST_HEADER:
            fail(wrong + "its header is longer than the file, or than 16 MiB")
        try:
            header = json.loads(file.read(length).decode(), object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            fail(wrong + _first_line(error))
    if not isinstance(header, dict):
        fail(wrong + "its header is not an object of JSON")
    for name, entry in header.items():
        if name != "__metadata__":
            _add_safetensor(w, name, entry, _START + length)


def _add_safetensor(w: Weights, name: str, entry: Any, data: int) -> None:
    """data: the place in the file where the values start."""
    entry = entry if isinstance(entry, dict) else {}
    dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    sizes = [shape, offsets]
    if (
        not isinstance(dtype, str)
        or not all(isinstance(one, list) and all(map(_is_size, one)) for one in sizes)
        or len(shape) > _DIMS
        or len(offsets) != 2
    ):
        fail(
            f"{w.path}: {name}: expected dtype, a shape of at most {_DIMS} dimensions and data_offsets in "
            f"the "
            "header"
        )
    first, last = offsets
    if first > last or last > w.size - data:
        fail(
            f"{w.path}: {name}: expected offsets from 0 to {w.size - data}, the number of bytes behind "
            f"the header, "
            f"found {first} to {last}"
        )
    type = _SAFE_TYPES.get(dtype, dtype)

    def load() -> Array:
        with open(w.path, "rb") as file:
            file.seek(data + first)
            return _from_bytes(file.read(last - first), type, tuple(shape))

    w.add(Stored(name, type, tuple(shape), load), last - first)


# --- Flax's files: flax.serialization.to_bytes writes nested dictionaries as MessagePack. An array is an
# extension of type 1 whose content is, again in MessagePack, [shape, name of the type, bytes]; type 3, a
# NumPy scalar, has the same content. An array of more than 1 GiB is a dictionary with
# `__msgpack_chunked_array__`, `shape` and `chunks`, both of them dictionaries with the keys 0, 1, ...
# (flax/serialization.py). Names are joined by '/'. ---

_CHUNKED, _MOST_CHUNKS = "__msgpack_chunked_array__", 4096  # of 1 GiB
_DEEPEST, _MOST_OBJECTS = 24, 1 << 20


class _Pairs(list[tuple[Any, Any]]):
    """A map of MessagePack."""

    def get(self, wanted: str) -> Any:
        return next((value for key, value in self if key == wanted), None)


@dataclass
class _Extension:
    code: int
    data: memoryview


class _Unpacker:
    """Reads one object of MessagePack that takes all of the bytes. Claims of many objects or bytes are not
    believed: lists grow with the objects that are read."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at, self.seen = data, 0, 0

    def whole(self) -> Any:
        found = self.object(0)
        if self.at != len(self.data):
            raise ValueError("bytes behind the object")
        return found

    def take(self, n: int) -> memoryview:
        if n > len(self.data) - self.at:
            raise ValueError("it ends too early")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, n: int) -> int:
        return int.from_bytes(self.take(n), "big")

    def text(self, n: int) -> str:
        return bytes(self.take(n)).decode("utf-8", "surrogateescape")

    def list(self, n: int, depth: int) -> list[Any]:
        return [self.object(depth + 1) for _ in range(n)]

    def map(self, n: int, depth: int) -> _Pairs:
        return _Pairs((self.object(depth + 1), self.object(depth + 1)) for _ in range(n))

    def extension(self, n: int) -> _Extension:
        return _Extension(self.number(1), self.take(n))

    def object(self, depth: int) -> Any:
        self.seen += 1
        if self.seen > _MOST_OBJECTS or depth > _DEEPEST:
            raise ValueError("too many objects")
        b = self.number(1)
        if b < 0x80 or b >= 0xE0:
            return b if b < 0x80 else b - 256
        if b < 0xA0:
            return self.map(b & 15, depth) if b < 0x90 else self.list(b & 15, depth)
        if b < 0xC0:
            return self.text(b & 31)
        if b in (0xC0, 0xC2, 0xC3):
            return (None, None, False, True)[b - 0xC0]
        for first, last, size, read in (
            (0xC4, 0xC6, 1, self.take),
            (0xC7, 0xC9, 1, self.extension),
            (0xD9, 0xDB, 1, self.text),
            (0xDC, 0xDD, 2, lambda n: self.list(n, depth)),
            (0xDE, 0xDF, 2, lambda n: self.map(n, depth)),
        ):
            if first <= b <= last:
                return read(self.number(size << (b - first)))
        if 0xCA <= b <= 0xCB:
            self.take(4 << (b - 0xCA))
            return 0.0  # no number outside of an array is used
        if 0xCC <= b <= 0xCF:
            return self.number(1 << (b - 0xCC))
        if 0xD0 <= b <= 0xD3:
            return int.from_bytes(self.take(1 << (b - 0xD0)), "big", signed=True)
        if 0xD4 <= b <= 0xD8:
            return self.extension(1 << (b - 0xD4))
        raise ValueError("a format that does not exist")


def _content(extension: Any) -> tuple[list[Any], str, memoryview]:
    """[shape, type, bytes] of an extension of Flax."""
    if not isinstance(extension, _Extension) or extension.code not in (1, 3):
        raise ValueError
    shape, type, data = _Unpacker(extension.data).whole()
    if not isinstance(shape, list) or not isinstance(type, str) or not isinstance(data, memoryview):
        raise ValueError
    return shape, type, data


def _flax_array(value: Any) -> tuple[list[Any], str, list[memoryview]]:
    """The shape, the type and the bytes of an array, or of its chunks."""
    if isinstance(value, _Extension):
        shape, type, data = _content(value)
        return shape, type, [data]
    dims, chunks = value.get("shape"), value.get("chunks")
    if not isinstance(dims, _Pairs) or not isinstance(chunks, _Pairs) or not 0 < len(chunks) <= _MOST_CHUNKS:
        raise ValueError
    parts = [_content(chunks.get(str(i))) for i in range(len(chunks))]
    if len({type for _, type, _ in parts}) != 1:
        raise ValueError
    return [dims.get(str(i)) for i in range(len(dims))], parts[0][1], [data for _, _, data in parts]


def _open_msgpack(w: Weights) -> None:
    w.format = "Flax's msgpack"
    with open(w.path, "rb") as file:
        data = memoryview(file.read())
    try:
        tree = _Unpacker(data).whole()
    except ValueError:
        tree = None
    if not isinstance(tree, _Pairs):
        fail(f"{w.path}: not a readable file of Flax: expected one complete dictionary in MessagePack")
    _add_tree(w, "", tree)


def _add_tree(w: Weights, name: str, value: Any) -> None:
    if isinstance(value, _Pairs) and value.get(_CHUNKED) is None:
        for key, part in value:
            if not isinstance(key, str) or "\0" in key:
                fail(f"{w.path}: {name or 'the dictionary'}: expected names, found another key")
            _add_tree(w, f"{name}/{key}" if name else key, part)
        return
    if not isinstance(value, _Pairs) and not (isinstance(value, _Extension) and value.code in (1, 3)):
        w.add(Stored(name, "no array"))
        return
    try:
        shape, type, chunks = _flax_array(value)
        if not all(map(_is_size, shape)) or len(shape) > _DIMS:
            raise ValueError
    except (ValueError, TypeError):
        fail(
            f"{w.path}: {name}: not an array of Flax: expected a shape of at most {_DIMS} dimensions, a "
            f"type and "
            "bytes"
        )
    size = sum(map(len, chunks))
    w.add(Stored(name, type, tuple(shape), lambda: _from_bytes(b"".join(chunks), type, tuple(shape))), size)


# --- HDF5: all datasets of a file. The name of an array is its path without the first '/'. ---

_MOST_STEPS, _MOST_NAMES, _PATH, _PART = 1 << 14, 1 << 14, 256, 127
_UNWRITTEN = 1 << 20  # bytes that a dataset may have in memory and not in the file


def _open_hdf5(w: Weights) -> None:
    w.format = "HDF5"
    _scout(w)
    _walk_hdf5(w)


def _file(w: Weights) -> Any:
    import h5py

    try:
        return h5py.File(w.path, "r")
    except OSError as error:
        fail(f"{w.path}: not a readable HDF5 file: {_first_line(error)}")


def _scout(w: Weights) -> None:
    """A child process reads the whole file once, with limits on its memory and its time: libhdf5 may crash on
    a damaged file, or not come to an end."""
    import resource

    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            seconds = 60 + w.size // 10_000_000
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            with _limited_memory((1 << 30) + 4 * w.size):
                tried = Weights(w.path)
                _walk_hdf5(tried)
                for s in tried.arrays:
                    if s.real:
                        s.load()
        except BaseException:  # the parent finds it, too, and says so
            pass
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        fail(f"{w.path}: cannot be read: libhdf5 ended with signal {status & 127} in it")


def _walk_hdf5(w: Weights) -> None:
    """Adds all datasets: first those behind hard links, which shows whether there is a link to another file;
    then those behind soft links."""
    soft: list[str] = []
    with _file(w) as file:
        steps = _add_group(w, file, "", soft, 0)
        while soft:
            steps = _add_link(w, file, soft.pop(0), soft, steps)


def _add_group(w: Weights, group: Any, path: str, soft: list[str], steps: int) -> int:
    import h5py

    names = list(group)
    for name in names:
        object = f"{path}/{name}"
        if length_of(object) >= _PATH or length_of(name) >= _PART or len(names) >= _MOST_NAMES:
            fail(
                f"{w.path}: {object[:40]}: expected fewer than {_MOST_NAMES} objects in a group, with "
                f"names of fewer "
                f"than {_PART} bytes and paths of fewer than {_PATH}"
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
    import h5py

    if steps >= _MOST_STEPS:
        fail(f"{w.path}: expected at most {_MOST_STEPS} objects")
    if isinstance(found, h5py.Group):
        return _add_group(w, found, object, soft, steps + 1)
    if not isinstance(found, h5py.Dataset):
        return steps + 1
    if found.is_virtual or found.external:
        fail(f"{w.path}: {object}: expected numbers in this file, found some in another one")
    kind, shape = found.dtype.kind, found.shape
    if shape is None or len(shape) > _DIMS or kind not in "iuf" or (kind == "f" and found.dtype.itemsize > 8):
        w.add(Stored(object[1:], "no array"))
        return steps + 1
    type = "integer" if kind != "f" else "float32" if found.dtype.itemsize <= 4 else "float64"
    claim, has = math.prod(shape) * found.dtype.itemsize, found.id.get_storage_size()
    most = max(has * (_INFLATED if found.chunks else 1), _UNWRITTEN)

    def load() -> Array:
        if claim > most:
            fail(
                f"{w.path}: {object[1:]}: expected an array that fits into {has} bytes of the file, found "
                f"a claim "
                f"of {claim} bytes"
            )
        with _file(w) as file:
            return np.asarray(file[object][()], np.float64 if type == "float64" else np.float32)

    w.add(Stored(object[1:], type, shape, load))
    return steps + 1


# --- which format a file has ---


def _is_safetensors(head: bytes, size: int) -> bool:
    length = int.from_bytes(head[:_START], "little")
    return len(head) > _START and head[_START] == ord("{") and length <= size - _START


# (ending of the name, whether a file that starts with `head` and has `size` bytes is one, opening). The order
# matters: a safetensors file starts with the length of its header, which can look like a pickle or like a
# map of MessagePack. The signature of HDF5 looks like such a map, too.
FORMATS: tuple[tuple[tuple[str, ...], Callable[[bytes, int], bool], Callable[[Weights], None]], ...] = (
    ((".npz", ".zip", ".keras"), lambda head, _: head[:4] == b"PK\3\4", _open_zip),
    ((".safetensors",), _is_safetensors, _open_safetensors),
    ((".h5", ".hdf5"), lambda head, _: head[:8] == b"\x89HDF\r\n\x1a\n", _open_hdf5),
    (
        (".pt", ".pth"),
        lambda head, _: len(head) >= 3 and head[0] == 0x80 and 1 <= head[1] <= 5,
        lambda w: _open_torch(w, w.path, w.size),
    ),
    (
        (".msgpack",),
        lambda head, _: len(head) > 1 and (0x80 < head[0] < 0x90 or head[0] in (0xDE, 0xDF)),
        _open_msgpack,
    ),
)


def open_weights(path: str) -> Weights:
    """Opens a file. Its content decides which format it has, or if that does not, its name."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            fail(f"{path}: expected a file, found a folder or a device")
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError as error:
        fail(f"{path}: cannot be opened: {error.strerror}")
    w = Weights(path)
    opening = next((o for _, recognizes, o in FORMATS if recognizes(head, w.size)), None)
    opening = opening or next((o for endings, _, o in FORMATS if path.endswith(endings)), None)
    if not opening:
        fail(
            f"{path}: expected a file of safetensors, NumPy (.npz), Flax (.msgpack), HDF5 (.h5) or "
            f"PyTorch (.pt, "
            ".pth, .zip of Stable-Baselines3), found something else"
        )
    with _no_surprises(path):
        opening(w)
    names = [s.name for s in w.arrays]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        fail(f"{path}: two arrays have the name {twice}")
    return w
