"""Flax's files: flax.serialization.to_bytes writes nested dictionaries as MessagePack, which the package
msgpack reads. An array is an extension of type 1 whose content is, again in MessagePack, [shape, name of the
type, bytes]; type 3, a NumPy scalar, has the same content. An array of more than 1 GiB is a dictionary with
`__msgpack_chunked_array__`, `shape` and `chunks`, both of them dictionaries with the keys 0, 1, ...
(flax/serialization.py). Names are joined by '/'."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from kappascope.refusal import fail
from kappascope.stored import Stored, Weights, limited_memory, needed, values_of

_ARRAY, _SCALAR = 1, 3  # types of extensions
_CHUNKED, _MOST_CHUNKS = "__msgpack_chunked_array__", 4096  # of 1 GiB
_DEEPEST = 24  # dictionaries in dictionaries
_LONGEST_LIST = 1 << 16  # for which memory is allocated before its objects are read


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("two entries of a dictionary have the same name")
    return found


def open_msgpack(w: Weights) -> None:
    w.format = "Flax's msgpack"
    package = needed(w.path, "msgpack", ", or install Debian's python3-msgpack")
    with open(w.path, "rb") as file:
        data = file.read()

    how = {"object_pairs_hook": _unique, "max_array_len": _LONGEST_LIST, "unicode_errors": "surrogateescape"}
    unpack = functools.partial(package.unpackb, **how)
    try:
        with limited_memory((1 << 30) + 4 * w.size):
            tree = unpack(data)
    except (ValueError, MemoryError):  # claims of more than the file has are among them
        tree = None
    if not isinstance(tree, dict):
        fail(f"{w.path}: not a readable file of Flax: expected a whole dictionary with names in MessagePack")

    def content(extension: Any) -> tuple[tuple[int, ...], str, bytes]:
        """The shape, the type and the bytes of an array."""
        shape, type, data = unpack(extension.data)
        if not isinstance(shape, list) or not isinstance(type, str) or not isinstance(data, bytes):
            raise ValueError
        return tuple(shape), type, data

    _add(w, content, "", tree, 0)


def _add(w: Weights, content: Callable[[Any], Any], name: str, value: Any, depth: int) -> None:
    """Adds an array, or those in a dictionary."""
    if isinstance(value, dict) and _CHUNKED not in value:
        if depth > _DEEPEST:
            fail(f"{w.path}: {name[:40]}: expected at most {_DEEPEST} dictionaries in dictionaries")
        for key, part in value.items():
            _add(w, content, f"{name}/{key}" if name else key, part, depth + 1)
        return
    if not isinstance(value, dict) and getattr(value, "code", None) not in (_ARRAY, _SCALAR):
        w.add(Stored(name, "no array"))
        return
    try:
        if isinstance(value, dict):
            dims, chunks = value["shape"], value["chunks"]
            if not 0 < len(chunks) <= _MOST_CHUNKS:
                raise ValueError
            parts = [content(chunks[str(i)]) for i in range(len(chunks))]
            (type,) = {type for _, type, _ in parts}
            shape, data = tuple(dims[str(i)] for i in range(len(dims))), b"".join(data for *_, data in parts)
        else:
            shape, type, data = content(value)
    except (ValueError, TypeError, KeyError, AttributeError):
        fail(f"{w.path}: {name}: not an array of Flax: expected a shape, a type and bytes")
    w.add(Stored(name, type, shape, lambda: values_of(data, type, shape)), len(data))
