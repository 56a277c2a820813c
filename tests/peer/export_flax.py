"""Critics of Flax, exported and analyzed: python3 export_flax.py ANALYZER FOLDER

As export_torch.py, for the critics of export_critics_flax.py."""

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
import kappascope_export
from export_common import Comparison, main, stored

N, B, OBS, ACTIONS, WIDTH = 3, 24, 5, 3, 12
draw = np.random.default_rng(0)


def normal(*shape):
    return draw.standard_normal(shape, np.float32)


def probabilities(*shape):
    return np.asarray(jax.nn.softmax(2 * normal(*shape), -1))


def in_blocks(first, size, parts):
    """The map of names of two blocks of `size` layers, numbered from `first`: parts has the place
    of a layer in its block, its kind and its module."""
    return {
        f"{first + size * i + place:02d}_{kind}": module.format(i)
        for i in range(2)
        for place, kind, module in parts
    }


# fmt: off
# What a user writes, one function a critic.

def sac(path, module, variables, obs, actions, y, state):
    arch = "dense 12\nrelu\ndense 12\nrelu\ndense 1\n"
    kappascope_export.save_flax(path, variables, apply=module.apply, arch=arch,
                                inputs=(obs, actions), targets=y, loss="mse weight=2",
                                ensemble=2, optimizer=state, step=1000)


def simba(path, module, variables, obs, actions, y, state):
    arch = """
        dense 12
        repeat 2 {
          residual {
            layernorm
            dense 48
            relu
            dense 12
          }
        }
        layernorm
        dense 1
        """
    names = {"00_dense": "Dense_0", "09_layernorm": "LayerNorm_0", "10_dense": "Dense_1",
             **in_blocks(1, 4, [
                 (0, "layernorm", "SimBaBlock_{}/LayerNorm_0"),
                 (1, "dense", "SimBaBlock_{}/Dense_0"),
                 (3, "dense", "SimBaBlock_{}/Dense_1")])}
    kappascope_export.save_flax(path, variables, apply=module.apply, arch=arch, names=names,
                                inputs=(obs, actions), targets=y, loss="mse weight=2",
                                ensemble=2, optimizer=state)


def simba_v2(path, module, variables, obs, actions, y, state):
    arch = """
        append 3
        l2norm
        dense 12 bias=no project=unit
        scaler init=0.408248290463863 scale=0.408248290463863
        l2norm
        repeat 2 {
          lerp init=0.3333333333333333 scale=0.2886751345948129 {
            dense 48 bias=no project=unit
            scaler init=0.2041241452319315 scale=0.2041241452319315
            relu shift=1e-8
            dense 12 bias=no project=unit
            l2norm
          }
        }
        dense 12 bias=no project=unit
        scaler
        dense 11 project=unit-kernel
        """
    names = {"02_dense": "Dense_0", "03_scaler": "Scaler_0", "17_dense": "Dense_1",
             "18_scaler": "Scaler_1", "19_dense": "Dense_2", **in_blocks(5, 6, [
                 (0, "dense", "LERPBlock_{}/Dense_0"), (1, "scaler", "LERPBlock_{}/Scaler_0"),
                 (3, "dense", "LERPBlock_{}/Dense_1"),
                 (5, "lerp/alpha", "LERPBlock_{}/alpha/scaler")])}
    kappascope_export.save_flax(path, variables, apply=module.apply, arch=arch, names=names,
                                inputs=(obs, actions), targets=y, loss="ce min=-5 max=5",
                                ensemble=2, optimizer=state)


def bro(path, module, variables, obs, actions, y, state):
    arch = """
        dense 12
        layernorm
        relu
        repeat 2 {
          residual {
            dense 12
            layernorm
            relu
            dense 12
            layernorm
          }
        }
        dense 7
        loss quantile
        """
    names = {"00_dense": "Dense_0", "01_layernorm": "LayerNorm_0", "13_dense": "Dense_1",
             **in_blocks(3, 5, [
                 (0, "dense", "BROBlock_{}/Dense_0"), (1, "layernorm", "BROBlock_{}/LayerNorm_0"),
                 (3, "dense", "BROBlock_{}/Dense_1"), (4, "layernorm", "BROBlock_{}/LayerNorm_1")])}
    kappascope_export.save_flax(path, variables, apply=module.apply, arch=arch, names=names,
                                inputs=(obs, actions), targets=y, ensemble=2, optimizer=state)


def tdmpc2(path, module, variables, z, actions, y, state):
    arch = "repeat 2 {\ndense 12\nlayernorm eps=1e-5\nmish\n}\ndense 11\n"
    kappascope_export.save_flax(path, variables, apply=module.apply, arch=arch,
                                inputs=(z, actions), targets=y, loss="ce min=-10 max=10",
                                ensemble=5, optimizer=state)


def mrq(path, module, variables, zsa, y, state):
    arch = "repeat 3 {\ndense 12\nlayernorm affine=no eps=1e-5\nelu\n}\ndense 1\n"
    kappascope_export.save_flax(path, variables, apply=module.apply, arch=arch, inputs=zsa,
                                targets=y, loss="huber weight=0.5", ensemble=2, optimizer=state)


def crossq(path, module, variables, obs, actions, y, state):
    arch = "batchnorm\nrepeat 2 {\ndense 12\nrelu\nbatchnorm\n}\ndense 1\n"
    train = lambda v, x, a: module.apply(v, x, a, True, mutable=["batch_stats"])  # noqa: E731
    kappascope_export.save_flax(path, variables, apply=train, arch=arch, inputs=(obs, actions),
                                targets=y, loss="mse", ensemble=2, optimizer=state)


# fmt: on
# The same losses in JAX, and the parameters' canonical order: a list of paths within params.


def squared(f, t):
    return ((f.reshape(t.shape) - t) ** 2).mean()


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
    return lambda leaves: [
        f"params/{m}/{p}" for m in modules for p in order if f"params/{m}/{p}" in leaves
    ]


def blocks(first, inner, last):
    return paths(
        *first,
        *[f"{name}_{i}/{part}" for i in range(2) for name, parts in [inner] for part in parts],
        *last,
    )


MLP = paths("Dense_0", "Dense_1", "Dense_2", "Dense_3")
ORDERS = {
    "SAC": MLP,
    "MR.Q": MLP,
    "dueling": MLP,
    "heads": MLP,
    "SimBa": blocks(
        ["Dense_0"],
        ("SimBaBlock", ["LayerNorm_0", "Dense_0", "Dense_1"]),
        ["LayerNorm_0", "Dense_1"],
    ),
    "SimBa-V2": blocks(
        ["Dense_0", "Scaler_0"],
        ("LERPBlock", ["Dense_0", "Scaler_0", "Dense_1", "alpha"]),
        ["Dense_1", "Scaler_1", "Dense_2"],
    ),
    "BRO": blocks(
        ["Dense_0", "LayerNorm_0"],
        ("BROBlock", ["Dense_0", "LayerNorm_0", "Dense_1", "LayerNorm_1"]),
        ["Dense_1"],
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


def branches(path, module, variables, obs, actions, y, state):
    arch = """
        input [0:5]
        dense 12
        relu
        branch {
          dense 1
        }
        branch {
          dense 3
        }
        dueling
        select input[5:8]
        """
    kappascope_export.save_flax(
        path,
        variables,
        apply=lambda v, action, obs: module.apply(v, obs, action),
        arch=arch,
        inputs={"obs": obs, "action": actions},
        targets=y[..., None],
        loss="mse weight=2",
        ensemble=2,
        optimizer=state,
    )


def heads(path, module, variables, obs, actions, y, state):
    arch = """
        dense 12
        relu
        branch {
          dense 1
          loss mse weight=0.5
        }
        branch {
          dense 5
          loss ce min=0 max=1
        }
        """
    kappascope_export.save_flax(path, variables, apply=module.apply, arch=arch,
                                inputs=(obs, actions), targets=[y[..., :1], y[..., 1:]],
                                ensemble=2, optimizer=state)


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


def cases():
    table = [
        ("dueling", branches, Dueling, dict(width=WIDTH), squared, normal(N, B, 2), 2, B),
        (
            "heads",
            heads,
            Heads,
            dict(width=WIDTH),
            value_and_distribution,
            np.concatenate([normal(N, B, 1), probabilities(N, B, 5)], -1),
            2,
            B,
        ),
        ("SAC", sac, zoo.SAC, dict(width=WIDTH), squared, normal(N, B), 2, B),
        ("SimBa", simba, zoo.SimBa, dict(width=WIDTH), squared, normal(N, B), 2, B),
        (
            "SimBa-V2",
            simba_v2,
            zoo.SimBaV2,
            dict(width=WIDTH, atoms=11),
            cross_entropy,
            probabilities(N, B, 11),
            2,
            B,
        ),
        (
            "BRO",
            bro,
            zoo.BRO,
            dict(width=WIDTH, quantiles=7),
            quantile_huber,
            normal(N, B, 7),
            2,
            B,
        ),
        (
            "TD-MPC2",
            tdmpc2,
            zoo.TDMPC2,
            dict(width=WIDTH, bins=11),
            cross_entropy,
            probabilities(N, B, 11),
            5,
            B,
        ),
        ("MR.Q", mrq, zoo.MRQ, dict(width=WIDTH), huber, normal(N, B), 2, B),
        (
            "CrossQ",
            crossq,
            zoo.CrossQ,
            dict(width=WIDTH),
            lambda f, t: 0.5 * squared(f, t),
            normal(N, B, 1),
            2,
            2 * B,
        ),
    ]
    for name, write, kind, arguments, loss, y, count, rows in table:
        module = nn.vmap(
            kind,
            variable_axes={"params": 0, "batch_stats": 0},
            split_rngs={"params": True},
            in_axes=None,
            out_axes=0,
            axis_size=count,
        )(**arguments)
        inputs = (
            (normal(N, rows, 10),)
            if name == "MR.Q"
            else (normal(N, rows, OBS), normal(N, rows, ACTIONS))
        )
        extra = (True,) if name == "CrossQ" else ()
        variables = jax.jit(
            module.init, static_argnums=range(1 + len(inputs), 1 + len(inputs) + len(extra))
        )(jax.random.PRNGKey(0), *[x[0] for x in inputs], *extra)
        variables = jax.tree_util.tree_map(
            lambda a: np.asarray(a) + 0.1 * np.abs(normal(*a.shape)), variables
        )
        optimizer = optax.adam(3e-4)
        _, state = jax.jit(optimizer.update)(
            variables["params"], jax.jit(optimizer.init)(variables["params"])
        )
        yield (
            name,
            write,
            (module, variables, *inputs, y, state),
            lambda vectors, a=(name, module, variables, loss, inputs, y, extra): reference(
                *a, vectors
            ),
        )


def refused(folder, variables, words, **changes):
    """Expects save_flax to refuse, with these words and without a file."""
    module, x, y = zoo.CrossQ(WIDTH), (normal(N, B, OBS), normal(N, B, ACTIONS)), normal(N, B)
    arguments = dict(
        apply=lambda v, *a: module.apply(v, *a, True, mutable=["batch_stats"])[0],
        inputs=x,
        targets=y,
        loss="mse",
        arch="batchnorm\nrepeat 2 {\ndense 12\nrelu\nbatchnorm\n}\ndense 1\n",
    )
    path = f"{folder}/refused.h5"
    try:
        kappascope_export.save_flax(
            path,
            variables,
            **{
                **arguments,
                **{
                    k: v(arguments[k]) if callable(v) and k == "arch" else v
                    for k, v in changes.items()
                },
            },
        )
    except kappascope_export.Refused as error:
        missing = [w for w in words if w not in str(error)]
        return (
            f"expected {missing} in\n{error}"
            if missing
            else "expected no file" if os.path.exists(path) else None
        )
    return f"expected a refusal with {words}"


def refusals(folder):
    module = zoo.CrossQ(WIDTH)
    variables = module.init(jax.random.PRNGKey(1), normal(B, OBS), normal(B, ACTIONS), True)
    yield refused(
        folder,
        variables,
        ["evaluation mode", "train=True"],
        apply=lambda v, *a: module.apply(v, *a, False),
    )
    yield refused(
        folder,
        variables,
        ["params/Dense_0/bias [12] is in the variables", "Dense_1/bias"],
        arch=lambda text: text.replace("dense 12", "dense 12 bias=no"),
    )
    yield refused(
        folder,
        variables,
        ["01_dense/kernel: expected [8, 16], found params/Dense_0/kernel [8, 12]"],
        arch=lambda text: text.replace("12", "16"),
    )
    yield refused(
        folder,
        variables,
        ["did you mean 'batchnorm'?", "BatchNorm"],
        arch=lambda text: text.replace("batchnorm", "BatchNorm"),
    )
    yield refused(
        folder,
        variables,
        ["04_dense/kernel: Dence_1/kernel is not there; did you mean 'Dense_1/kernel'?"],
        names={"04_dense": "Dence_1"},
    )
    yield refused(
        folder,
        variables,
        ["names: 09_dense", "00_batchnorm, 01_dense"],
        names={"09_dense": "Dense_0"},
    )
    yield refused(
        folder,
        variables,
        ["params/Dense_0/bias is given for several"],
        names={"04_dense": "Dense_0"},
    )
    yield refused(folder, variables, ["real numbers", "int"], targets=np.zeros((N, B), int))
    yield refused(folder, variables, ["targets", f"found [{B}, {N}]"], targets=normal(B, N))
    yield refused(
        folder,
        variables,
        ["the description has 'mse', the argument is 'huber'"],
        loss="huber",
        arch=lambda text: text + "loss mse\n",
    )
    yield refused(folder, variables, ["no such file"], arch="missing.arch")
    yield refused(folder, variables, ["check", "expected the loss"], check=1000.0)
    yield refused(
        folder, variables, ["optax.adam"], optimizer=optax.sgd(0.1).init(variables["params"])
    )


def compare(analyzer, folder):
    for number, failure in enumerate(refusals(folder)):
        if failure:
            sys.exit(f"refusal {number}: {failure}")
    comparison = Comparison(analyzer, folder, f"Flax {flax.__version__}, JAX {jax.__version__}")
    for name, write, arguments, expected in cases():
        start, path = time.time(), f"{folder}/{name}.flax.h5"
        write(path, *arguments)
        state = arguments[-1][0]
        for moment, tree in (("m", state.mu), ("v", state.nu)):
            leaves = {f"params/{key}": a for key, a in _leaves(tree).items()}
            expected_moments = np.concatenate(
                [np.reshape(leaves[p], (len(leaves[p]), -1)) for p in ORDERS[name](leaves)], 1
            ).ravel()
            comparison.expect(
                np.array_equal(stored(path, f"optimizer/{moment}"), expected_moments),
                f"{name}: expected Adam's moments in /optimizer/{moment}",
            )
        comparison.add(name, path, len(inspect.getsource(write).splitlines()) - 1, start, expected)
    comparison.end()


if __name__ == "__main__":
    main(compare)
