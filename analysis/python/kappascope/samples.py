"""Minibatches that a run draws once and keeps, also for the process that resumes it."""

from __future__ import annotations

import dataclasses
import io
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from kappascope.arguments import plain
from kappascope.checkpoint import write_file
from kappascope.names import Array


class Samples:
    """What `draw` returned at first, kept in the file `path`. Where there is such a file already, its values
    take the places of those in what `draw` returns, which gives the structure, types and devices. Raises
    ValueError if it cannot be read or has other arrays. `new`: they were drawn now."""

    def __init__(self, path: str, draw: Callable[[], Any]) -> None:
        self._template = draw()
        leaves: list[Any] = []
        _walk(self._template, lambda leaf: leaves.append(leaf))
        self.new = not os.path.exists(path)
        if not self.new:
            self._arrays = _read(path)
            if [a.ndim for a in self._arrays] != [_plain(leaf).ndim for leaf in leaves]:
                raise ValueError(
                    f"{path}: the minibatches of this run have {len(self._arrays)} arrays of "
                    f"{[a.ndim for a in self._arrays]} dimensions, and draw returns {len(leaves)} of "
                    f"{[_plain(leaf).ndim for leaf in leaves]}: remove the file to draw new ones"
                )
            return
        self._arrays = [_plain(leaf) for leaf in leaves]
        image = io.BytesIO()
        np.savez(image, *self._arrays)
        write_file(path, image.getvalue())

    def get(self) -> Any:
        """The minibatches, in memory of their own."""
        arrays = iter(self._arrays)
        return _walk(self._template, lambda leaf: _like(leaf, next(arrays)))


def _read(path: str) -> list[Array]:
    try:
        with open(path, "rb") as file:
            found = np.load(io.BytesIO(file.read()), allow_pickle=False)
        return [found[f"arr_{i}"] for i in range(len(found.files))]
    except Exception as error:  # zipfile and NumPy have many
        raise ValueError(
            f"{path}: the minibatches of this run cannot be read ({error}): remove the file to draw new ones"
        ) from error


def shapes_of(value: Any) -> str:
    """The shapes of its arrays: "[8, 256, 3], [8, 256]"."""
    found: list[str] = []
    _walk(value, lambda leaf: found.append(str(list(getattr(leaf, "shape", ())))))
    return ", ".join(found)


def _walk(value: Any, change: Callable[[Any], Any]) -> Any:
    """The structure with changed arrays."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {key: _walk(part, change) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_walk(part, change) for part in value))
    if isinstance(value, (list, tuple)):
        return type(value)([_walk(part, change) for part in value])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value)]
        return dataclasses.replace(value, **{f: _walk(getattr(value, f), change) for f in fields})
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):  # tensordict
        return {key: _walk(value[key], change) for key in value.keys()}
    return change(value)


def _plain(leaf: Any) -> Array:
    """A copy of an array, whatever framework it comes from."""
    array = np.array(plain(leaf))
    if array.dtype.kind not in "biuf":
        raise TypeError(f"draw: expected arrays or tensors of numbers, found {type(leaf).__name__}")
    return array


def _like(leaf: Any, array: Array) -> Any:
    """The values as the leaf has them: on its device, in its type. Of a type that is not known here, a NumPy
    array."""
    if hasattr(leaf, "detach"):
        return sys.modules["torch"].tensor(array, dtype=leaf.dtype, device=leaf.device)
    if isinstance(leaf, (bool, int, float)):
        return type(leaf)(array)
    if isinstance(leaf, (np.ndarray, np.generic)):
        found = array.astype(leaf.dtype)
        return found[()] if isinstance(leaf, np.generic) else found
    jax = sys.modules.get("jax")
    return jax.numpy.asarray(array, dtype=leaf.dtype) if jax and isinstance(leaf, jax.Array) else array
