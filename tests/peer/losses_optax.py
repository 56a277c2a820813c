"""The calls of optax and the defaults of Flax in analysis/LOSSES.md: python3 losses_optax.py
ANALYZER FOLDER

Every row of the page's table of optax is evaluated as it stands, for a linear critic whose
checkpoint has the row's line: the mean of optax has to be the loss that save_flax stores, and the
analyzer compares that with its own to 1e-9."""

import re
import sys

import flax.linen as nn
import h5py
import jax
import jax.numpy as jnp
import numpy as np
import optax

import kappascope
from export_common import analyze, main

N, B, D, E, K = 2, 10, 4, 2, 7
DELTA = 0.3
failures = []


def rows(text):
    """(line, expression) of the page's table."""
    return re.findall(r"(?m)^\| `(loss [^`]*)` \| `([^`]*)`", text[text.index("In optax") :])


def kinds(line, rng):
    """The outputs of a critic with this loss, and targets."""
    if " ce" in line:
        return K, np.asarray(jax.nn.softmax(2 * rng.standard_normal((N, B, K)), -1))
    return (
        (K, rng.standard_normal((N, B, 9)))
        if "quantile" in line
        else (3, rng.standard_normal((N, B, 3)))
    )


def check(analyzer, path, line, expression):
    rng = np.random.default_rng(0)
    line = line.replace("=D", f"={DELTA}").replace("=A", "=0").replace("=B", "=1")
    outputs, targets = kinds(line, rng)
    x = rng.standard_normal((N, B, D))
    module = nn.Dense(outputs)
    critics = [
        {
            "params": {
                "kernel": rng.standard_normal((D, outputs)),
                "bias": rng.standard_normal(outputs),
            }
        }
        for _ in range(E)
    ]
    kappascope.save_flax(
        path,
        critics,
        module.apply,
        arch=f"dense {outputs}\n{line}\n",
        inputs=x,
        targets=targets,
        names={"00_dense/kernel": "kernel", "00_dense/bias": "bias"},
    )
    analyze(analyzer, "--order", "2", path)
    with h5py.File(path) as file:
        stored = file["batch/loss"][:]
    with jax.enable_x64(True):
        for n in range(N):
            found = 0
            for variables in critics:
                t = jnp.asarray(targets[n])
                f = jnp.asarray(x[n] @ variables["params"]["kernel"] + variables["params"]["bias"])
                q = (2 * jnp.arange(outputs) + 1) / (2 * outputs)
                names = dict(
                    optax=optax, jnp=jnp, f=f, t=t, D=DELTA, q=q, d=t[:, None, :] - f[:, :, None]
                )
                found += float(eval(expression, names))  # pylint: disable=eval-used
            if not abs(found - stored[n]) <= 1e-12 * abs(stored[n]):
                failures.append(f"{line}: {expression}: expected {stored[n]}, found {found}")


def check_defaults(text):
    """The column of Flax in the table of defaults."""
    x = jnp.linspace(-2, 2, 9)
    table = {
        "`batchnorm eps=`": f"{nn.BatchNorm.epsilon:g}",
        "`layernorm eps=`": f"{nn.LayerNorm.epsilon:g}",
        "`rmsnorm eps=`": f"{nn.RMSNorm.epsilon:g}",
        "`batchnorm momentum=`": f"{nn.BatchNorm.momentum:g}",
        "`leaky_relu negative_slope=`": f"{-float(nn.leaky_relu(jnp.asarray(-1.0))):g}",
        "`elu`, alpha": f"{-float(nn.elu(jnp.asarray(-50.0))):g}",
    }
    for name, value in table.items():
        cells = next(line for line in text.splitlines() if line.startswith(f"| {name}")).split("|")
        words = cells[4].split()[0]
        if float(words) != float(value):
            failures.append(f"defaults of Flax: {name}: the page has {words}, found {value}")
    if not jnp.array_equal(nn.gelu(x), jax.nn.gelu(x, approximate=True)):
        failures.append("defaults of Flax: gelu is not in the tanh form")


def compare(analyzer, folder):
    with open("analysis/LOSSES.md", encoding="utf-8") as file:
        text = file.read()
    table = rows(text)
    if {line.split()[1] for line, _ in table} != {"mse", "huber", "quantile", "ce"}:
        sys.exit(f"analysis/LOSSES.md: expected a row of optax for each loss, found {table}")
    for line, expression in table:
        check(analyzer, f"{folder}/loss.h5", line, expression)
    check_defaults(text)
    if failures:
        sys.exit("\n".join(failures))
    print(f"{len(table)} calls of optax {optax.__version__} agree to 1e-12")


if __name__ == "__main__":
    main(compare)
