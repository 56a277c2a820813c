"""Descriptions of critics (*.arch), as libkappascope reads them: layers, shapes of arrays, losses; the value
of losses, and the functions of PyTorch that have such a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kappascope.library import library
from kappascope.names import Shapes, Tensor
from kappascope.refusal import fail

LOSS = re.compile(r"^\s*loss\s+([^#\r\n]*)", re.M)  # a line in a description


class Loss:
    """A line `loss NAME option=value...`, with or without its first word, as the library reads it; delta is
    kappa of a quantile loss. function: PyTorch's, which is compared with the line."""

    def __init__(self, text: str, function: Any = None) -> None:
        if not isinstance(text, str):
            name = getattr(text, "__name__", type(text).__name__)
            fail(f"loss: expected a line, such as 'mse' for the mean of (f - t)^2 / 2, found {name}")
        words = text.split()
        self.function, self.text = function, " ".join(words[words[:1] == ["loss"] :])
        _, _, (head,) = library().parts(f"dense 2\nloss {self.text}\n", 1, ("arch:2:", "loss:"))
        self.name, self.weight, self.delta = head.loss.decode(), head.weight, head.delta
        self.options = self.name, head.min, head.max, head.delta, head.weight


Head = tuple[Loss, int]  # the loss of a head, and its outputs


@dataclass
class Layer:
    """A layer of a description: the name of its group ("00_dense"), its parameters and its state as {name:
    shape}."""

    group: str
    kind: str
    params: Shapes = field(default_factory=dict)
    state: Shapes = field(default_factory=dict)
    trainable: bool = True


def _shapes(arrays: Any) -> Shapes:
    return {a.name.decode(): (a.rows, a.columns) if a.rows else (a.columns,) for a in arrays if a.name}


class Description:
    """What a description says for an input of this many columns: its layers in the order of their numbers,
    the width of its output, the number of trained parameters, whether batch normalization joins the rows, and
    the losses of its heads as [(loss, outputs)], none for the description of an actor. source: its name in
    messages. Raises Refused."""

    def __init__(self, text: str, inputs: int, source: str = "description") -> None:
        sizes, layers, heads = library().parts(text, inputs, ("arch:", f"{source}:"))
        self.layers = [
            Layer(x.name.decode(), x.kind.decode(), _shapes(x.parameter), _shapes(x.state), x.trainable)
            for x in layers
        ]
        self.outputs, self.parameters = sizes.outputs, sizes.parameters
        self.joint = any(x.joint for x in layers)
        self.heads: list[Head] = [(Loss(line), head.outputs) for line, head in zip(LOSS.findall(text), heads)]

    def trained(self) -> list[Layer]:
        """The layers, those that are not trained without their parameters."""
        return [x if x.trainable else Layer(x.group, x.kind) for x in self.layers]


# --- the value of losses ---


def _huber(d: Any, delta: float, xp: Any) -> Any:
    return xp.where(abs(d) <= delta, 0.5 * d * d, delta * (abs(d) - delta / 2))


def _loss_rows(loss: Loss, f: Any, t: Any, xp: Any) -> Any:
    """The loss of each row [B], of outputs f [B, K] and targets t [B, T], by functions of torch or JAX
    (xp), without its weight. The formulas are those of analysis/LOSSES.md."""
    if loss.name == "mse":
        rows = 0.5 * (f - t) ** 2 / f.shape[-1]
    elif loss.name == "huber":
        rows = _huber(f - t, loss.delta, xp) / f.shape[-1]
    elif loss.name == "ce":
        rows = t.sum(-1) * xp.logsumexp(f, -1) - (t * f).sum(-1)
    else:
        k = f.shape[-1]
        q = xp.asarray((2 * np.arange(k) + 1) / (2 * k)).reshape(1, k, 1)
        d = t[:, None, :] - f[:, :, None]
        rows = xp.where(d < 0, 1 - q, q) * _huber(d, loss.delta, xp) / t.shape[-1]
    return rows.reshape(len(f), -1).sum(-1)


def _parts(heads: list[Head], f: Any, t: Any) -> Iterator[tuple[Loss, Any, Any]]:
    """Each head's loss, outputs and targets, which lie side by side in f and t."""
    at = 0
    for loss, outputs in heads:
        yield loss, f[:, at : at + outputs], t if len(heads) == 1 else t[:, at : at + outputs]
        at += outputs


def mean_loss(heads: list[Head], f: Any, t: Any, w: Any, xp: Any) -> Any:
    """The mean over rows of the sum over heads, of outputs f [B, K] and targets t [B, T]; w: weights of the
    rows [B]."""
    return sum(
        loss.weight * (_loss_rows(loss, one, y, xp) * w).sum() / len(f)
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
    ours = mean_loss(heads, f, t, w, torch)
    if not any(loss.function for loss, _ in heads):
        return ours
    theirs: Any = sum(
        loss.function(one, y) if loss.function else mean_loss([(loss, one.shape[-1])], one, y, w, torch)
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
