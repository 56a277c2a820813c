"""Flax's files: flax.serialization.to_bytes writes nested dictionaries as MessagePack. An array is an
extension of type 1 whose content is, again in MessagePack, [shape, name of the type, bytes]; type 3, a NumPy
scalar, has the same content. An array of more than 1 GiB is a dictionary with `__msgpack_chunked_array__`,
`shape` and `chunks`, both of them dictionaries with the keys 0, 1, ... (flax/serialization.py). Names are
joined by '/'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kappascope.refusal import fail
from kappascope.stored import DEEPEST, MOST_DIMS, Stored, Weights, from_bytes, is_size

_CHUNKED, _MOST_CHUNKS = "__msgpack_chunked_array__", 4096  # of 1 GiB
_MOST_OBJECTS = 1 << 20


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
        if self.seen > _MOST_OBJECTS or depth > DEEPEST:
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


def open_msgpack(w: Weights) -> None:
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
        if not all(map(is_size, shape)) or len(shape) > MOST_DIMS:
            raise ValueError
    except (ValueError, TypeError):
        fail(
            f"{w.path}: {name}: not an array of Flax: expected a shape of at most {MOST_DIMS} dimensions, "
            "a type and bytes"
        )
    size = sum(map(len, chunks))
    w.add(Stored(name, type, tuple(shape), lambda: from_bytes(b"".join(chunks), type, tuple(shape))), size)
