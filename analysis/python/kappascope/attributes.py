"""Attributes of a checkpoint's root, checked before they are written: an analysis refuses a file in which one
that the format defines has another type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kappascope.refusal import fail
from kappascope.scalars import real, whole

_FINITE = ("gamma", "learning_rate", "reward_scale", "temperature")
_WHOLE = ("env_step", "resumed_any", "seed", "update")
_STRINGS = ("architecture", "env", "library_versions", "minibatches")


def check_attributes(what: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes as they are written; what: the argument. Raises Refused."""
    for key in given:
        if not isinstance(key, str) or not key:
            fail(f"{what}: expected names, found {key!r}")
    return {key: _checked(f"{what}: {key}", key, value) for key, value in given.items()}


def _checked(what: str, key: str, value: Any) -> Any:
    number = real(value)
    if key in _FINITE or key == "return_mean":
        if number is None or key in _FINITE and not math.isfinite(number):
            fail(f"{what}: expected a finite number, found {value!r}")
        return number
    if key in _WHOLE:
        return check_whole(what, value, -(2**63))
    if key in _STRINGS and not isinstance(value, (str, bytes)):
        fail(f"{what}: expected a string, found {value!r}")
    if key == "minibatches" and value not in ("fixed", "fresh", b"fixed", b"fresh"):
        fail(f"{what}: expected 'fixed' or 'fresh', found {value!r}")
    if isinstance(value, (str, bytes)) and key != "returns":
        return value
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):  # lists of several lengths; PyTorch's
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        fail(f"{what}: expected numbers or a string, found {value!r}")
    return array


def check_whole(what: str, value: Any, least: int = 0) -> int:
    """A whole number that a file can hold. Raises Refused."""
    try:
        number = whole(what, value, least)
    except (TypeError, ValueError) as error:
        fail(str(error))
    if number >= 2**63:
        fail(f"{what}: expected a number below 2^63, found {number}")
    return number
