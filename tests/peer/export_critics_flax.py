"""The critics of export_critics_torch.py in Flax, where the sources are named."""

import math

import flax.linen as nn
import jax.numpy as jnp


class SAC(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, a):
        x = jnp.concatenate([x, a], -1)
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(1)(x)


class SimBaBlock(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        h = nn.Dense(4 * self.width)(nn.LayerNorm()(x))
        return x + nn.Dense(self.width)(nn.relu(h))


class SimBa(nn.Module):
    width: int

    @nn.compact
    def __call__(self, obs, action):
        x = nn.Dense(self.width)(jnp.concatenate([obs, action], -1))
        for _ in range(2):
            x = SimBaBlock(self.width)(x)
        return nn.Dense(1)(nn.LayerNorm()(x)).squeeze(-1)


def to_sphere(x):
    return x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-8)


class Scaler(nn.Module):
    width: int
    init: float = 1.0
    scale: float = 1.0

    @nn.compact
    def __call__(self, x):
        return (
            self.param("scaler", nn.initializers.constant(self.scale), (self.width,))
            * (self.init / self.scale)
            * x
        )


class LERPBlock(nn.Module):
    width: int
    blocks: int

    @nn.compact
    def __call__(self, x):
        s = math.sqrt(2 / self.width) / 2
        h = Scaler(4 * self.width, s, s)(nn.Dense(4 * self.width, use_bias=False)(x))
        h = to_sphere(nn.Dense(self.width, use_bias=False)(nn.relu(h) + 1e-8))
        return to_sphere(
            x
            + Scaler(self.width, 1 / (self.blocks + 1), 1 / math.sqrt(self.width), name="alpha")(
                h - x
            )
        )


class SimBaV2(nn.Module):
    width: int
    atoms: int

    @nn.compact
    def __call__(self, obs, action):
        s = math.sqrt(2 / self.width)
        x = jnp.concatenate([obs, action], -1)
        x = to_sphere(jnp.concatenate([x, jnp.full((*x.shape[:-1], 1), 3.0)], -1))
        x = to_sphere(Scaler(self.width, s, s)(nn.Dense(self.width, use_bias=False)(x)))
        for _ in range(2):
            x = LERPBlock(self.width, 2)(x)
        x = nn.Dense(self.width, use_bias=False)(x)
        return nn.Dense(self.atoms)(Scaler(self.width)(x))


class BROBlock(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.LayerNorm()(nn.Dense(self.width)(x)))
        return x + nn.LayerNorm()(nn.Dense(self.width)(h))


class BRO(nn.Module):
    width: int
    quantiles: int

    @nn.compact
    def __call__(self, obs, action):
        x = nn.relu(nn.LayerNorm()(nn.Dense(self.width)(jnp.concatenate([obs, action], -1))))
        for _ in range(2):
            x = BROBlock(self.width)(x)
        return nn.Dense(self.quantiles)(x)


def mish(x):
    return x * jnp.tanh(nn.softplus(x))


class TDMPC2(nn.Module):
    width: int
    bins: int

    @nn.compact
    def __call__(self, z, a):
        x = jnp.concatenate([z, a], -1)
        for _ in range(2):
            x = mish(nn.LayerNorm(epsilon=1e-5)(nn.Dense(self.width)(x)))
        return nn.Dense(self.bins)(x)


class MRQ(nn.Module):
    width: int

    @nn.compact
    def __call__(self, zsa):
        x = zsa
        for _ in range(3):
            x = nn.elu(
                nn.LayerNorm(epsilon=1e-5, use_scale=False, use_bias=False)(nn.Dense(self.width)(x))
            )
        return nn.Dense(1)(x)


class CrossQ(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, a, train):
        norm = dict(use_running_average=not train, momentum=0.99, epsilon=1e-3)
        x = nn.BatchNorm(**norm)(jnp.concatenate([x, a], -1))
        for _ in range(2):
            x = nn.BatchNorm(**norm)(nn.relu(nn.Dense(self.width)(x)))
        return nn.Dense(1)(x)
