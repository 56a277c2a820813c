"""The networks of critics.py in JAX, and the critics' loss. Parameters are lists, in canonical
order."""

import jax
import jax.numpy as jnp

from critics import BATCHNORM_EPS, LAYERNORM_EPS


def plain_norm(kind, x, w):
    axis, eps = (0, BATCHNORM_EPS) if kind == "batchnorm" else (1, LAYERNORM_EPS)
    centered = x - x.mean(axis=axis, keepdims=True)
    variance = (centered * centered).mean(axis=axis, keepdims=True)
    return centered * jax.lax.rsqrt(variance + eps) * w["scale"] + w["bias"]


def forward(network, parameters, x, rows, norm=plain_norm):
    """Outputs [rows, K] for the slice `rows` of x [R, D]; statistics are over all R rows."""
    for i, (kind, w) in enumerate(network.by_layer(parameters)):
        if kind == "dense":
            x = (x[rows] if i + 1 == len(network.layers) else x) @ w["kernel"]
            x = x + w["bias"] if "bias" in w else x
        else:
            x = jax.nn.relu(x) if kind == "relu" else norm(kind, x, w)
    return x


def loss(critic, outputs, target):
    """The mean loss over the rows."""
    if critic.loss == "mse":
        return 0.5 * jnp.sum((outputs - target) ** 2) / len(target)
    return -jnp.sum(target * jax.nn.log_softmax(outputs, axis=1)) / len(target)


def minibatch_loss(critic, parameters, x, target):
    return loss(critic, forward(critic, parameters, x, slice(len(target))), target)
