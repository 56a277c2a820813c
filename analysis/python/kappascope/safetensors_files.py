"""safetensors (github.com/huggingface/safetensors, "Format"): 8 bytes with the length of a header, the
header in JSON, then the values. Offsets count from the end of the header."""

from __future__ import annotations

import json
from typing import Any

from kappascope.names import Array
from kappascope.refusal import fail, first_line
from kappascope.stored import MOST_DIMS, Stored, Weights, from_bytes, is_size

_START, _LONGEST_HEADER = 8, 1 << 24
_SAFE_TYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"duplicate object key {key!r}")
        found[key] = value
    return found


def open_safetensors(w: Weights) -> None:
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
            fail(wrong + first_line(error))
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
        or not all(isinstance(one, list) and all(map(is_size, one)) for one in sizes)
        or len(shape) > MOST_DIMS
        or len(offsets) != 2
    ):
        fail(
            f"{w.path}: {name}: expected dtype, a shape of at most {MOST_DIMS} dimensions and data_offsets "
            "in the header"
        )
    first, last = offsets
    if first > last or last > w.size - data:
        fail(
            f"{w.path}: {name}: expected offsets from 0 to {w.size - data}, the number of bytes behind the "
            f"header, found {first} to {last}"
        )
    type = _SAFE_TYPES.get(dtype, dtype)

    def load() -> Array:
        with open(w.path, "rb") as file:
            file.seek(data + first)
            return from_bytes(file.read(last - first), type, tuple(shape))

    w.add(Stored(name, type, tuple(shape), load), last - first)


def is_safetensors(head: bytes, size: int) -> bool:
    length = int.from_bytes(head[:_START], "little")
    return len(head) > _START and head[_START] == ord("{") and length <= size - _START
