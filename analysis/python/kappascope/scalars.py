"""Single numbers of Python, NumPy or a framework."""

from __future__ import annotations

import operator
from typing import Any


def whole(name: str, value: Any, least: int = 0) -> int:
    """The value as an int: of Python, NumPy or a tensor. Raises TypeError or ValueError."""
    try:
        number = operator.index(value)
    except TypeError:
        found = real(value)
        if found is None or not found.is_integer():
            raise TypeError(f"{name}: expected a whole number, found {value!r}") from None
        number = int(found)
    if number < least:
        raise ValueError(f"{name}: expected at least {least}, found {number}")
    return number


def real(value: Any) -> float | None:
    """A number of Python, NumPy or a tensor as a float; None for something else."""
    if isinstance(value, (str, bytes)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last is PyTorch's
        return None
