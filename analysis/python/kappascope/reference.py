"""Reference results: outputs, losses and norms of the gradient that the framework itself computes. The
analyzer compares them with its own before it analyzes anything."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from kappascope.critics import Critic
from kappascope.description import Head, critic_loss, mean_loss
from kappascope.minibatches import real_array
from kappascope.names import Array, Arrays
from kappascope.refusal import fail, first_line

NO_MOMENTS = "Way out: leave the optimizer out; only the operator `preconditioned` needs it"


def _factor(ratios: Array, ensemble: int, heads: list[Head], targets: Array) -> tuple[float, str] | None:
    """By how much another loss of the same kind is larger than that of the lines, and what it is: the fewest
    differences that give the ratio."""
    (loss, outputs), several = heads[0], len(heads) > 1
    kappa = loss.delta or 1.0
    summed = loss.name in ("mse", "huber")
    samples = targets.shape[-1] if loss.name == "quantile" else 1
    known = [
        (2.0 if all(one.name == "mse" for one, _ in heads) else 1.0, "without the 1/2 of mse"),
        (1 / ensemble, "the mean over the critics, where the sum is meant"),
        (1 / len(heads), "the mean over the heads, where the sum is meant"),
        (1.0 if several or summed else 1 / outputs, "the mean over the outputs, where the sum is meant"),
        (outputs if summed and not several else 1.0, "the sum over the outputs, where the mean is meant"),
        (samples, "the sum over the targets, where the mean is meant"),
        (1 / kappa, f"divided by {kappa:g}, as smooth_l1_loss is by beta"),
        (targets.shape[1], "the sum over the rows, where the mean is meant"),
    ]
    known = [one for one in known if one[0] != 1]
    for count in range(1, len(known) + 1):
        for some in itertools.combinations(known, count):
            factor = math.prod(one for one, _ in some)
            if np.allclose(ratios, factor, rtol=1e-3):
                return factor, ", and ".join(what for _, what in some)
    return None


def compare_loss(check: Any, found: Array, ensemble: int, heads: list[Head], targets: Array) -> None:
    """Compares the losses [N] with those that the caller's training computed, a number for each or
    their mean, to 0.1%. targets: [N, B, T] or [N, B, E, T]."""
    given = np.atleast_1d(real_array("check", check)).astype(float).ravel()
    here = found if given.size == found.size else np.array([found.mean()])
    if given.size != here.size:
        fail(f"check: expected one loss, or one for each of {found.size} minibatches, found {given.size}")
    if np.allclose(given, here, rtol=1e-3, atol=1e-12):
        return
    at = int(np.argmax(abs(given - here)))
    hint = (
        "Other inputs, inputs in another order, other targets, another loss, or evaluation mode look like "
        "this"
    )
    factor = _factor(given / here, ensemble, heads, targets) if here.all() else None
    if factor:
        ratio, what = factor
        needs = f"loss={heads[0][0].name!r} needs weight={ratio * heads[0][0].weight:g}"
        if len(heads) > 1:
            needs = f"every loss needs {ratio:g} times its weight"
        hint = f"It is {ratio:g} times as large. Is it {what}? Then {needs}"
    where = f"minibatch {at}" if here.size == found.size else f"all {found.size} minibatches"
    fail(
        f"check: expected the loss {here[at]:.8g} of {where} (mean over rows, sum over critics), found "
        f"{given[at]:.8g}. {hint}"
    )


def torch_results(
    critics: list[Critic], inputs: Arrays, targets: Array, weights: Array, heads: list[Head]
) -> Arrays:
    """For each minibatch: what the first layers read, and PyTorch's outputs, loss and norm of the
    gradient."""
    torch, width = critics[0].graph.torch, sum(outputs for _, outputs in heads)
    found: dict[str, list[Any]] = {"input": [], "output": [], "loss": [], "gradient_norm": []}
    for n, target in enumerate(targets):
        outputs = []
        for critic in critics:
            seen, _ = critic.graph.run({key: a[n] for key, a in inputs.items()})
            critic.returned.check_order(seen)
            for chain in critic.chains:
                chain.check_norms(seen)
            here = [chain.input(seen) for chain in critic.chains]
            if len(found["input"]) == n:
                found["input"].append(here[0])
            first = found["input"][n]
            if any(x.shape != first.shape or not np.allclose(x, first, rtol=1e-12, atol=0) for x in here):
                fail(
                    f"{critic.graph.name}: expected the same input for all critics, found another one than "
                    "of the first critic, such as from a normalizer or a frozen network of its own. Way out: "
                    "save each critic in a file of its own"
                )
            outputs.append(critic.outputs(seen, width))
        f = torch.cat(outputs)[:, : len(target)]
        t, w = [torch.as_tensor(a, dtype=f.dtype) for a in (target, weights[n])]
        total = sum(
            critic_loss(heads, one, t[:, e] if t.dim() == 3 else t, w, torch) for e, one in enumerate(f)
        )
        parameters = [p for critic in critics for p in critic.graph.module.parameters() if p.requires_grad]
        gradients = torch.autograd.grad(total, parameters, allow_unused=True)
        squares = [float((g.double() ** 2).sum()) for g in gradients if g is not None]
        found["output"].append(f.detach().numpy().transpose(1, 0, 2))
        found["loss"].append(float(total.detach()))
        found["gradient_norm"].append(math.sqrt(sum(squares)))
    return {key: np.array(value) for key, value in found.items()}


def _path_of(keys: Any) -> str:
    """The names and numbers of dictionaries, attributes and lists, with /; without the last one of a box of
    Flax."""
    names = [str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", "")))) for k in keys]
    boxed = type(keys[-1]).__name__ in ("GetAttrKey", "FlattenedIndexKey") if keys else False
    return "/".join(names[:-1] if boxed and names[-1] in ("value", "raw_value", "0") else names)


def _paths(tree: Any) -> tuple[list[str], list[Any], Any]:
    """The paths and the (keys, leaf) of a tree of JAX, and its structure. The paths start with params/ also
    where the parameters have no collection of this name around them."""
    import jax

    found, structure = jax.tree_util.tree_flatten_with_path(tree)
    paths = [_path_of(keys) for keys, _ in found]
    start = "" if any(path.startswith("params/") for path in paths) else "params/"
    return [start + path for path in paths], found, structure


def weights_of(tree: Any) -> set[str]:
    """The paths of attributes `weight`: kernels of Equinox, [out, in]."""
    paths, found, _ = _paths(tree)
    return {p for p, (keys, _) in zip(paths, found) if keys and getattr(keys[-1], "name", "") == "weight"}


def leaves_of(tree: Any) -> dict[str, Any]:
    """{path with /: leaf}"""
    paths, found, _ = _paths(tree)
    return {path: leaf for path, (_, leaf) in zip(paths, found)}


def nest(tree: Any, others: Mapping[str, Any]) -> Any:
    """The tree with other leaves."""
    paths, found, structure = _paths(tree)
    return structure.unflatten([others.get(path, leaf) for path, (_, leaf) in zip(paths, found)])


def _forward(apply: Callable[..., Any], variables: Any, inputs: Mapping[Any, Any]) -> Any:
    """apply's outputs; without the changed state that it may return as well. inputs: {name: array}
    with strings as names for apply's named arguments, else numbers."""
    named = {name: x for name, x in inputs.items() if isinstance(name, str)}
    variables = nest(variables, {})  # modules of NNX may be used in one trace only
    out = apply(variables, *[x for name, x in inputs.items() if name not in named], **named)
    if isinstance(out, tuple) and len(out) == 2 and hasattr(out[1], "items"):
        out = out[0]
    return out


def _check_mode(
    apply: Callable[[Any], Any], inputs: Mapping[Any, Any], outputs: Any, joint: bool | None
) -> None:
    """Batch normalization in training mode lets the rows depend on each other, and nothing else
    does. apply(inputs) is [E, R, K]; outputs [E, B, K]: what it gave for all rows. joint: None for batch
    renormalization, whose outputs depend on other rows only where it clips."""
    part = outputs.shape[1] // 2
    if part < 2:
        return
    whole = np.asarray(outputs, np.float64)[:, :part]
    half = np.asarray(apply({name: x[:part] for name, x in inputs.items()}), np.float64)
    bound = {"float64": 1e-9, "float32": 1e-4}.get(str(outputs.dtype), 1e-2)
    alike = np.allclose(whole, half, rtol=bound, atol=bound * np.abs(whole).max())
    if joint and alike:
        fail(
            "apply: the description has a batchnorm, and apply gives the same values for half of the "
            "rows: it is in evaluation mode. Way out: apply=lambda v, *x: module.apply(v, *x, train=True, "
            "mutable=['batch_stats'])[0]"
        )
    if joint is False and not alike:
        fail(
            "apply: the description has no batchnorm, and apply gives other values for half of the rows: "
            "its rows depend on each other, or it is random (dropout). Way out: deterministic=True, or a "
            "batchnorm in the description"
        )


class FlaxResults:
    """Critics of Flax: apply, the sets of variables, the taken paths and whether each is trained, E of a
    set, and the heads [(loss, outputs)]."""

    def __init__(
        self,
        apply: Callable[..., Any],
        sets: list[Any],
        taken: Mapping[str, bool],
        ensemble: int,
        heads: list[Head],
    ) -> None:
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp = jax, jnp

        def double(leaf: Any) -> Any:
            """In float64; counters and keys of random numbers as they are."""
            kind = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
            real = jnp.issubdtype(kind, np.floating)
            return jnp.asarray(real_array("variables", leaf), jnp.float64) if real else leaf

        self.apply, self.ensemble, self.heads = apply, ensemble, heads
        self.others = {
            path
            for v in sets
            for path, leaf in leaves_of(v).items()
            if path not in taken and "float" in str(getattr(leaf, "dtype", ""))
        }
        self.sets = [jax.tree_util.tree_map(double, v) for v in sets]
        paths = [path for path, trained in taken.items() if trained]
        self.trained = [{path: leaves_of(v)[path] for path in paths} for v in self.sets]

    def outputs(self, variables: Any, x: Mapping[Any, Any]) -> Any:
        """[E, R, K] of the critics in one set of variables."""
        rows, out = len(next(iter(x.values()))), _forward(self.apply, variables, x)
        if self.ensemble > 1 and tuple(out.shape[:2]) != (self.ensemble, rows):
            fail(
                f"apply: expected outputs [{self.ensemble}, {rows}, ...], with the critics first as in the "
                f"parameters, found {list(out.shape)}"
            )
        return out.reshape(self.ensemble, rows, -1)

    def loss(self, trained: Any, x: Mapping[Any, Any], t: Any, w: Any) -> tuple[Any, Any]:
        """The loss of a minibatch, and the outputs of its rows with targets, [E, B, K]."""
        jnp, logsumexp = self.jnp, self.jax.nn.logsumexp
        xp = SimpleNamespace(where=jnp.where, asarray=jnp.asarray, logsumexp=logsumexp)
        f = jnp.concatenate([self.outputs(nest(v, leaves), x) for v, leaves in zip(self.sets, trained)])
        f = f[:, : len(t)]
        own = [t[:, e] if t.ndim == 3 else t for e in range(len(f))]
        return sum(mean_loss(self.heads, one, y, w, xp) for one, y in zip(f, own)), f

    def check_outputs(self, x: Mapping[Any, Any]) -> None:
        """apply takes the variables as they were given, and gives one array with as many outputs as the
        description."""
        out: Any = None
        errors = []
        for sets in (self.sets, [{"params": v} for v in self.sets]):
            try:
                self.sets, out = sets, self.jax.eval_shape(lambda x, v=sets[0]: _forward(self.apply, v, x), x)
                break
            except Exception as error:  # whatever apply does with these variables
                errors.append(f"{type(error).__name__}: {first_line(error)}")
        if len(errors) == 2:
            shapes = ", ".join(f"{name} {list(a.shape)}" for name, a in x.items())
            fail(
                f"apply: fails for the variables as they are given, and the first minibatch ({shapes}): "
                f"{errors[0]}. Way out: apply=lambda v, x: ..., which computes the outputs from these"
            )
        if not hasattr(out, "shape"):
            fail(
                f"apply: expected the critics' outputs as one array, found {type(out).__name__}. Way out: "
                "apply=lambda v, *x: jnp.stack(module.apply(v, *x)); several heads side by side, "
                "jnp.concatenate(module.apply(v, *x), -1)"
            )
        rows, want = len(next(iter(x.values()))), sum(outputs for _, outputs in self.heads)
        if math.prod(out.shape) != want * self.ensemble * rows:
            fail(
                f"apply: expected {want} outputs for each of {rows} rows and {self.ensemble} critics, "
                f"found {list(out.shape)}"
            )

    def check_others(self, x: Mapping[Any, Any]) -> None:
        """The outputs depend on no variables that are not taken, but for running statistics: else some
        trained parameters would be missing."""
        jax, jnp = self.jax, self.jnp
        for v in self.sets:
            others = {
                path: leaf
                for path, leaf in leaves_of(v).items()
                if path in self.others and not path.startswith("batch_stats/")
            }

            def weighted(others: Any, v: Any = v) -> Any:
                out = self.outputs(nest(v, others), x)
                return (out.ravel() * jnp.linspace(0.5, 1.5, out.size)).sum()

            lines = [
                f"{path} {list(g.shape)}: the outputs depend on it, and the description has no place for it. "
                "Way out: a layer for it, in names; if it is not trained, a constant of apply in place of a "
                "variable"
                for path, g in (jax.grad(weighted)(others) if others else {}).items()
                if jnp.any(g != 0)
            ]
            if lines:
                fail("the description and the variables do not agree:", lines)

    def results(self, minibatches: tuple[Mapping[Any, Array], Array, Array], joint: bool | None) -> Arrays:
        """Outputs, losses and norms of the gradient, in float64 whatever the type of the
        variables. joint: as for _check_mode."""
        jax, jnp = self.jax, self.jnp
        inputs, targets, weights = minibatches
        found: dict[str, list[Any]] = {"output": [], "loss": [], "gradient_norm": []}
        compiled = jax.jit(jax.value_and_grad(self.loss, has_aux=True))
        for n, target in enumerate(targets):
            x = {name: jnp.asarray(a[n], jnp.float64) for name, a in inputs.items()}
            if n == 0:
                self.check_outputs(x)
                self.check_others(x)
            (total, f), gradients = compiled(
                self.trained, x, jnp.asarray(target, jnp.float64), jnp.asarray(weights[n], jnp.float64)
            )
            if n == 0:
                forward = jax.jit(lambda x: self.outputs(self.sets[0], x))
                _check_mode(forward, x, f[: self.ensemble], joint)
            leaves = jax.tree_util.tree_leaves(gradients)
            squares = [float((g.astype(jnp.float64) ** 2).sum()) for g in leaves]
            found["output"].append(np.asarray(f).transpose(1, 0, 2))
            found["loss"].append(float(total))
            found["gradient_norm"].append(math.sqrt(sum(squares)))
        kind = np.float64 if f.dtype == jnp.float64 else np.float32
        return {key: np.array(a, kind) for key, a in found.items()}
