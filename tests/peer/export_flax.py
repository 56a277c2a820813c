"""Critics of Flax, exported and analyzed: python3 export_flax.py ANALYZER FOLDER

As export_torch.py, for the critics of export_critics_flax.py."""

import inspect
import json
import os
import sys
import time
import warnings

import flax
import flax.linen as nn
import h5py
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import export_critics_flax as zoo
import export_flax_calls as calls
import kappascope
from export_common import Comparison, analyze, main, stored

N, B, OBS, ACTIONS, WIDTH = 3, 24, 5, 3, 12
draw = np.random.default_rng(0)


def normal(*shape):
    return draw.standard_normal(shape, np.float32)


def probabilities(*shape):
    return np.asarray(jax.nn.softmax(2 * normal(*shape), -1))


# The losses in JAX, and the parameters' canonical order: a list of paths within params.


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
        ("dueling", calls.branches, Dueling, dict(width=WIDTH), squared, normal(N, B, 2), 2, B),
        (
            "heads",
            calls.heads,
            Heads,
            dict(width=WIDTH),
            value_and_distribution,
            np.concatenate([normal(N, B, 1), probabilities(N, B, 5)], -1),
            2,
            B,
        ),
        ("SAC", calls.sac, zoo.SAC, dict(width=WIDTH), squared, normal(N, B), 2, B),
        ("SimBa", calls.simba, zoo.SimBa, dict(width=WIDTH), squared, normal(N, B), 2, B),
        (
            "SimBa-V2",
            calls.simba_v2,
            zoo.SimBaV2,
            dict(width=WIDTH, atoms=11),
            cross_entropy,
            probabilities(N, B, 11),
            2,
            B,
        ),
        (
            "BRO",
            calls.bro,
            zoo.BRO,
            dict(width=WIDTH, quantiles=7),
            quantile_huber,
            normal(N, B, 7),
            2,
            B,
        ),
        (
            "TD-MPC2",
            calls.tdmpc2,
            zoo.TDMPC2,
            dict(width=WIDTH, bins=11),
            cross_entropy,
            probabilities(N, B, 11),
            5,
            B,
        ),
        ("MR.Q", calls.mrq, zoo.MRQ, dict(width=WIDTH), huber, normal(N, B), 2, B),
        (
            "CrossQ",
            calls.crossq,
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
        optimizer = optax.inject_hyperparams(optax.adam)(3e-4)
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
        kappascope.save_flax(
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
    except kappascope.Refused as error:
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
    stacked = jax.tree_util.tree_map(lambda a: np.stack([a, a]), variables)
    yield refused(folder, stacked, ["[8, 12], found params/Dense_0/kernel [2, 8, 12]: for 2 critics, ensemble=2"])
    yield refused(folder, variables, ["real numbers", "int"], targets=np.zeros((N, B), int))
    yield refused(folder, variables, ["targets", f"found [{B}, {N}]"], targets=normal(B, N))
    yield refused(
        folder,
        variables,
        ["the description has 'mse', the argument is 'huber'"],
        loss="huber",
        arch=lambda text: text + "loss mse\n",
    )
    yield refused(folder, variables, ["names: expected {layer: module}"], names={"01_dense": 0})
    yield refused(folder, [variables["params"]["Dense_0"]] * 2, ["a list is one set for each critic. Way out"])
    yield refused(folder, variables, ["no such file"], arch="missing.arch")
    yield refused(folder, [], ["variables", "at least one critic"])
    yield refused(folder, variables, ["names: dense", "'Dense_{number}'"], names={"dense": "Dense_{number}"})
    yield refused(folder, variables, ["check", "expected the loss"], check=1000.0)
    extra = {**variables, "lora": {"w": np.zeros((OBS, 1), np.float32)}}

    def with_extra(v, x, a):
        return module.apply(v, x, a, True, mutable=["batch_stats"])[0] + x @ v["lora"]["w"]

    yield refused(folder, extra, ["lora/w [5, 1]: the outputs depend on it", "in names"], apply=with_extra)
    yield refused(
        folder, variables, ["optax.adam"], optimizer=optax.sgd(0.1).init(variables["params"])
    )


@jax.tree_util.register_pytree_with_keys_class
class Linear:
    """As Equinox has it: attributes, weights [out, in]."""

    def __init__(self, weight, bias):
        self.weight, self.bias = weight, bias

    def tree_flatten_with_keys(self):
        key = jax.tree_util.GetAttrKey
        return [(key("weight"), self.weight), (key("bias"), self.bias)], None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


class Tree(nnx.Module):
    def __init__(self, rngs):
        self.noise, self.first, self.last = nnx.Dropout(0.1, rngs=rngs), nnx.Linear(OBS, OBS, rngs=rngs), nnx.Linear(OBS, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.first(x)))


class NormedTree(Tree):
    def __init__(self, rngs):
        super().__init__(rngs)
        self.norm = nnx.BatchNorm(OBS, momentum=0.9, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.norm(self.first(x))))


class Single(nn.Module):
    """Computes in float32 whatever its inputs are: half of the rows differ by roundings."""

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(64, dtype=jnp.float32)(x))
        return nn.Dense(1, dtype=jnp.float32)(x)


class Renormed(nn.Module):
    """Batch renormalization that clips nothing: the outputs do not depend on other rows, the gradients do."""

    @nn.compact
    def __call__(self, x):
        x, stop = nn.Dense(OBS)(x), jax.lax.stop_gradient
        mean = self.variable("batch_stats", "BatchRenorm_0", lambda: {"mean": jnp.zeros(OBS), "var": jnp.ones(OBS)}).value
        std, run = jnp.sqrt(x.var(0) + 1e-3), jnp.sqrt(mean["var"] + 1e-3)
        z = (x - x.mean(0)) / std * stop(std / run) + stop((x.mean(0) - mean["mean"]) / run)
        z = z * self.param("BatchRenorm_0/scale", nn.initializers.ones, (OBS,))
        return nn.Dense(1)(nn.relu(z + self.param("BatchRenorm_0/bias", nn.initializers.zeros, (OBS,))))


def trees():
    """(variables, apply, names, and other arguments) of other frameworks of JAX and other forms: apply gets
    what was given."""
    pair = {"l": [{"w": normal(OBS, OBS), "b": normal(OBS)}, {"w": normal(OBS, 1), "b": normal(1)}]}

    def plain(p, x):
        first, last = p["l"]
        return jax.nn.relu(x @ first["w"] + first["b"]) @ last["w"] + last["b"]

    names = {f"0{2 * i}_dense/{a}": f"l/{i}/{b}" for i in range(2) for a, b in (("kernel", "w"), ("bias", "b"))}
    yield pair, plain, names
    yield pair, lambda v, x: plain(v["params"], x), names  # as versions before 0.7 called it
    yield {"params": pair}, lambda v, x: plain(v["params"], x), names
    graph, state = nnx.split(Tree(nnx.Rngs(0)))
    yield state, lambda s, x: nnx.merge(graph, s)(x), {"00_dense": "first", "02_dense": "last"}
    names = {f"0{2 * i}_dense/{a}": f"{i}/{b}" for i in range(2) for a, b in (("kernel", "weight"), ("bias", "bias"))}
    module = {str(i): Linear(p["w"].T, p["b"]) for i, p in enumerate(pair["l"])}

    @jax.tree_util.register_pytree_with_keys_class
    class Module(Linear):
        def tree_flatten_with_keys(self):
            return [(jax.tree_util.GetAttrKey(n), a) for n, a in zip("01", (self.weight, self.bias))], None

    def attributes(m, x):
        first, last = m.weight, m.bias
        return jax.nn.relu(x @ first.weight.T + first.bias) @ last.weight.T + last.bias

    normed = f"dense {OBS}\nlayernorm eps=1e-5\nrelu\ndense 1\n"
    batched = normed.replace("layernorm eps=1e-5", "batchnorm eps=1e-5 momentum=0.9")
    x = jnp.asarray(normal(B, OBS))
    single = Single()
    yield single.init(jax.random.PRNGKey(0), x), single.apply, None, {"arch": "dense 64\nrelu\ndense 1\n"}
    renormed = Renormed()
    given = renormed.init(jax.random.PRNGKey(0), x)
    given["batch_stats"]["BatchRenorm_0"]["mean"] = jnp.full(OBS, 0.1)
    yield given, renormed.apply, None, {"arch": batched.replace("batchnorm eps=1e-5", "batchrenorm eps=1e-3")}
    tree, values = nnx.split(NormedTree(nnx.Rngs(1)))
    layers = {"00_dense": "first", "01_batchnorm": "norm", "03_dense": "last"}
    yield values, lambda s, x: nnx.merge(tree, s)(x), layers, {"arch": batched}
    yield {"q": Module(module["0"], module["1"])}, lambda v, x: attributes(v["q"], x), {k: f"q/{p}" for k, p in names.items()}
    stacked = {"0": Linear(normal(2, OBS, OBS), normal(2, OBS)), "n": Linear(normal(2, OBS), normal(2, OBS)), "1": Linear(normal(2, 1, OBS), normal(2, 1))}

    def one(v, x):
        h = x @ v["0"].weight.T + v["0"].bias
        h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
        return jax.nn.relu(h * v["n"].weight + v["n"].bias) @ v["1"].weight.T + v["1"].bias

    several = {f"{layer}/{a}": f"{i}/{b}" for layer, i, a in (("00_dense", "0", "kernel"), ("01_layernorm", "n", "scale"), ("03_dense", "1", "kernel")) for a, b in ((a, "weight"), ("bias", "bias"))}
    yield stacked, lambda v, x: jax.vmap(one, (0, None))(v, x), several, {"arch": normed, "ensemble": 2}
    yield Module(module["0"], module["1"]), attributes, names


def compare_trees(analyzer, folder):
    x, y = normal(N, B, OBS), normal(N, B)
    arguments = dict(inputs=(x,), targets=y, loss="mse", arch=f"dense {OBS}\nrelu\ndense 1\n")
    for number, (variables, apply, names, *others) in enumerate(trees()):
        path = f"{folder}/tree{number}.h5"
        given = {**arguments, **(others[0] if others else {})}
        kappascope.save_flax(path, variables, apply, names=names, **given)
        analyze(analyzer, "--order", "3", path)  # which compares outputs and gradients
    for wrong, function, words in (
        (names | {"00_dense/bias": "0/nothing"}, apply, "0/nothing is not there"),
        (names, lambda v, x: 1 / 0, "as they are given, and the first minibatch (0 [24, 5]): ZeroDivisionError"),
    ):
        try:
            kappascope.save_flax(path, variables, function, names=wrong, **arguments)
            sys.exit(f"trees: expected a refusal with {words}")
        except kappascope.Refused as error:
            if words not in str(error):
                sys.exit(f"trees: expected {words} in\n{error}")


def compare_constants(analyzer, folder):
    """Adam's constants are those that optax keeps in its state, so the preconditioned Hessian is that of JAX;
    what optax does not keep is assumed, which the file and a warning say."""
    x, y = jnp.asarray(normal(1, B, OBS)), jnp.asarray(normal(1, B))
    p = {"Dense_0": {"kernel": normal(OBS, 4), "bias": normal(4)}, "Dense_1": {"kernel": normal(4, 1), "bias": normal(1)}}

    def apply(v, x):
        return jnp.tanh(x @ v["Dense_0"]["kernel"] + v["Dense_0"]["bias"]) @ v["Dense_1"]["kernel"] + v["Dense_1"]["bias"]

    def loss(v, x, y):
        return 0.5 * squared(apply(v, x), y)

    def save(optimizer, **given):
        path, state = f"{folder}/constants.h5", optimizer.init(p)
        for _ in range(3):
            _, state = optimizer.update(jax.grad(loss)(p, x[0], y[0]), state, p)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            kappascope.save_flax(path, p, apply, "dense 4\ntanh\ndense 1\n", None, (x,), y, "mse", optimizer=state, **given)
        with h5py.File(path) as file:
            assumed = file.attrs.get("adam_assumed", "")
        return path, state, (assumed, " ".join(str(one.message) for one in said))

    def expected(state, beta2, eps):
        with jax.enable_x64(True):
            double = jax.tree_util.tree_map(lambda a: jnp.asarray(a, jnp.float64), p)
            flat, tree = jax.flatten_util.ravel_pytree(double)
            hessian = jax.hessian(lambda w: loss(tree(w), jnp.asarray(x[0], jnp.float64), jnp.asarray(y[0], jnp.float64)))(flat)
            v = np.asarray(jax.flatten_util.ravel_pytree(state.nu)[0], float) / (1 - beta2 ** int(state.count))
            root = 1 / np.sqrt(np.sqrt(v) + eps)
            return np.linalg.eigvalsh(root[:, None] * np.asarray(hessian) * root)[-1]

    names = "beta1 beta2 eps"
    for kind, settings, given, assumed in (
        (optax.inject_hyperparams(optax.adam), {"b2": 0.9, "eps": 1e-3}, {}, ""),
        (optax.inject_hyperparams(optax.adamw), {"b2": 0.9, "eps": 1e-3}, {"eps": 1e-3}, ""),
        (optax.adam, {"b2": 0.9, "eps": 1e-3}, {"beta1": 0.9, "beta2": 0.9, "eps": 1e-3}, ""),
        (optax.adam, {}, {"beta2": 0.999}, "beta1 eps"),
        (optax.adam, {}, {}, names),
    ):
        path, state, (found, said) = save(optax.chain(optax.clip(1.0), kind(1e-2, **settings)), **given)
        if found != assumed or all(f"{name} = " in said for name in names.split()) != (assumed == names):
            sys.exit(f"constants: expected {assumed or 'none'} assumed, found {found} and {said!r}")
        options = ("--operator", "preconditioned", "--exact", "--precision", "f64", "--json")
        value = json.loads(analyze(analyzer, *options, path))["lambda_max"]
        adam = optax.tree_utils.tree_get(state, "ScaleByAdamState")
        wanted = expected(adam, settings.get("b2", 0.999), settings.get("eps", 1e-8))
        if abs(value / wanted - 1) > 1e-6:  # optax has its constants in float32
            sys.exit(f"constants: {settings}: expected a preconditioned eigenvalue {wanted}, found {value}")
    for settings, given, words in (
        ({"eps_root": 1e-2}, {}, "expected eps_root = 0"),
        ({"b2": 0.9}, {"beta2": 0.99}, "beta2: expected 0.9, which the optimizer's state has, found 0.99"),
    ):
        try:
            save(optax.inject_hyperparams(optax.adam)(1e-2, **settings), **given)
            sys.exit(f"constants: expected a refusal with {words}")
        except kappascope.Refused as error:
            if words not in str(error):
                sys.exit(f"constants: expected {words} in\n{error}")


def compare(analyzer, folder):
    compare_constants(analyzer, folder)
    compare_trees(analyzer, folder)
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
