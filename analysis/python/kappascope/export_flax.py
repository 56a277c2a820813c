"""Critics of Flax, or of any framework of JAX, as checkpoints: save_flax."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kappascope.checkpoint import write_checkpoint
from kappascope.description import Layer
from kappascope.export_arrays import assumed, described
from kappascope.minibatches import read_minibatches, read_targets, read_weights, real_array
from kappascope.names import Array, Arrays, Path
from kappascope.operators import jax_float64
from kappascope.reference import NO_MOMENTS, FlaxResults, compare_loss, leaves_of, weights_of
from kappascope.refusal import did_you_mean, fail

_MODULES = "Dense BatchNorm BatchRenorm LayerNorm RMSNorm Scaler LERP"
FLAX = {name.lower(): name + "_{}" for name in _MODULES.split()}  # "dense": "Dense_{}"


def names_of(names: Mapping[str, str], layers: list[Layer]) -> dict[str, str]:
    """{"NN_kind/param": path}: from names by layer, by parameter, or by kind with {} for its number
    from 0."""
    if not all(isinstance(name, str) for pair in names.items() for name in pair):
        fail("names: expected {layer: module}, both strings, such as {'00_dense': 'Dense_0'}")
    found: dict[str, str] = {}
    counts: dict[str, int] = {}
    used = set()
    for layer in layers:
        count = counts.get(layer.kind, 0)
        counts[layer.kind] = count + 1
        for name in [*layer.params, *layer.state]:
            full = f"{layer.group}/{name}"
            if full in names:
                used.add(full)
                found[full] = names[full]
                continue
            key = layer.group if layer.group in names else layer.kind
            used.add(key)
            try:
                found[full] = f"{names[key].format(count)}/{name}"
            except (AttributeError, IndexError, KeyError, ValueError):
                fail(f"names: {key}: expected a path with {{}} for a number, found {names[key]!r}")
    unused = [key for key in names if key not in used and names[key] != FLAX.get(key)]
    if unused:
        fail(
            f"names: {', '.join(unused)}: the description has no such layer. It has "
            f"{', '.join(x.group for x in layers if x.params)}"
        )
    return found


def _array_at(trees: list[Any], path: str, shape: tuple[int, ...], ensemble: int, turn: bool) -> Array | str:
    """[E, ...] of what the variables have at a path, or what is wrong with it. turn: it is [out, in]."""
    missing = [i for i, tree in enumerate(trees) if path not in tree]
    if missing:
        return f"{path} is not there in the variables of critic {missing[0]}"
    parts = [real_array(path, tree[path]) for tree in trees]
    if turn:
        parts = [a.swapaxes(-1, -2) if a.ndim > 1 else a for a in parts]
    want = (ensemble, *shape) if len(trees) == 1 and ensemble > 1 else shape
    one = (1, *shape) if ensemble == 1 else want  # an ensemble of one, by nn.vmap
    parts = [a.reshape(want) if a.shape == one or a.size == math.prod(want) == 1 else a for a in parts]
    wrong = next((a for a in parts if a.shape != want), None)
    if wrong is not None:
        hint = "" if wrong.ndim <= len(want) else ": for {0} critics, ensemble={0}".format(*wrong.shape)
        return f"expected {list(want)}, found {path} {list(wrong.shape)}{hint}"
    return np.stack(parts) if len(want) == len(shape) else parts[0]


def take(
    sets: list[Any], names: Mapping[str, str], layers: list[Layer], ensemble: int
) -> tuple[Arrays, dict[str, str]]:
    """({"NN_kind/name": [E, ...]}, the taken paths); sets: one set of variables, or that of each
    critic."""
    arrays: Arrays = {}
    taken, lines = {}, []
    trees, turned = [leaves_of(v) for v in sets], weights_of(sets[0])
    for layer in layers:
        for name, shape in {**layer.params, **layer.state}.items():
            full = f"{layer.group}/{name}"
            paths = [start + names[full] for start in ("params/", "batch_stats/", "")]
            path = next((p for p in paths if p in trees[0]), None)
            if path is None:
                if name in layer.params or layer.kind == "batchrenorm":
                    known = [p.split("/", 1)[-1] for p in trees[0]]
                    lines.append(f"{full}: {names[full]} is not there" + did_you_mean(names[full], known))
                continue
            found = _array_at(trees, path, shape, ensemble, name == "kernel" and path in turned)
            if isinstance(found, str):
                lines.append(f"{full}: {found}")
            else:
                arrays[full], taken[full] = found, path
    lines += _unused(trees[0], list(taken.values()))
    if lines:
        listing = "; ".join(f"{p} {list(np.shape(a))}" for p, a in trees[0].items())
        lines.append(f"(the variables are: {listing})")
        if len(sets) > 1:
            lines.append(
                "(a list is one set for each critic. Way out, for a list of layers: {'layers': list})"
            )
        fail("the description and the variables do not agree:", lines)
    states = {f"{layer.group}/{name}" for layer in layers for name in layer.state}
    if not states <= set(arrays):  # a checkpoint has all running statistics or none
        arrays = {full: a for full, a in arrays.items() if full not in states}
    return arrays, taken


def _unused(tree: Mapping[str, Any], taken: list[str]) -> list[str]:
    """A line for each parameter that is not taken, or taken twice."""
    lines = [
        f"{path} {list(np.shape(leaf))} is in the variables, and not in the description or in names"
        for path, leaf in tree.items()
        if path.startswith("params/") and path not in taken and "float" in str(getattr(leaf, "dtype", ""))
    ]
    return lines + [f"{path} is given for several parameters" for path in taken if taken.count(path) > 1]


def _adam_state(part: Any, told: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]] | None:
    """Adam's part of a state of optax, and what inject_hyperparams keeps around it; told: what it keeps
    around `part`."""
    if type(part).__name__ == "ScaleByAdamState":
        return part, told
    told = {**told, **(getattr(part, "hyperparams", None) or {})}
    parts = [part.inner_state] if hasattr(part, "inner_state") else part
    found = (_adam_state(one, told) for one in parts) if isinstance(parts, (tuple, list)) else ()
    return next(filter(None, found), None)


def _constants(told: list[Mapping[str, Any]], given: Mapping[str, float | None]) -> dict[str, Any]:
    """Adam's constants: as the states tell them, else as they are given, else optax's; the last are
    `assumed`."""
    constants: dict[str, Any] = {}
    missing = []
    if any(np.any(np.asarray(one.get("eps_root", 0)) != 0) for one in told):
        fail(f"optimizer: expected eps_root = 0, which the format of checkpoints lacks. {NO_MOMENTS}")
    for name, optax, usual in (("beta1", "b1", 0.9), ("beta2", "b2", 0.999), ("eps", "eps", 1e-8)):
        values = {float(v) for one in told if optax in one for v in np.ravel(np.asarray(one[optax]))}
        if len(values) > 1:
            fail(f"optimizer: expected one {optax}, found {sorted(values)}. {NO_MOMENTS}")
        own, mine = next(iter(values), None), given[name]
        if own is not None and mine is not None and not math.isclose(own, mine, rel_tol=1e-6):
            fail(f"{name}: expected {own:g}, which the optimizer's state has, found {mine!r}")
        missing += [name] if own is None and mine is None else []
        constants[name] = next(one for one in (own, mine, usual) if one is not None)
    return {**constants, "assumed": missing}


def _optax(
    state: Any,
    sets: int,
    names: Mapping[str, str],
    layers: list[Layer],
    ensemble: int,
    given: Mapping[str, float | None],
) -> dict[str, Any] | None:
    """Adam's moments and constants from a state of optax, or of each critic."""
    parts = [_adam_state(s, {}) for s in (state if sets > 1 else [state])]
    found = [part for part in parts if part]
    if len(found) < len(parts):
        fail("optimizer: expected a state of optax.adam or adamw, found none in it. " + NO_MOMENTS)
    states = [part for part, _ in found]
    counts = {int(np.asarray(s.count).ravel()[0]) for s in states}
    if len(counts) > 1:
        fail(f"optimizer: expected one number of steps, found {sorted(counts)}")
    if counts == {0}:
        return None
    adam = {"step": counts.pop(), **_constants([told for _, told in found], given)}
    frozen = {x.group for x in layers if not x.trainable}
    plain = [Layer(x.group, x.kind, x.params) for x in layers]
    for moment, tree in (("m", "mu"), ("v", "nu")):
        taken, _ = take([getattr(s, tree) for s in states], names, plain, ensemble)
        adam[moment] = {key: a for key, a in taken.items() if key.split("/")[0] not in frozen}
    return adam


def save_flax(
    path: Path,
    variables: Any,
    apply: Callable[..., Any],
    arch: Path,
    names: Mapping[str, str] | None = None,
    inputs: Any = (),
    targets: Any = None,
    loss: str | None = None,
    ensemble: int = 1,
    optimizer: Any = None,
    step: int | None = None,
    check: Any = None,
    weights: Any = None,
    attributes: Mapping[str, Any] | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
) -> str:
    """Writes critics of Flax as a checkpoint, and returns their description.

    variables  what module.init returns, {"params": ..., "batch_stats": ...}, or any tree of JAX: the
               parameters of Haiku, a state of NNX, a module of Equinox (whose weights [out, in] are
               transposed); for nn.vmap'ed critics with parameters [E, ...] and ensemble=E; or a
               list of these, one for each critic
    apply      apply(variables, *inputs) -> outputs [R, K] or [R], with ensemble=E [E, R, K] or [E,
               R], of the variables as they are given; several heads side by side. Batch
               normalization in training mode:
               lambda v, *x: module.apply(v, *x, train=True, mutable=["batch_stats"])[0]
    arch       the description: the path of an .arch file, or its text; without a line `loss` if
               loss is given
    names      {layer: module}: "01_dense": "MLP_0/Dense_0"; by parameter, "01_dense/kernel":
               "MLP_0/Dense_0/kernel"; or by kind, with {} for its number from 0: "dense":
               "Dense_{}". What is left out is as in {"dense": "Dense_{}", "layernorm":
               "LayerNorm_{}", "batchnorm": "BatchNorm_{}", "batchrenorm": "BatchRenorm_{}",
               "rmsnorm": "RMSNorm_{}", "scaler": "Scaler_{}", "lerp": "LERP_{}"}. Paths are within
               params and batch_stats
    inputs     what apply takes behind the variables, [N, R, D] each or [R, D] for one minibatch,
               joined in this order as the description's input; a dict is given to apply by its
               names
    optimizer  the state of optax.adam or adamw (a list with a list of variables). The state of another
               rule, such as optax.adamax, can be of the same type and mean something else: leave it out
    beta1, beta2, eps  Adam's constants, where the state does not have them, as it has by
               optax.inject_hyperparams; by default 0.9, 0.999 and 1e-8, which a warning says, and the
               file's attribute adam_assumed
    targets, loss, step, check, weights, attributes  as for save; loss is a line

    Every parameter has to be named, and every one that is named has to be there. Raises Refused."""
    if not isinstance(inputs, dict):  # then their names are numbers
        inputs = dict(enumerate(inputs if isinstance(inputs, (list, tuple)) else (inputs,)))
    arrays, batched = read_minibatches(inputs)
    joined = np.concatenate(list(arrays.values()), -1)
    arch, description = described(arch, loss, joined.shape[2])
    layers, heads = description.layers, description.heads
    if any(layer.kind == "conv2d" for layer in layers):
        # Flax has images and kernels of convolutions in another order than the checkpoint.
        fail(
            "description: conv2d: expected no convolutions here. Way out: save_arrays, with kernels as "
            "configs/README.md has them"
        )
    sets = list(variables) if isinstance(variables, (list, tuple)) else [variables]
    if not sets:
        fail("variables: expected those of at least one critic, found none")
    names = names_of({**FLAX, **(names or {})}, layers)
    parameters, taken = take(sets, names, layers, ensemble)
    t = read_targets(targets, batched, joined.shape[:2], heads, ensemble * len(sets), description.joint)
    w = read_weights(weights, t)
    trained = {f"{x.group}/{name}" for x in layers if x.trainable for name in x.params}
    paths = {path: full in trained for full, path in taken.items()}
    joint = None if any(x.kind == "batchrenorm" for x in layers) else description.joint
    minibatches = arrays, t, np.ones(t.shape[:2]) if w is None else w
    with jax_float64():
        batch = FlaxResults(apply, sets, paths, ensemble, heads).results(minibatches, joint)
    batch |= {"input": joined, "target": t} | ({} if w is None else {"weight": w})
    count = batch["output"].shape[2]
    if check is not None:
        compare_loss(check, batch["loss"], count, heads, t)
    adam, root = None, dict(attributes or {})
    if optimizer is not None:
        given = {"beta1": beta1, "beta2": beta2, "eps": eps}
        adam = _optax(optimizer, len(sets), names, layers, ensemble, given)
        root = assumed(adam, adam.pop("assumed")) | root if adam else root
    write_checkpoint(path, arch, count, parameters, batch, adam, root, step)
    return arch
