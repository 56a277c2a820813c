"""What Run is given, checked: what cannot work is refused before the training."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from kappascope.attributes import check_attributes

# Attributes that the caller cannot set: they are the run's, or differ between its checkpoints.
_OWN = ("format", "version", "env", "seed", "env_step", "minibatches")
_OF_A_STEP = ("update", "return_mean", "returns", "resumed_any")


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
