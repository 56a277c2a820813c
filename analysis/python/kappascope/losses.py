"""Losses: their line in a description, their value, and the functions of PyTorch that have such a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kappascope.names import Tensor
from kappascope.refusal import did_you_mean, fail

_LOSSES: dict[str, dict[str, float | None]] = {
    "mse": {},
    "ce": {"min": None, "max": None},
    "huber": {"delta": 1.0},
    "quantile": {"kappa": 1.0},
}
_LOSS_HINTS = {
    **dict.fromkeys(["mseloss", "mse_loss"], "mse weight=2"),
    **dict.fromkeys(["cross_entropy", "crossentropyloss"], "ce min=V max=V"),
    **dict.fromkeys(["smooth_l1", "smooth_l1_loss", "huberloss", "huber_loss"], "huber delta=1"),
    "l2": "mse",
    "quantile_huber": "quantile",
}


class Loss:
    """A line `loss NAME option=value...`, with or without its first word. function: PyTorch's,
    which is compared with the line."""

    def __init__(self, text: str, function: Any = None) -> None:
        if not isinstance(text, str):
            name = getattr(text, "__name__", type(text).__name__)
            fail(f"loss: expected a line, such as 'mse' for the mean of (f - t)^2 / 2, found {name}")
        self.function, words = function, text.split()
        words = words[1:] if words[:1] == ["loss"] else words
        name = words[0] if words else ""
        if name not in _LOSSES:
            fail(
                f"loss: expected one of {', '.join(_LOSSES)}, found {name!r}"
                + did_you_mean(name, _LOSSES, _LOSS_HINTS)
            )
        self.name, self.text = name, " ".join(words)
        self.options: dict[str, Any] = {**_LOSSES[name], "weight": 1.0}
        given = [word.partition("=")[0] for word in words[1:]]
        if len(set(given)) < len(given):
            fail(f"loss {name}: expected each option once, found {self.text!r}")
        for word in words[1:]:
            self._read_option(word)
        missing = [key for key, value in self.options.items() if value is None]
        if missing:
            fail(
                f"loss {name}: expected the options {' and '.join(f'{key}=V' for key in missing)}, the "
                "values of the first and the last atom"
            )
        if name == "ce" and not self.options["min"] < self.options["max"]:
            fail(f"loss ce: expected min < max, found {self.options['min']:g} and {self.options['max']:g}")
        self.weight = self.options["weight"]

    def _read_option(self, word: str) -> None:
        key, _, value = word.partition("=")
        if key not in self.options:
            fail(f"loss {self.name}: expected the options {', '.join(self.options)}, found {word!r}")
        try:
            number = float(value if re.fullmatch(r"[0-9.eE+-]+", value) else "")
        except ValueError:
            fail(
                f"loss {self.name}: expected a number after {key}=, found {value!r}. Write a fraction as a "
                "decimal number"
            )
        low = -1e12 if key in ("min", "max") else 1e-12
        if not low <= number <= 1e12:
            fail(f"loss {self.name}: {key}: expected a number from {low:g} to 1e+12, found {value}")
        self.options[key] = number


Head = tuple[Loss, int]  # the loss of a head, and its outputs


def _huber(d: Any, delta: float, xp: Any) -> Any:
    return xp.where(abs(d) <= delta, 0.5 * d * d, delta * (abs(d) - delta / 2))


def _loss_rows(loss: Loss, f: Any, t: Any, xp: Any, logsumexp: Callable[[Any], Any]) -> Any:
    """The loss of each row [B], of outputs f [B, K] and targets t [B, T], in torch or jax.numpy
    (xp), without its weight. The formulas are those of analysis/LOSSES.md."""
    if loss.name == "mse":
        rows = 0.5 * (f - t) ** 2 / f.shape[-1]
    elif loss.name == "huber":
        rows = _huber(f - t, loss.options["delta"], xp) / f.shape[-1]
    elif loss.name == "ce":
        rows = t.sum(-1) * logsumexp(f) - (t * f).sum(-1)
    else:
        k = f.shape[-1]
        q = xp.asarray((2 * np.arange(k) + 1) / (2 * k)).reshape(1, k, 1)
        d = t[:, None, :] - f[:, :, None]
        rows = xp.where(d < 0, 1 - q, q) * _huber(d, loss.options["kappa"], xp) / t.shape[-1]
    return rows.reshape(len(f), -1).sum(-1)


def _parts(heads: list[Head], f: Any, t: Any) -> Iterator[tuple[Loss, Any, Any]]:
    """Each head's loss, outputs and targets, which lie side by side in f and t."""
    at = 0
    for loss, outputs in heads:
        yield loss, f[:, at : at + outputs], t if len(heads) == 1 else t[:, at : at + outputs]
        at += outputs


def mean_loss(heads: list[Head], f: Any, t: Any, w: Any, xp: Any, logsumexp: Callable[[Any], Any]) -> Any:
    """The mean over rows of the sum over heads, of outputs f [B, K] and targets t [B, T]; w: weights of the
    rows [B]."""
    return sum(
        loss.weight * (_loss_rows(loss, one, y, xp, logsumexp) * w).sum() / len(f)
        for loss, one, y in _parts(heads, f, t)
    )


def torch_loss(loss: Any) -> Loss:
    """A loss by its line, or one of PyTorch's functions or modules, which computes the reference results."""
    if isinstance(loss, str):
        return Loss(loss)
    name = getattr(loss, "__name__", type(loss).__name__)
    if getattr(loss, "reduction", "mean") != "mean":
        fail(
            f"loss: {name}: expected reduction='mean', found {loss.reduction!r}. Way out: a line, in which "
            "weight=B makes the mean over B rows a sum"
        )
    if name in ("mse_loss", "MSELoss"):
        return Loss("mse weight=2", loss)
    if name in ("huber_loss", "HuberLoss"):
        return Loss(f"huber delta={getattr(loss, 'delta', 1.0)!r}", loss)
    if name in ("smooth_l1_loss", "SmoothL1Loss") and getattr(loss, "beta", 1.0) > 0:
        beta = getattr(loss, "beta", 1.0)
        return Loss(f"huber delta={beta!r} weight={1 / beta!r}", loss)
    fail(
        f"loss: {name} has no line that is known here. Way out: its line as a string, for example 'ce "
        "min=-10 max=10' or 'quantile', and check=, the value of your loss, which is compared"
    )


def critic_loss(heads: list[Head], f: Tensor, t: Tensor, w: Tensor, torch: Any) -> Tensor:
    """The loss of one critic for outputs f [B, K] and targets t [B, T], by PyTorch's own function
    if that is given, which has to be that of the line."""

    def of(heads: list[Head], f: Tensor, t: Tensor) -> Tensor:
        return mean_loss(heads, f, t, w, torch, lambda x: torch.logsumexp(x, -1))

    ours = of(heads, f, t)
    if not any(loss.function for loss, _ in heads):
        return ours
    theirs: Any = sum(
        loss.function(one, y) if loss.function else of([(loss, one.shape[-1])], one, y)
        for loss, one, y in _parts(heads, f, t)
    )
    value = float(ours.detach())
    if theirs.shape != ours.shape or not abs(float(theirs.detach()) - value) <= 1e-4 * abs(value) + 1e-12:
        fail(
            f"loss: expected the mean over rows of {' and '.join(loss.text for loss, _ in heads)}, "
            f"{value:.8g}, found {theirs.detach().numpy()} from the function that is given. Way out: "
            "the line of your loss as a string, and check=, the value of your loss"
        )
    return theirs
