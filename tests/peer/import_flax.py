"""Files of Flax, safetensors, NumPy and h5py, imported: python import_flax.py PROGRAMS FOLDER

Two critics by nn.vmap, three seeds stacked in front of them, with batch statistics: as XQC and others save them."""

import sys

import flax.linen as nn
import h5py
import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization, traverse_util
from safetensors.flax import save_file

from import_common import import_and_analyze, write

SEEDS, SEED, CRITICS, MINIBATCHES, ROWS, LOSS_ROWS, INPUTS, ATOMS = 3, 1, 2, 4, 12, 8, 6, 5
ARCH = """batchnorm eps=1e-5
dense 16
layernorm eps=1e-6
relu
dense 5
loss ce min=-2 max=2
"""
NAMES = {
    "00_batchnorm/scale": "params/BatchNorm_0/scale",
    "00_batchnorm/bias": "params/BatchNorm_0/bias",
    "00_batchnorm/mean": "batch_stats/BatchNorm_0/mean",
    "00_batchnorm/var": "batch_stats/BatchNorm_0/var",
    "01_dense/kernel": "params/Dense_0/kernel",
    "01_dense/bias": "params/Dense_0/bias",
    "02_layernorm/scale": "params/LayerNorm_0/scale",
    "02_layernorm/bias": "params/LayerNorm_0/bias",
    "04_dense/kernel": "params/Dense_1/kernel",
    "04_dense/bias": "params/Dense_1/bias",
}


class Critic(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=False, param_dtype=jnp.float64)(x)
        x = nn.LayerNorm(param_dtype=jnp.float64)(nn.Dense(16, param_dtype=jnp.float64)(x))
        return nn.Dense(ATOMS, param_dtype=jnp.float64)(nn.relu(x))


def make_variables(critics, x, dtype):
    """[SEEDS, CRITICS, ...], every number random: zeros and ones would hide a wrong order."""
    shapes = jax.eval_shape(critics.init, jax.random.key(0), x)
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.uniform(0.2, 1.5, (SEEDS, *leaf.shape)), dtype), shapes)


def make_batch(critics, variables, folder):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((MINIBATCHES, ROWS, INPUTS))
    t = rng.dirichlet(np.ones(ATOMS), (MINIBATCHES, LOSS_ROWS))
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[SEED], jnp.float64), variables)

    def loss(params, n):
        f, _ = critics.apply({**one, "params": params}, x[n], mutable=["batch_stats"])
        return -(t[n] * jax.nn.log_softmax(f[:, :LOSS_ROWS])).sum(-1).mean(-1).sum(), f

    results = [jax.value_and_grad(loss, has_aux=True)(one["params"], n) for n in range(MINIBATCHES)]
    np.savez(f"{folder}/b.npz", input=x, target=t, loss=np.array([value for (value, _), _ in results]),
             output=np.stack([f.swapaxes(0, 1) for (_, f), _ in results]),
             gradient_norm=np.array([np.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(g))) for _, g in results]))


def write_h5(path, flat):
    with h5py.File(path, "w") as file:
        for name, leaf in flat.items():
            file.create_dataset(name, data=leaf, compression="gzip", chunks=True)


def write_files(variables, folder):
    """The paths of all files of these variables."""
    flat = {"/".join(name): leaf for name, leaf in traverse_util.flatten_dict(variables).items()}
    narrow = flat["params/Dense_0/kernel"].dtype == jnp.bfloat16
    paths = [f"{folder}/w.{ending}" for ending in ("msgpack", "chunks.msgpack", "safetensors")]
    for path, size in zip(paths, (2**30, 100)):
        serialization.MAX_CHUNK_SIZE = size
        with open(path, "wb") as file:
            file.write(serialization.to_bytes(variables))
    save_file(flat, paths[2])
    if not narrow:  # NumPy and HDF5 have no bfloat16
        paths += [f"{folder}/{name}" for name in ("w.npz", "w.compressed.npz", "w.h5")]
        np.savez(paths[3], **flat)
        np.savez_compressed(paths[4], **flat)
        write_h5(paths[5], flat)
    return flat, paths


def check(checkpoint, flat):
    with h5py.File(checkpoint) as file:
        for name, source in NAMES.items():
            expected = np.asarray(flat[source], np.float64)[SEED]
            if not np.array_equal(file[f"critic/{name}"][:], expected):
                sys.exit(f"{checkpoint}: {name} differs from {source}")


def main():
    programs, folder = sys.argv[1:]
    critics = nn.vmap(Critic, variable_axes={"params": 0, "batch_stats": 0}, split_rngs={"params": True}, in_axes=None,
                      out_axes=0, axis_size=CRITICS)()
    write(f"{folder}/a.arch", ARCH)
    write(f"{folder}/m.map", "layout = flax\n" + "".join(f"{name} = {source}\n" for name, source in NAMES.items()))
    for dtype in (jnp.float64, jnp.float32, jnp.bfloat16):
        variables = make_variables(critics, np.zeros((ROWS, INPUTS)), dtype)
        make_batch(critics, variables, folder)
        flat, paths = write_files(variables, folder)
        for path in paths:
            check(import_and_analyze(programs, folder, path, "--slice", f"0:{SEED}", "--ensemble-axis", "1"), flat)


main()
