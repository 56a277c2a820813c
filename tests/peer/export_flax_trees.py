"""Other forms of critics in JAX, exported and analyzed: python3 export_flax_trees.py ANALYZER FOLDER

Variables of NNX, of modules as Equinox has them, and plain trees; the constants of Adam, of which optax keeps some."""

import json
import sys
import warnings

import flax.linen as nn
import h5py
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import kappascope
from export_common import analyze, main
from export_flax import B, N, OBS, half_squared, normal


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
        self.noise = nnx.Dropout(0.1, rngs=rngs)
        self.first, self.last = nnx.Linear(OBS, OBS, rngs=rngs), nnx.Linear(OBS, 1, rngs=rngs)

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
        start = {"mean": jnp.zeros(OBS), "var": jnp.ones(OBS)}
        mean = self.variable("batch_stats", "BatchRenorm_0", lambda: start).value
        std, run = jnp.sqrt(x.var(0) + 1e-3), jnp.sqrt(mean["var"] + 1e-3)
        z = (x - x.mean(0)) / std * stop(std / run) + stop((x.mean(0) - mean["mean"]) / run)
        z = z * self.param("BatchRenorm_0/scale", nn.initializers.ones, (OBS,))
        return nn.Dense(1)(nn.relu(z + self.param("BatchRenorm_0/bias", nn.initializers.zeros, (OBS,))))


NORMED = f"dense {OBS}\nlayernorm eps=1e-5\nrelu\ndense 1\n"


def modules():
    """Modules of Flax, and of NNX."""
    batched = NORMED.replace("layernorm eps=1e-5", "batchnorm eps=1e-5 momentum=0.9")
    graph, state = nnx.split(Tree(nnx.Rngs(0)))
    yield state, lambda s, x: nnx.merge(graph, s)(x), {"00_dense": "first", "02_dense": "last"}
    tree, values = nnx.split(NormedTree(nnx.Rngs(1)))
    layers = {"00_dense": "first", "01_batchnorm": "norm", "03_dense": "last"}
    yield values, lambda s, x: nnx.merge(tree, s)(x), layers, {"arch": batched}
    x, single, renormed = jnp.asarray(normal(B, OBS)), Single(), Renormed()
    yield single.init(jax.random.PRNGKey(0), x), single.apply, None, {"arch": "dense 64\nrelu\ndense 1\n"}
    given = renormed.init(jax.random.PRNGKey(0), x)
    given["batch_stats"]["BatchRenorm_0"]["mean"] = jnp.full(OBS, 0.1)
    yield given, renormed.apply, None, {"arch": batched.replace("batchnorm eps=1e-5", "batchrenorm eps=1e-3")}


def stacked():
    """Two critics as arrays [2, ...]."""

    def one(v, x):
        h = x @ v["0"].weight.T + v["0"].bias
        h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
        return jax.nn.relu(h * v["n"].weight + v["n"].bias) @ v["1"].weight.T + v["1"].bias

    shapes = {"0": (OBS, OBS), "n": (OBS,), "1": (1, OBS)}
    arrays = {name: Linear(normal(2, *shape), normal(2, shape[0])) for name, shape in shapes.items()}
    names = {}
    for layer, i, array in (("00_dense", "0", "kernel"), ("01_layernorm", "n", "scale"), ("03_dense", "1", "kernel")):
        names |= {f"{layer}/{array}": f"{i}/weight", f"{layer}/bias": f"{i}/bias"}
    yield arrays, lambda v, x: jax.vmap(one, (0, None))(v, x), names, {"arch": NORMED, "ensemble": 2}


def trees():
    """(variables, apply, names, and other arguments) of other frameworks of JAX and other forms: apply gets
    what was given."""
    yield from modules()
    yield from stacked()
    pair = {"l": [{"w": normal(OBS, OBS), "b": normal(OBS)}, {"w": normal(OBS, 1), "b": normal(1)}]}

    def plain(p, x):
        first, last = p["l"]
        return jax.nn.relu(x @ first["w"] + first["b"]) @ last["w"] + last["b"]

    names = {f"0{2 * i}_dense/{a}": f"l/{i}/{b}" for i in range(2) for a, b in (("kernel", "w"), ("bias", "b"))}
    yield pair, plain, names
    yield pair, lambda v, x: plain(v["params"], x), names  # as versions before 0.7 called it
    yield {"params": pair}, lambda v, x: plain(v["params"], x), names
    names = {f"0{2 * i}_dense/{a}": f"{i}/{b}" for i in range(2) for a, b in (("kernel", "weight"), ("bias", "bias"))}

    @jax.tree_util.register_pytree_with_keys_class
    class Module(Linear):
        def tree_flatten_with_keys(self):
            return [(jax.tree_util.GetAttrKey(n), a) for n, a in zip("01", (self.weight, self.bias))], None

    def attributes(m, x):
        first, last = m.weight, m.bias
        return jax.nn.relu(x @ first.weight.T + first.bias) @ last.weight.T + last.bias

    module = Module(*[Linear(p["w"].T, p["b"]) for p in pair["l"]])
    inner = {name: f"q/{path}" for name, path in names.items()}
    yield {"q": module}, lambda v, x: attributes(v["q"], x), inner
    yield module, attributes, names


def expect_refusal(call, words):
    try:
        call()
        sys.exit(f"expected a refusal with {words}")
    except kappascope.Refused as error:
        if words not in str(error):
            sys.exit(f"expected {words} in\n{error}")


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
        expect_refusal(lambda: kappascope.save_flax(path, variables, function, names=wrong, **arguments), words)


CONSTANTS = {
    "Dense_0": {"kernel": normal(OBS, 4), "bias": normal(4)},
    "Dense_1": {"kernel": normal(4, 1), "bias": normal(1)},
}
ROWS, TARGETS = jnp.asarray(normal(1, B, OBS)), jnp.asarray(normal(1, B))


def two_layers(v, x):
    first, last = v["Dense_0"], v["Dense_1"]
    return jnp.tanh(x @ first["kernel"] + first["bias"]) @ last["kernel"] + last["bias"]


def save_with(folder, optimizer, **given):
    """(the file, the state after three steps, (the constants that were assumed, the warnings))"""
    path, state = f"{folder}/constants.h5", optimizer.init(CONSTANTS)
    gradient = jax.grad(lambda v: half_squared(two_layers(v, ROWS[0]), TARGETS[0]))(CONSTANTS)
    for _ in range(3):
        _, state = optimizer.update(gradient, state, CONSTANTS)
    arch = "dense 4\ntanh\ndense 1\n"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        arguments = (path, CONSTANTS, two_layers, arch, None, (ROWS,), TARGETS, "mse")
        kappascope.save_flax(*arguments, optimizer=state, **given)
    with h5py.File(path) as file:
        assumed = file.attrs.get("adam_assumed", "")
    return path, state, (assumed, " ".join(str(one.message) for one in said))


def preconditioned_eigenvalue(state, beta2, eps):
    """The largest of D^-1/2 H D^-1/2, from the Hessian that JAX computes."""
    with jax.enable_x64(True):
        double = jax.tree_util.tree_map(lambda a: jnp.asarray(a, jnp.float64), CONSTANTS)
        flat, tree = jax.flatten_util.ravel_pytree(double)
        x, y = jnp.asarray(ROWS[0], jnp.float64), jnp.asarray(TARGETS[0], jnp.float64)
        hessian = jax.hessian(lambda w: half_squared(two_layers(tree(w), x), y))(flat)
        v = np.asarray(jax.flatten_util.ravel_pytree(state.nu)[0], float) / (1 - beta2 ** int(state.count))
        root = 1 / np.sqrt(np.sqrt(v) + eps)
        return np.linalg.eigvalsh(root[:, None] * np.asarray(hessian) * root)[-1]


def compare_constants(analyzer, folder):
    """Adam's constants are those that optax keeps in its state, so the preconditioned Hessian is that of JAX;
    what optax does not keep is assumed, which the file and a warning say."""
    names, own = "beta1 beta2 eps", {"b2": 0.9, "eps": 1e-3}
    for kind, settings, given, assumed in (
        (optax.inject_hyperparams(optax.adam), own, {}, ""),
        (optax.inject_hyperparams(optax.adamw), own, {"eps": 1e-3}, ""),
        (optax.adam, own, {"beta1": 0.9, "beta2": 0.9, "eps": 1e-3}, ""),
        (optax.adam, {}, {"beta2": 0.999}, "beta1 eps"),
        (optax.adam, {}, {}, names),
    ):
        optimizer = optax.chain(optax.clip(1.0), kind(1e-2, **settings))
        path, state, (found, said) = save_with(folder, optimizer, **given)
        if found != assumed or all(f"{name} = " in said for name in names.split()) != (assumed == names):
            sys.exit(f"constants: expected {assumed or 'none'} assumed, found {found} and {said!r}")
        options = ("--operator", "preconditioned", "--exact", "--precision", "f64", "--json")
        value = json.loads(analyze(analyzer, *options, path))["lambda_max"]
        adam = optax.tree_utils.tree_get(state, "ScaleByAdamState")
        wanted = preconditioned_eigenvalue(adam, settings.get("b2", 0.999), settings.get("eps", 1e-8))
        if abs(value / wanted - 1) > 1e-6:  # optax has its constants in float32
            sys.exit(f"constants: {settings}: expected a preconditioned eigenvalue {wanted}, found {value}")
    injected = optax.inject_hyperparams(optax.adam)
    for settings, given, words in (
        ({"eps_root": 1e-2}, {}, "expected eps_root = 0"),
        ({"b2": 0.9}, {"beta2": 0.99}, "beta2: expected 0.9, which the optimizer's state has, found 0.99"),
    ):
        expect_refusal(lambda: save_with(folder, injected(1e-2, **settings), **given), words)


def compare(analyzer, folder):
    compare_constants(analyzer, folder)
    compare_trees(analyzer, folder)


if __name__ == "__main__":
    main(compare)
