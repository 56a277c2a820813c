"""What callers give, checked: single numbers of Python, NumPy or a framework; attributes of a checkpoint, as
an analysis refuses a file in which one that the format defines has another type; and what Run takes, as what
cannot work is refused before the training."""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from kappascope.names import Array
from kappascope.refusal import fail

_FINITE = ("gamma", "learning_rate", "reward_scale", "temperature")
_WHOLE = ("env_step", "resumed_any", "seed", "update")
_STRINGS = ("architecture", "env", "library_versions", "minibatches")
# Attributes that the caller cannot set: they are the run's, or differ between its checkpoints.
_OWN = ("format", "version", "env", "seed", "env_step", "minibatches")
_OF_A_STEP = ("update", "return_mean", "returns", "resumed_any")


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


def plain(value: Any) -> Array:
    """The array of any framework as one of NumPy, which has no bfloat16: that becomes float32."""
    value = value.detach() if hasattr(value, "detach") else value
    value = value.cpu() if hasattr(value, "cpu") else value
    if "bfloat16" in str(getattr(value, "dtype", "")):
        value = value.float() if hasattr(value, "float") else value.astype("float32")
    return np.asarray(value)


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
        array = plain(value)
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


def check_functions(save: Any, draw: Any, minibatches: Any) -> None:
    """Raises TypeError or ValueError."""
    if not callable(save) or not (draw is None or callable(draw)):
        raise TypeError("Run: save, draw: expected functions")
    wanted = ("path", "step") if draw is None else ("path", "step", "minibatches")
    try:
        inspect.signature(save).bind(*wanted)
    except TypeError:
        raise TypeError(f"Run: save: expected a function save({', '.join(wanted)}), found {save!r}") from None
    except ValueError:  # some functions of C do not say what they take
        pass
    if minibatches not in ("fixed", "fresh"):
        raise ValueError(f"Run: minibatches: expected 'fixed' or 'fresh', found {minibatches!r}")


def check_names(env: Any, name: Any) -> None:
    """Raises TypeError or ValueError."""
    for what, word in (("env", env), ("name", name)):
        if not isinstance(word, str) or not word:
            raise TypeError(f"Run: {what}: expected a name, found {word!r}")
        if len(word) > 200:
            raise ValueError(f"Run: {what}: expected at most 200 characters, found {len(word)}")
    if not re.fullmatch(r"[A-Za-z0-9+_][A-Za-z0-9+_.-]*", name):
        raise ValueError(f"Run: name: expected letters, digits and +-_. as of a folder, found {name!r}")


def attributes_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of all checkpoints. Raises ValueError."""
    own = [key for key in given if key in _OWN or key in _OF_A_STEP]
    if own:
        raise ValueError(f"Run: attributes: expected none that a checkpoint has of its own, found {own[0]}")
    return check_attributes("Run: attributes", given)
