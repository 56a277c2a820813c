"""JAX's Hessian-vector products: python3 hvp_jax.py CHECKPOINT VECTOR f32|f64

A contestant (contest.py). The minibatches are distributed to JAX's devices; XLA_FLAGS sets the number
of devices of the processor. Methods: "gradient" (loss, then gradient); compiled jvp of grad with one
minibatch per call ("each"), with all in one loop ("scan") or in one batch ("vmap"); "kept" (each
minibatch's gradient is linearized once, and the linear part compiled). The results are means over the
minibatches."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from contest import serve
from critic_jax import minibatch_loss
from critics import Problem


def plus(a, b):
    return [x + y for x, y in zip(a, b)]


class Device:
    """A device with its minibatches. Methods start a computation and do not wait for it."""

    def __init__(self, problem, device, k, devices):
        def put(tree):
            return jax.device_put(tree, device)

        self.critic, self.minibatches = problem.critic, problem.minibatches
        self.w, self.v = put(problem.parameters), put(problem.vectors)
        self.x, self.target = put(problem.input[k::devices]), put(problem.target[k::devices])
        self.pairs = put(list(zip(problem.input[k::devices], problem.target[k::devices])))
        self.zeros = put([np.zeros_like(a) for a in problem.parameters[0]])
        self.linear = {}
        self.jit_gradient = jax.jit(self.add_gradient)
        self.jit_product = jax.jit(self.add_product)
        self.jit_scan, self.jit_vmap = jax.jit(self.scan_products), jax.jit(self.vmap_products)
        self.jit_linearize = jax.jit(self.linearize)
        self.jit_linear = jax.jit(lambda total, f, v: plus(total, f(v)))

    def loss(self, w, x, target):
        return minibatch_loss(self.critic, w, x, target) / self.minibatches

    def product(self, w, v, x, target):
        return jax.jvp(lambda w: jax.grad(self.loss)(w, x, target), (w,), (v,))[1]

    def linearize(self, w, x, target):
        return jax.linearize(lambda w: jax.grad(self.loss)(w, x, target), w)[1]

    def add_gradient(self, total, w, x, target):
        loss, gradient = jax.value_and_grad(self.loss)(w, x, target)
        return plus(total, [loss] + gradient)

    def add_product(self, total, w, v, x, target):
        return plus(total, self.product(w, v, x, target))

    def scan_products(self, w, v, x, target):
        def step(total, pair):
            return self.add_product(total, w, v, *pair), None

        return jax.lax.scan(step, [jnp.zeros_like(a) for a in w], (x, target))[0]

    def vmap_products(self, w, v, x, target):
        parts = jax.vmap(lambda x, t: self.product(w, v, x, t))(x, target)
        return [a.sum(axis=0) for a in parts]

    def gradient(self, e):
        total = [jnp.zeros((), self.x.dtype, device=self.x.device)] + self.zeros
        for pair in self.pairs:
            total = self.jit_gradient(total, self.w[e], *pair)
        return total

    def each(self, e):
        total = self.zeros
        for pair in self.pairs:
            total = self.jit_product(total, self.w[e], self.v[e], *pair)
        return total

    def scan(self, e):
        return self.jit_scan(self.w[e], self.v[e], self.x, self.target)

    def vmap(self, e):
        return self.jit_vmap(self.w[e], self.v[e], self.x, self.target)

    def kept(self, e):
        if e not in self.linear:
            self.linear[e] = [self.jit_linearize(self.w[e], *pair) for pair in self.pairs]
        total = self.zeros
        for f in self.linear[e]:
            total = self.jit_linear(total, f, self.v[e])
        return total


class Products:
    def __init__(self, problem):
        n = min(jax.device_count(), problem.minibatches)
        self.ensemble = problem.ensemble
        self.devices = [Device(problem, d, k, n) for k, d in enumerate(jax.devices()[:n])]

    def method(self, name):
        """Critic after critic: starts all devices, then sums their results."""
        def run():
            result = []
            for e in range(self.ensemble):
                total, *others = [getattr(d, name)(e) for d in self.devices]
                for other in others:
                    total = plus(total, jax.device_put(other, total[-1].device))
                result.append(total)
            return jax.block_until_ready(result)

        return run


def gradient_vector(result):
    """The loss, then the gradient, from a (loss, gradient) per critic."""
    return [sum(float(total[0]) for total in result)] + [a for t in result for a in t[1:]]


def main():
    checkpoint, vector, precision = sys.argv[1:]
    jax.config.update("jax_enable_x64", precision == "f64")
    p = Products(Problem(checkpoint, vector, precision))
    methods = {name: p.method(name) for name in ("each", "scan", "vmap", "kept")}
    gradients = p.method("gradient")
    serve({"name": f"JAX {jax.__version__}", "blas": "XLA's own", "devices": len(p.devices)},
          {**methods, "gradient": lambda: [gradient_vector(gradients())]},
          lambda result: np.concatenate([np.ravel(a) for total in result for a in total]))


main()
