"""Critics of Flax, exported and analyzed: python3 export_flax.py ANALYZER FOLDER

As export_torch.py, for the critics of export_critics_flax.py."""

import functools
import inspect
import os
import sys
import time

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

import export_critics_flax as zoo
import export_flax_calls as calls
import kappascope
from export_common import Comparison, main, stored

N, B, OBS, ACTIONS, WIDTH = 3, 24, 5, 3, 12
draw = np.random.default_rng(0)


def normal(*shape):
    return draw.standard_normal(shape, np.float32)


def probabilities(*shape):
    return np.asarray(jax.nn.softmax(2 * normal(*shape), -1))


# The losses in JAX, and the parameters' canonical order: a list of paths within params.


def squared(f, t):
    return ((f.reshape(t.shape) - t) ** 2).mean()


def half_squared(f, t):
    return 0.5 * squared(f, t)


def cross_entropy(f, t):
    return -(t * jax.nn.log_softmax(f, -1)).sum(-1).mean()


def quantile_huber(f, t):
    k = f.shape[1]
    u = t[:, None, :] - f[:, :, None]
    weight = jnp.abs(((jnp.arange(k) + 0.5) / k)[None, :, None] - (u < 0))
    return (weight * optax.losses.huber_loss(u)).mean(2).sum(1).mean()


def huber(f, t):
    return 0.5 * optax.losses.huber_loss(f.reshape(t.shape), t).mean()


def _leaves(tree, path=""):
    """{path: array} of nested dicts."""
    if not isinstance(tree, dict):
        return {path[:-1]: tree}
    return {
        key: leaf
        for name, part in tree.items()
        for key, leaf in _leaves(part, f"{path}{name}/").items()
    }


def _nest(tree, leaves, path=""):
    """The tree with other leaves."""
    if not isinstance(tree, dict):
        return leaves.get(path[:-1], tree)
    return {name: _nest(part, leaves, f"{path}{name}/") for name, part in tree.items()}


def paths(*modules):
    """Every parameter of these modules, in the order of a layer's table."""
    order = ("kernel", "scale", "bias", "scaler")
    names = [f"params/{module}/{parameter}" for module in modules for parameter in order]
    return lambda leaves: [name for name in names if name in leaves]


def blocks(first, block, parts, last):
    return paths(*first, *[f"{block}_{i}/{part}" for i in range(2) for part in parts], *last)


MLP = paths("Dense_0", "Dense_1", "Dense_2", "Dense_3")
ORDERS = {
    "SAC": MLP,
    "MR.Q": MLP,
    "dueling": MLP,
    "heads": MLP,
    "SimBa": blocks(["Dense_0"], "SimBaBlock", ["LayerNorm_0", "Dense_0", "Dense_1"], ["LayerNorm_0", "Dense_1"]),
    "SimBa-V2": blocks(
        ["Dense_0", "Scaler_0"],
        "LERPBlock",
        ["Dense_0", "Scaler_0", "Dense_1", "alpha"],
        ["Dense_1", "Scaler_1", "Dense_2"],
    ),
    "BRO": blocks(
        ["Dense_0", "LayerNorm_0"], "BROBlock", ["Dense_0", "LayerNorm_0", "Dense_1", "LayerNorm_1"], ["Dense_1"]
    ),
    "TD-MPC2": paths("Dense_0", "LayerNorm_0", "Dense_1", "LayerNorm_1", "Dense_2"),
    "CrossQ": paths("BatchNorm_0", "Dense_0", "BatchNorm_1", "Dense_1", "BatchNorm_2", "Dense_2"),
}


def reference(name, module, variables, loss, inputs, y, extra, vectors):
    """Gradient and products, by forward over reverse differentiation."""
    with jax.enable_x64(True):
        double = jax.tree_util.tree_map(lambda a: jnp.asarray(a, jnp.float64), variables)
        leaves = _leaves(double)
        order = ORDERS[name](leaves)
        assert len(order) == len([p for p in leaves if p.startswith("params/")]), order
        ensemble = leaves[order[0]].shape[0]
        shapes = [leaves[p].shape for p in order]

        def unflatten(theta):
            parts = jnp.split(
                theta.reshape(ensemble, -1),
                np.cumsum([np.prod(s[1:], dtype=int) for s in shapes])[:-1],
                axis=1,
            )
            return {p: v.reshape(s) for p, v, s in zip(order, parts, shapes)}

        def minibatch(theta, v, x, t):
            def value(theta):
                out = module.apply(
                    _nest(double, unflatten(theta)),
                    *x,
                    *extra,
                    **({"mutable": ["batch_stats"]} if extra else {}),
                )
                out = out[0] if extra else out
                if name == "dueling":  # with targets of each critic
                    return jax.vmap(loss)(out, t.T).sum() / N
                return jax.vmap(lambda f: loss(f[: len(t)], t))(out).sum() / N

            return jax.jvp(jax.grad(value), (theta,), (v,))

        theta = jnp.concatenate([leaves[p].reshape(ensemble, -1) for p in order], 1).ravel()
        both = jax.jit(minibatch)
        arrays = [[jnp.asarray(a[n], jnp.float64) for a in (*inputs, y)] for n in range(N)]
        results = [
            jax.tree_util.tree_map(
                lambda *parts: sum(parts),
                *[both(theta, jnp.asarray(v), x[:-1], x[-1]) for x in arrays],
            )
            for v in vectors
        ]
        return np.asarray(results[0][0]), [np.asarray(product) for _, product in results]


class Heads(nn.Module):
    width: int

    @nn.compact
    def __call__(self, obs, action):
        x = nn.relu(nn.Dense(self.width)(jnp.concatenate([obs, action], -1)))
        return jnp.concatenate([nn.Dense(1)(x), nn.Dense(5)(x)], -1)


def value_and_distribution(f, t):
    return 0.25 * squared(f[:, 0], t[:, 0]) + cross_entropy(f[:, 1:], t[:, 1:])


class Dueling(nn.Module):
    width: int

    @nn.compact
    def __call__(self, obs, action):
        x = nn.relu(nn.Dense(self.width)(obs))
        value, advantage = nn.Dense(1)(x), nn.Dense(3)(x)
        return ((value + advantage - advantage.mean(-1, keepdims=True)) * action).sum(-1)


def vectorized(kind, count):
    """The module of `count` critics, by nn.vmap."""
    axes = {"params": 0, "batch_stats": 0}
    split = {"params": True}
    return nn.vmap(kind, variable_axes=axes, split_rngs=split, in_axes=None, out_axes=0, axis_size=count)


def variables_of(module, inputs, extra):
    """Random variables, none of them as they are initialized."""
    constant = range(1 + len(inputs), 1 + len(inputs) + len(extra))
    initialize = jax.jit(module.init, static_argnums=constant)
    variables = initialize(jax.random.PRNGKey(0), *[x[0] for x in inputs], *extra)
    return jax.tree_util.tree_map(lambda a: np.asarray(a) + 0.1 * np.abs(normal(*a.shape)), variables)


def cases():
    scalars, atoms = normal(N, B), probabilities(N, B, 11)
    mixed = np.concatenate([normal(N, B, 1), probabilities(N, B, 5)], -1)
    for name, write, kind, options, loss, y, count in (
        ("dueling", calls.branches, Dueling, {}, squared, normal(N, B, 2), 2),
        ("heads", calls.heads, Heads, {}, value_and_distribution, mixed, 2),
        ("SAC", calls.sac, zoo.SAC, {}, squared, scalars, 2),
        ("SimBa", calls.simba, zoo.SimBa, {}, squared, scalars, 2),
        ("SimBa-V2", calls.simba_v2, zoo.SimBaV2, {"atoms": 11}, cross_entropy, atoms, 2),
        ("BRO", calls.bro, zoo.BRO, {"quantiles": 7}, quantile_huber, normal(N, B, 7), 2),
        ("TD-MPC2", calls.tdmpc2, zoo.TDMPC2, {"bins": 11}, cross_entropy, atoms, 5),
        ("MR.Q", calls.mrq, zoo.MRQ, {}, huber, scalars, 2),
        ("CrossQ", calls.crossq, zoo.CrossQ, {}, half_squared, normal(N, B, 1), 2),
    ):
        module = vectorized(kind, count)(width=WIDTH, **options)
        rows = 2 * B if name == "CrossQ" else B
        widths = (10,) if name == "MR.Q" else (OBS, ACTIONS)
        inputs, extra = tuple(normal(N, rows, width) for width in widths), (True,) * (name == "CrossQ")
        variables = variables_of(module, inputs, extra)
        optimizer, params = optax.inject_hyperparams(optax.adam)(3e-4), variables["params"]
        _, state = jax.jit(optimizer.update)(params, jax.jit(optimizer.init)(params))
        expected = functools.partial(reference, name, module, variables, loss, inputs, y, extra)
        yield name, write, (module, variables, *inputs, y, state), expected


def refused(folder, variables, words, changes):
    """What is wrong if save_flax does not refuse these arguments with these words and without a file; else None."""
    module, x, y = zoo.CrossQ(WIDTH), (normal(N, B, OBS), normal(N, B, ACTIONS)), normal(N, B)
    arguments = dict(
        apply=lambda v, *a: module.apply(v, *a, True, mutable=["batch_stats"])[0],
        inputs=x,
        targets=y,
        loss="mse",
        arch=ARCH,
    )
    path = f"{folder}/refused.h5"
    try:
        kappascope.save_flax(path, variables, **{**arguments, **changes})
    except kappascope.Refused as error:
        missing = [w for w in words if w not in str(error)]
        if missing:
            return f"expected {missing} in\n{error}"
        return "expected no file" if os.path.exists(path) else None
    return f"expected a refusal with {words}"


ARCH = "batchnorm\nrepeat 2 {\ndense 12\nrelu\nbatchnorm\n}\ndense 1\n"


def refusals(folder):
    module = zoo.CrossQ(WIDTH)
    v = module.init(jax.random.PRNGKey(1), normal(B, OBS), normal(B, ACTIONS), True)
    stacked = jax.tree_util.tree_map(lambda a: np.stack([a, a]), v)
    extra = {**v, "lora": {"w": np.zeros((OBS, 1), np.float32)}}
    sgd = optax.sgd(0.1).init(v["params"])

    def evaluated(v, *a):
        return module.apply(v, *a, False)

    def with_extra(v, x, a):
        return module.apply(v, x, a, True, mutable=["batch_stats"])[0] + x @ v["lora"]["w"]

    def changed(old, new):
        return {"arch": ARCH.replace(old, new)}

    without_bias = ["params/Dense_0/bias [12] is in the variables", "Dense_1/bias"]
    shape = ["01_dense/kernel: expected [8, 16], found params/Dense_0/kernel [8, 12]"]
    near = ["04_dense/kernel: Dence_1/kernel is not there; did you mean 'Dense_1/kernel'?"]
    several = ["[8, 12], found params/Dense_0/kernel [2, 8, 12]: for 2 critics, ensemble=2"]
    depends = ["lora/w [5, 1]: the outputs depend on it", "in names"]
    for variables, words, changes in (
        (v, ["evaluation mode", "train=True"], {"apply": evaluated}),
        (v, without_bias, changed("dense 12", "dense 12 bias=no")),
        (v, shape, changed("12", "16")),
        (v, ["did you mean 'batchnorm'?", "BatchNorm"], changed("batchnorm", "BatchNorm")),
        (v, near, {"names": {"04_dense": "Dence_1"}}),
        (v, ["names: 09_dense", "00_batchnorm, 01_dense"], {"names": {"09_dense": "Dense_0"}}),
        (v, ["params/Dense_0/bias is given for several"], {"names": {"04_dense": "Dense_0"}}),
        (stacked, several, {}),
        (v, ["real numbers", "int"], {"targets": np.zeros((N, B), int)}),
        (v, ["targets", f"found [{B}, {N}]"], {"targets": normal(B, N)}),
        (v, ["has 'mse', the argument is 'huber'"], {"loss": "huber", "arch": ARCH + "loss mse\n"}),
        (v, ["names: expected {layer: module}"], {"names": {"01_dense": 0}}),
        ([v["params"]["Dense_0"]] * 2, ["a list is one set for each critic. Way out"], {}),
        (v, ["no such file"], {"arch": "missing.arch"}),
        ([], ["variables", "at least one critic"], {}),
        (v, ["names: dense", "'Dense_{number}'"], {"names": {"dense": "Dense_{number}"}}),
        (v, ["check", "expected the loss"], {"check": 1000.0}),
        (extra, depends, {"apply": with_extra}),
        (v, ["optax.adam"], {"optimizer": sgd}),
    ):
        yield refused(folder, variables, words, changes)


def compare(analyzer, folder):
    for number, failure in enumerate(refusals(folder)):
        if failure:
            sys.exit(f"refusal {number}: {failure}")
    comparison = Comparison(analyzer, folder, f"Flax {flax.__version__}, JAX {jax.__version__}")
    for name, write, arguments, expected in cases():
        start, path = time.time(), f"{folder}/{name}.flax.h5"
        write(path, *arguments)
        state = arguments[-1].inner_state[0]
        for moment, tree in (("m", state.mu), ("v", state.nu)):
            leaves = {f"params/{key}": a for key, a in _leaves(tree).items()}
            rows = [np.reshape(leaves[p], (len(leaves[p]), -1)) for p in ORDERS[name](leaves)]
            equal = np.array_equal(stored(path, f"optimizer/{moment}"), np.concatenate(rows, 1).ravel())
            comparison.expect(equal, f"{name}: expected Adam's moments in /optimizer/{moment}")
        comparison.add(name, path, len(inspect.getsource(write).splitlines()) - 1, start, expected)
    comparison.end()


if __name__ == "__main__":
    main(compare)
