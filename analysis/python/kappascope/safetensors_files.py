"""Files of safetensors, by the package of this name. It compares the header with the bytes of the file."""

from __future__ import annotations

from typing import Any

from kappascope.refusal import fail, first_line
from kappascope.stored import Stored, Weights, needed, values_of

_START = 8  # bytes with the length of the header
_TYPES = dict(F16="float16", BF16="bfloat16", F32="float32", F64="float64", I32="int32", I64="int64")


def open_safetensors(w: Weights) -> None:
    w.format = "safetensors"
    package = needed(w.path, "safetensors")
    with open(w.path, "rb") as file:
        data = file.read()
    try:
        found: list[tuple[str, dict[str, Any]]] = package.deserialize(data)
    except package.SafetensorError as error:
        said = first_line(error).removeprefix("Error while deserializing: ")
        fail(f"{w.path}: not a readable safetensors file: {said}")
    for name, entry in sorted(found):  # the package has them in any order
        _add(w, name, entry)


def _add(w: Weights, name: str, entry: dict[str, Any]) -> None:
    type, shape = _TYPES.get(entry["dtype"], entry["dtype"]), tuple(entry["shape"])
    w.add(Stored(name, type, shape, lambda: values_of(entry["data"], type, shape)), len(entry["data"]))


def is_safetensors(head: bytes, size: int) -> bool:
    length = int.from_bytes(head[:_START], "little")
    return len(head) > _START and head[_START] == ord("{") and length <= size - _START
