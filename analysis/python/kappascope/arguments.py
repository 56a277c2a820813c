"""What Run is given, checked: what cannot work is refused before the training."""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

# Attributes that the caller cannot set: they are the run's, or differ between its checkpoints.
_OWN = ("format", "version", "env", "seed", "env_step", "minibatches")
_OF_A_STEP = ("update", "return_mean", "returns", "resumed_any")
# Others that the format of checkpoints defines.
_NUMBERS = ("gamma", "learning_rate", "reward_scale", "temperature")
_STRINGS = ("architecture", "library_versions")


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


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # some functions of C do not say what they take
        return True
    return True


def check_functions(save: Any, draw: Any, minibatches: Any) -> None:
    """Raises TypeError or ValueError."""
    if not callable(save) or not (draw is None or callable(draw)):
        raise TypeError("Run: save, draw: expected functions")
    wanted = ("path", "step") if draw is None else ("path", "step", "minibatches")
    if not _takes(save, len(wanted)):
        raise TypeError(f"Run: save: expected a function save({', '.join(wanted)}), found {save!r}")
    if minibatches not in ("fixed", "fresh"):
        raise ValueError(f"Run: minibatches: expected 'fixed' or 'fresh', found {minibatches!r}")


def check_names(env: Any, name: Any) -> None:
    """Raises TypeError or ValueError."""
    for what, word in (("env", env), ("name", name)):
        if not isinstance(word, str) or not word:
            raise TypeError(f"Run: {what}: expected a name, found {word!r}")
    if not re.fullmatch(r"[A-Za-z0-9+_][A-Za-z0-9+_.-]*", name):
        raise ValueError(f"Run: name: expected letters, digits and +-_. as of a folder, found {name!r}")


def check_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, those with a meaning in the types that the programs read. Raises ValueError."""
    found = {}
    for key, value in attributes.items():
        number = real(value)
        if not key or not isinstance(key, str) or not (isinstance(value, str) or number is not None):
            raise ValueError(f"Run: attributes: expected numbers or strings, found {key} = {value!r}")
        if key in _OWN or key in _OF_A_STEP:
            raise ValueError(f"Run: attributes: expected none that a checkpoint has of its own, found {key}")
        if key in _NUMBERS and (number is None or not math.isfinite(number)):
            raise ValueError(f"Run: attributes: {key}: expected a finite number, found {value!r}")
        if key in _STRINGS and not isinstance(value, str):
            raise ValueError(f"Run: attributes: {key}: expected a string, found {value!r}")
        found[key] = number if key in _NUMBERS else value
    return found
