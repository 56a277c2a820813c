"""Critics of any program as checkpoints, from arrays: save_arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from kappascope.checkpoint import write_checkpoint
from kappascope.description import LOSS, Description, Loss
from kappascope.maps import read_text
from kappascope.minibatches import read_minibatches, read_results, read_targets, read_weights, real_array
from kappascope.names import Array, Arrays, Path
from kappascope.refusal import did_you_mean, fail

_ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}


def described(arch: Path, loss: str | None, inputs: int) -> tuple[str, Description]:
    """The text of a description, given by a path or as text, with its loss; and what it says. inputs:
    columns of the input. Raises Refused."""
    if not isinstance(arch, (str, os.PathLike)):
        fail(f"arch: expected the path of a description, or its text, found {type(arch).__name__}")
    arch, source = os.fspath(arch), "description"
    # A description of one line is a dense.
    if "\n" not in arch and (os.path.exists(arch) or arch.split()[:1] != ["dense"]):
        if not os.path.exists(arch):
            fail(f"{arch}: no such file. Expected the path of a description, or its text")
        arch, source = read_text(arch), arch
    arch = arch.removeprefix("\ufeff").rstrip() + "\n"
    has_loss = LOSS.search(arch)
    if loss is None:
        if not has_loss:
            fail("loss: expected it as an argument or as the last line of the description")
        return arch, Description(arch, inputs, source)
    given = Loss(loss)
    arch += "" if has_loss else f"loss {given.text}\n"
    description = Description(arch, inputs, source)
    if [one.options for one, _ in description.heads] != [given.options]:
        text = ", ".join(one.text for one, _ in description.heads)
        fail(f"loss: the description has {text!r}, the argument is {given.text!r}")
    return arch, description


def _critics(what: str, given: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> Arrays:
    """The arrays as [E, ...], with one E. shapes: of one critic."""
    found = {name: real_array(f"{what}: {name}", value) for name, value in given.items()}
    lines = [
        f"{name}: the description has no such array{did_you_mean(name, shapes)}"
        for name in found
        if name not in shapes
    ]
    lines += [f"{name} {list(shape)} is missing" for name, shape in shapes.items() if name not in found]
    there = {name: found[name] for name in shapes if name in found}
    if all(a.shape == shapes[name] for name, a in there.items()):  # one critic, without E
        there = {name: a[None] for name, a in there.items()}
    ensemble = next((len(a) for name, a in there.items() if a.ndim == len(shapes[name]) + 1), 1)
    for name, a in there.items():
        if a.shape != (ensemble, *shapes[name]):
            turned = a.ndim > 1 and (*a.shape[:-2], *a.shape[:-3:-1]) == (ensemble, *shapes[name])
            hint = ": transpose it, kernels are [in, out]" if turned else ""
            lines.append(f"{name}: expected {[ensemble, *shapes[name]]}, found {list(a.shape)}{hint}")
    if lines:
        fail(f"{what}: expected those of the description, as [critics, ...]:", lines)
    return there


def assumed(adam: Mapping[str, Any], names: list[str]) -> dict[str, str]:
    """The root attribute with the names of Adam's constants that were not given; a warning has them, too."""
    if not names:
        return {}
    listing = ", ".join(f"{name} = {adam[name]:g}" for name in names)
    warnings.warn(
        f"optimizer: assumed {listing}, which it does not tell: give those of the training", stacklevel=3
    )
    return {"adam_assumed": " ".join(names)}


def save_arrays(
    path: Path,
    arrays: Mapping[str, Any],
    arch: Path,
    inputs: Any,
    targets: Any,
    loss: str | None = None,
    results: Mapping[str, Any] | None = None,
    optimizer: Mapping[str, Any] | None = None,
    step: int | None = None,
    weights: Any = None,
    attributes: Mapping[str, Any] | None = None,
) -> str:
    """Writes critics of any program as a checkpoint, and returns their description:

        kappascope.save_arrays("mine.h5", {"00_dense/kernel": w1, "00_dense/bias": b1, "02_dense/kernel": w2,
            "02_dense/bias": b2}, "dense 64\\nrelu\\ndense 1\\n", x, y, loss="mse", results={"output": q})

    arrays     {"NN_kind/name": array}: the parameters of each layer, [E, ...] for E critics, in the
               description's shapes (kernels are [in, out]); running statistics may be left out
    arch       the description: the path of an .arch file, or its text; without a line `loss` if
               loss is given
    inputs     [N, R, D] for N minibatches of R rows, or [R, D] for one
    targets    [N, B, K], [N, B], or [N, B, E, K] if each critic has its own; without N for one
               minibatch
    loss       a line of the description, such as "mse" or "ce min=-10 max=10"
    results    what the program computes for these minibatches, with which the analyzer compares its
               own: "output" [N, R, E, K] in training mode, "loss" [N], the sum over the critics,
               "gradient_norm" [N]. Without any, a wrong layout is not noticed
    optimizer  {"m": arrays, "v": arrays, "step": updates}: Adam's moments; also "beta1", "beta2", "eps",
               else 0.9, 0.999 and 1e-8, which a warning says, and the file's attribute adam_assumed
    step       environment steps so far
    weights    [N, B], weights of the rows that multiply the loss
    attributes further root attributes, such as {"gamma": 0.99}

    Raises Refused."""
    read, batched = read_minibatches({"input": inputs})
    x: Array = read["input"]
    arch, description = described(arch, loss, x.shape[2])
    layers = description.layers
    shapes = {f"{one.group}/{name}": s for one in layers for name, s in one.params.items()}
    states = {f"{one.group}/{name}": s for one in layers for name, s in one.state.items()}
    stated = any(name in arrays for name in states) or any(one.kind == "batchrenorm" for one in layers)
    critics = _critics("arrays", arrays, {**shapes, **states} if stated else shapes)
    ensemble = len(next(iter(critics.values())))
    t = read_targets(targets, batched, x.shape[:2], description.heads, ensemble, description.joint)
    w = read_weights(weights, t)
    batch = {"input": x, "target": t} | ({} if w is None else {"weight": w})
    batch |= read_results("results", results or {}, (*x.shape[:2], ensemble, description.outputs), t.shape[1])
    adam: dict[str, Any] | None = None
    root = dict(attributes or {})
    if optimizer is not None:
        trained = {
            f"{one.group}/{name}": s for one in description.trained() for name, s in one.params.items()
        }
        if not {"m", "v", "step"} <= set(optimizer):
            fail(f"optimizer: expected m, v and step, found {', '.join(map(str, optimizer)) or 'none'}")
        adam = {name: optimizer.get(name, value) for name, value in (*_ADAM.items(), ("step", 0))}
        adam |= {name: _critics(f"optimizer: {name}", optimizer[name], trained) for name in "mv"}
        root = assumed(adam, [name for name in _ADAM if name not in optimizer]) | root
    write_checkpoint(path, arch, ensemble, critics, batch, adam, root, step)
    return arch
