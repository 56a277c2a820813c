"""The critics of critics.py in JAX: network and loss. Parameters are lists, in canonical order."""

import jax
import jax.numpy as jnp

from critics import BATCHNORM_EPS, LAYERNORM_EPS


def normalize(x, axis, eps, w):
    centered = x - x.mean(axis=axis, keepdims=True)
    variance = (centered * centered).mean(axis=axis, keepdims=True)
    return centered * jax.lax.rsqrt(variance + eps) * w["scale"] + w["bias"]


def forward(critic, parameters, x, loss_rows):
    """Outputs [loss_rows, K] of the first rows of x [R, D]; statistics are those of all R."""
    w, layers = iter(parameters), len(critic.layers)
    for i, (kind, shapes) in enumerate(critic.layers):
        w_here = {name: next(w) for name in shapes}
        if kind == "batchnorm":
            x = normalize(x, 0, BATCHNORM_EPS, w_here)
        elif kind == "layernorm":
            x = normalize(x, 1, LAYERNORM_EPS, w_here)
        elif kind == "relu":
            x = jax.nn.relu(x)
        else:
            x = (x[:loss_rows] if i + 1 == layers else x) @ w_here["kernel"]
            x = x + w_here["bias"] if "bias" in w_here else x
    return x


def loss(critic, outputs, target):
    """The mean over the rows."""
    if critic.loss == "mse":
        return 0.5 * jnp.sum((outputs - target) ** 2) / len(target)
    return -jnp.sum(target * jax.nn.log_softmax(outputs, axis=1)) / len(target)


def minibatch_loss(critic, parameters, x, target):
    return loss(critic, forward(critic, parameters, x, len(target)), target)
