"""Eigenvectors of exported critics as Flax's variables: python3 export_vectors_flax.py ANALYZER FOLDER

Each is multiplied by JAX's own Hessian: A v must be lambda v."""

import flax.linen as nn
import h5py
import jax
import jax.numpy as jnp
import numpy as np

import kappascope
from export_common import analyze, main

ARCH = "dense 6\nlayernorm eps=1e-6\nrelu\ndense 1\nloss mse\n"


class Critic(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(6)(x)
        x = nn.LayerNorm()(x)
        return nn.Dense(1)(nn.relu(x))


def compare(analyzer, folder):
    jax.config.update("jax_enable_x64", True)
    rng, critic = np.random.default_rng(0), Critic()
    x, y = rng.standard_normal((16, 4)), rng.standard_normal((16, 1))
    both = [critic.init(jax.random.PRNGKey(k), x) for k in (0, 1)]
    both = jax.tree_util.tree_map(lambda a: a.astype(jnp.float64) + 0.1, both)
    path, top = f"{folder}/flax.h5", f"{folder}/flax.top.h5"

    def loss(variables):
        critics = variables if isinstance(variables, list) else [variables]
        return sum(0.5 * jnp.mean((critic.apply(one, x) - y) ** 2) for one in critics)

    for variables in (both[0], both):
        kappascope.save_flax(path, variables, critic.apply, ARCH, inputs=x, targets=y)
        options = "--eigenvectors 3 --tolerance 1e-7 --precision f64 --output".split()
        analyze(analyzer, *options, top, path)
        with h5py.File(top) as file:
            values = file["eigenvalue"][:]
        vectors = kappascope.load_vectors(top, variables)
        for v, value in zip(vectors, values):
            image = jax.jvp(jax.grad(loss), (variables,), (v,))[1]
            leaves = zip(*map(jax.tree_util.tree_leaves, (image, v)))
            off = sum(float(((a - value * b) ** 2).sum()) for a, b in leaves) ** 0.5 / abs(value)
            print(f"eigenvalue {value:.6g}, relative residual {off:.1e}")
            if not (off < 1e-6 and len(vectors) == len(values)):
                raise SystemExit("FAILED")
    other = {"params": {"Dense_0": {"kernel": np.zeros((4, 6))}}}
    for given, words in ((other, "Dense_0/bias is not there"), ([both[0]] * 3, "2 critics, or one tree, found 3")):
        try:
            kappascope.load_vectors(top, given)
        except kappascope.Refused as error:
            if words in str(error):
                continue
        raise SystemExit(f"FAILED: expected a refusal with {words!r}")


if __name__ == "__main__":
    main(compare)
