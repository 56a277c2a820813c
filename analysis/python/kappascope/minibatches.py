"""Inputs, targets and weights of minibatches, from whatever framework."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from kappascope.arguments import plain
from kappascope.description import Head, Loss
from kappascope.names import Array, Arrays
from kappascope.refusal import fail, first_line

ONE_ROW = "batch normalization over minibatches of one row: the outputs do not depend on the inputs"
RESULTS = "output", "loss", "gradient_norm"  # of another program, with which the analyzer compares its own


def real_array(name: str, value: Any) -> Array:
    """A real array, whatever framework it comes from."""
    if hasattr(value, "keys"):
        keys = ", ".join(map(str, value.keys()))
        fail(
            f"{name}: expected one array, found a dictionary with {keys}. Way out: a module whose forward "
            "takes each of these arrays, and gives the critic the dictionary"
        )
    objects = isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype == object
    if isinstance(value, (list, tuple)) or objects:
        parts = [real_array(name, part) for part in value]
        if len({part.shape for part in parts}) > 1:
            shapes = ", ".join(str(list(part.shape)) for part in parts)
            fail(
                f"{name}: expected minibatches of one shape, found {shapes}. Way out: leave the last one out "
                "(drop_last=True of a DataLoader); or, without batch normalization, fill it up with rows of "
                "weight 0, and multiply the weights of the others by the number of all rows / the number of "
                "these"
            )
        return np.array(parts)
    try:
        array = plain(value)
    except (RuntimeError, TypeError) as error:  # of tensors that are sparse, nested or on the device "meta"
        fail(
            f"{name}: expected an array with values: {first_line(error)}. Way out: to_dense() of a sparse "
            "tensor; minibatches of one shape, with values"
        )
    if array.dtype.kind != "f":
        way = "convert them, as the training does"
        if name == "targets":
            way = "class indices of a ce loss become distributions: one_hot(y, K) as real numbers"
        elif name.startswith("inputs"):
            way += (
                "; the number of an action becomes a real number that forward converts by .long(), or a "
                "one-hot vector"
            )
        fail(f"{name}: expected real numbers, found {array.dtype}. Way out: {way}")
    array = array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32)
    if not np.isfinite(array).all():
        fail(f"{name}: expected finite numbers, found {array[~np.isfinite(array)][0]}")
    return array


def read_minibatches(inputs: Mapping[Any, Any]) -> tuple[dict[Any, Array], bool]:
    """{name: [N, R, D]}, and whether the caller's arrays had the first dimension."""
    arrays = {name: real_array(f"inputs: {name}", value) for name, value in inputs.items()}
    shapes = ", ".join(f"{name} {list(a.shape)}" for name, a in arrays.items())
    dims = {a.ndim for a in arrays.values()}
    if not arrays or len(dims) != 1 or not dims <= {2, 3}:
        fail(
            "inputs: expected each as [N, R, D], or each as [R, D] for one minibatch, found "
            f"{shapes or 'none'}. Way out: reshape(..., 1) for one number in a row; for images, export the "
            "part behind the encoder, with the features as its input"
        )
    if dims == {2}:
        arrays = {name: a[None] for name, a in arrays.items()}
    if len({a.shape[:2] for a in arrays.values()}) != 1 or 0 in next(iter(arrays.values())).shape:
        fail(f"inputs: expected as many minibatches and rows of each, at least one, found {shapes}")
    return arrays, dims == {3}


def read_targets(
    targets: Any, batched: bool, rows: tuple[int, ...], heads: list[Head], ensemble: int, joint: bool
) -> Array:
    """[N, B, K], or [N, B, E, K] if each critic has its own; several heads side by side. rows: N
    and R of the inputs; heads: [(loss, outputs)]."""
    parts = targets if len(heads) > 1 and isinstance(targets, (list, tuple)) else [targets]
    if len(parts) != len(heads):
        fail(f"targets: expected a list with the targets of each of {len(heads)} heads")
    found = [
        _target(value, batched, rows, (*head, ensemble), len(heads) > 1) for value, head in zip(parts, heads)
    ]
    count = found[0].shape[1]
    if any(t.shape[1] != count for t in found):
        fail(f"targets: expected as many rows for each head, found {[t.shape[1] for t in found]}")
    if count < rows[1] and not joint:
        fail(
            f"targets: expected {rows[1]} rows per minibatch, as the inputs have, found {count}. Rows "
            "without a target have a meaning in batch normalization only"
        )
    if joint and rows[1] == 1:
        warnings.warn(ONE_ROW, stacklevel=3)
    if any(t.ndim == 4 for t in found):
        found = [t if t.ndim == 4 else np.repeat(t[:, :, None], ensemble, 2) for t in found]
    return np.concatenate(found, -1)


def targets_of_heads(targets: Any, batched: bool, count: int) -> list[Array]:
    """The targets of critics that become heads: each has its own, [N, B, E, T], or all have the same."""
    t = real_array("targets", targets)
    own = t.ndim == 3 + batched and t.shape[-2] == count
    return [t[..., i, :] if own else t for i in range(count)]


def _target(
    value: Any, batched: bool, rows: tuple[int, ...], head: tuple[Loss, int, int], several: bool
) -> Array:
    """The targets of one head: [N, B, K] or [N, B, E, K]. head: (loss, outputs, E)."""
    loss, outputs, ensemble = head
    t = real_array("targets", value)
    shape = list(t.shape)
    t = t if batched else t[None]
    own = t.ndim == 4 and t.shape[2] == ensemble
    t = t[..., None] if t.ndim == 2 and outputs == 1 else t
    free = loss.name == "quantile" and not several  # any number of samples
    if (
        not (t.ndim == 3 or own)
        or t.shape[0] != rows[0]
        or not 1 <= t.shape[1] <= rows[1]
        or t.shape[-1] != outputs
        and not free
    ):
        last = "T" if free else outputs
        ways = {"ce": ". Way out: project each target on the atoms, as the training does"}
        if outputs > 1:
            taken = ". Way out: the value of the taken action alone, (q * one_hot).sum(-1)"
            ways |= {"mse": taken, "huber": taken}
        fail(
            f"targets: loss {loss.name} with {outputs} outputs: expected [N, B, {last}]"
            + (" or [N, B]" if outputs == 1 else "")
            + f", or [N, B, E, {last}] if each critic has its own, with N = {rows[0]}, B <= {rows[1]}, E = "
            f"{ensemble}"
            + ("" if batched else ", without N as the inputs have none")
            + f", found {shape}"
            + ways.get(loss.name, "")
        )
    if loss.name == "ce" and ((t < 0).any() or (abs(t.sum(-1) - 1) > 1e-3).any()):
        fail(
            "targets: loss ce: expected distributions over the atoms (no negative entry, sums of 1), "
            f"found sums from {t.sum(-1).min():g} to {t.sum(-1).max():g} and entries from {t.min():g}. Way "
            "out: the softmax of what are logits"
        )
    return t


def read_weights(weights: Any, targets: Array) -> Array | None:
    """[N, B] in float64, or None."""
    if weights is None:
        return None
    w, shape = real_array("weights", weights), targets.shape[:2]
    if w.size != math.prod(shape) or w.shape not in (shape, shape[1:]) or (w < 0).any():
        fail(
            f"weights: expected numbers of at least 0 of the shape {list(shape)}, one for each row of the "
            f"targets, found {list(w.shape)}, the least {w.min() if w.size else 0:g}"
        )
    return w.reshape(shape).astype(np.float64)


def read_results(what: str, given: Mapping[str, Any], shape: tuple[int, ...], rows: int) -> Arrays:
    """Results of the other program, for all minibatches or for the first one: outputs [N, R, E, K] or [N, B,
    E, K], others [N]. shape: (N, R, E, K); rows: B."""
    for name in given:
        if name not in RESULTS:
            fail(f"{what}: expected output, loss or gradient_norm, found {name}")
    found = {name: real_array(f"{what}: {name}", value) for name, value in given.items()}
    for name, a in found.items():
        wants = [(n, r, *shape[2:]) for n in (shape[0], 1) for r in (shape[1], rows)]
        wants = wants if name == "output" else [(n,) for n in (shape[0], 1)]
        if a.shape not in wants:
            alone = "" if shape[0] == 1 else ", or those of the first minibatch alone"
            fail(f"{what}: {name}: expected {list(wants[0])}{alone}, found {list(a.shape)}")
    return found
