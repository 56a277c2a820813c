"""JAX's gradient updates: python3 update_jax.py FOLDER ARCHITECTURE f32|f64

A contestant (contest.py). A method is a cycle of updates, with the minibatches as JAX arrays and its own
noise. Each update is one compiled program with donated state: "unrolled" has one critic after the
other; "mapped" uses vmap over the critics; "sharded" is the same with the critics distributed to JAX's
devices (XLA_FLAGS sets their number). These decide with lax.cond whether the actor steps. "two" is
unrolled, with separate programs for updates with and without the actor's step. A method's name with
"-check" appended makes the recorded updates (agents.py), with the recorded noise.

Also tried, and no faster: a cycle as one program; the atoms' masses as a sum over all pairs of atoms
instead of a scatter; vectors of 512 bits."""

import math
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import agents
from agents import LOG_STD_MAX, LOG_STD_MIN, Problem
from contest import serve
from critic_jax import forward, loss
from critics import BATCHNORM_EPS, LAYERNORM_EPS, V_MAX, V_MIN

ALL, NONE = slice(None), slice(0)
KEEP = agents.BATCHNORM_MOMENTUM


class Norms:
    """The norms of one pass. statistics: the running averages, used in evaluation mode. In training mode
    `moved` are the updated averages. Variances are computed from the mean square, as in Flax."""

    def __init__(self, statistics=(), training=True):
        self.statistics, self.training = iter(statistics), training
        self.moved = []

    def __call__(self, kind, x, w):
        batch = kind == "batchnorm"
        running = (next(self.statistics, None), next(self.statistics, None)) if batch else ()
        mean, var = running if batch and not self.training else moments(x, 0 if batch else 1)
        if self.training and batch and running[0] is not None:
            self.moved += [KEEP * old + (1 - KEEP) * new.reshape(old.shape)
                           for old, new in zip(running, (mean, var))]
        factor = jax.lax.rsqrt(var + (BATCHNORM_EPS if batch else LAYERNORM_EPS)) * w["scale"]
        return (x - mean) * factor + w["bias"]


def moments(x, axis):
    mean = x.mean(axis=axis, keepdims=True)
    return mean, jnp.maximum((x * x).mean(axis=axis, keepdims=True) - mean * mean, 0)


def adam(trained, gradient, steps, schedule):
    """One Adam step: `trained` with new w, m and v."""
    t = steps + 1
    rate = agents.RATE_START - (agents.RATE_START - agents.RATE_END) * \
        jnp.minimum(steps / schedule, 1)
    rate /= -jnp.expm1(t * math.log(agents.BETA1))
    scale = 1 / -jnp.expm1(t * math.log(agents.BETA2))
    m = [agents.BETA1 * m + (1 - agents.BETA1) * g for m, g in zip(trained["m"], gradient)]
    v = [agents.BETA2 * v + (1 - agents.BETA2) * g * g for v, g in zip(trained["v"], gradient)]
    w = [w - rate * m / (jnp.sqrt(scale * v) + agents.ADAM_EPS)
         for w, m, v in zip(trained["w"], m, v)]
    return {**trained, "w": w, "m": m, "v": v}


def project(network, w):
    if not network.projected:
        return w
    layers = network.by_layer(w)
    for i, (kind, p) in enumerate(layers):
        if kind != "dense":
            continue
        squares = jnp.sum(p["kernel"] ** 2, axis=0)
        if "bias" in p and i + 1 < len(layers):
            squares = squares + p["bias"] ** 2
            p["bias"] = p["bias"] / jnp.sqrt(squares)
        p["kernel"] = p["kernel"] / jnp.sqrt(squares)
    return [a for _, p in layers for a in p.values()]


def sample(heads, noise):
    """tanh(mean + std noise) and the logarithm of its density."""
    mean, log_std = jnp.split(heads, 2, axis=1)
    log_std = jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)
    u = mean + jnp.exp(log_std) * noise
    log_slope = 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))  # log(1 - tanh(u)^2)
    log_density = -0.5 * noise ** 2 - log_std - 0.5 * math.log(2 * math.pi)
    return jnp.tanh(u), jnp.sum(log_density - log_slope, axis=1)


class Update:
    """One update of a state {"critics", "policy", "critic_steps", "actor_steps", "updates"}, as a
    function. critics: lists of arrays [E, ...] if `mapped`, else a list of arrays per critic."""

    def __init__(self, problem, mapped):
        self.p, self.mapped = problem, mapped
        self.support = np.linspace(V_MIN, V_MAX, problem.critic.outputs).astype(problem.dtype)

    def start(self):
        p = self.p
        critics = p.critics if self.mapped else [
            {key: [a[e] for a in x] for key, x in p.critics.items()}
            for e in range(agents.CRITICS)]
        steps = {"critic_steps": p.critic_steps, "actor_steps": p.actor_steps, "updates": 0}
        return {"critics": critics, "policy": p.policy,
                **{key: np.array(n, p.dtype) for key, n in steps.items()}}

    def each(self, f, critics):
        return jax.vmap(f)(critics) if self.mapped else [f(c) for c in critics]

    def stack(self, outputs):
        return outputs if self.mapped else jnp.stack(outputs)

    def values(self, outputs):
        """Q of outputs [E, rows, K], and the atoms' probabilities for a categorical critic."""
        if self.p.critic.loss == "mse":
            return outputs[..., 0], None
        p = jax.nn.softmax(outputs)
        return jnp.sum(p * self.support, axis=-1), p

    def targets(self, outputs, batch, log_pi, temperature):
        q, p = self.values(outputs)
        discount = agents.GAMMA * batch["mask"]
        offset = batch["reward"] - discount * temperature * log_pi
        if p is None:
            return (offset + discount * jnp.min(q, axis=0))[:, None]
        p = jnp.where((q[1] < q[0])[:, None], p[1], p[0])  # the first critic on a tie
        moved = jnp.clip(offset[:, None] + discount[:, None] * self.support, V_MIN, V_MAX)
        atoms = p.shape[1]
        position = (moved - V_MIN) * ((atoms - 1) / (V_MAX - V_MIN))
        below = jnp.clip(jnp.floor(position), 0, atoms - 2)
        share = p * (position - below)
        rows, below = jnp.arange(len(p))[:, None], below.astype(jnp.int32)
        return jnp.zeros_like(p).at[rows, below].add(p - share).at[rows, below + 1].add(share)

    def step_critics(self, state, batch, noise):
        p, policy = self.p, state["policy"]
        heads = forward(p.actor, policy["w"], batch["next_s"], ALL,
                        Norms(policy["state"], training=False))
        next_a, log_pi = sample(heads, noise)
        x = jnp.concatenate((batch["s"], batch["a"]), axis=1)
        next_x, last = jnp.concatenate((batch["next_s"], next_a), axis=1), ALL
        if p.critic.joint:
            x = next_x = jnp.concatenate((x, next_x))
            last = slice(p.rows, None)
        outputs = self.each(lambda c: forward(p.critic, c["target"], next_x, last, Norms()),
                            state["critics"])
        target = self.targets(self.stack(outputs), batch, log_pi, jnp.exp(policy["w"][-1]))

        def critic_loss(w, statistics):
            norms = Norms(statistics)
            outputs = forward(p.critic, w, x, slice(p.rows), norms)
            return loss(p.critic, outputs, target), norms.moved

        def step(c):
            (value, moved), g = jax.value_and_grad(critic_loss, has_aux=True)(c["w"], c["state"])
            c = adam(c, g, state["critic_steps"], p.schedule)
            w = project(p.critic, c["w"])
            target = [t + agents.TAU * (a - t) for t, a in zip(c["target"], w)]
            return {**c, "w": w, "target": target, "state": moved}, value

        stepped = self.each(step, state["critics"])
        critics, values = stepped if self.mapped else zip(*stepped)
        return {**state, "critics": critics if self.mapped else list(critics),
                "critic_steps": state["critic_steps"] + 1}, sum(values)

    def step_actor(self, state, s, noise):
        """Returns also the losses of actor and temperature."""
        p, policy = self.p, state["policy"]
        temperature = jnp.exp(policy["w"][-1])

        def actor_loss(w):
            norms = Norms(policy["state"])
            a, log_pi = sample(forward(p.actor, w, s, ALL, norms), noise)
            x = jnp.concatenate((s, a), axis=1)
            q, _ = self.values(self.stack(self.each(
                lambda c: forward(p.critic, c["w"], x, ALL, Norms(c["state"], training=False)),
                state["critics"])))
            lower = jnp.where(q[1] < q[0], q[1], q[0])
            return jnp.mean(temperature * log_pi - lower), (norms.moved, jnp.mean(log_pi))

        (value, (moved, log_pi)), g = jax.value_and_grad(actor_loss, has_aux=True)(policy["w"][:-1])
        temperature_loss = temperature * (p.actions / 2 - log_pi)
        policy = adam(policy, [*g, temperature_loss], state["actor_steps"], p.schedule)
        *w, log_temperature = policy["w"]
        policy = {**policy, "w": [*project(p.actor, w), log_temperature], "state": moved}
        return {**state, "policy": policy, "actor_steps": state["actor_steps"] + 1}, \
            (value, temperature_loss)

    def move_actor(self, state, s):
        """Updates only the actor's running statistics."""
        if self.p.actor.joint:
            norms = Norms(state["policy"]["state"])
            forward(self.p.actor, state["policy"]["w"], s, NONE, norms)
            state = {**state, "policy": {**state["policy"], "state": norms.moved}}
        nothing = jnp.full((), jnp.nan, s.dtype)
        return state, (nothing, nothing)

    def update(self, state, batch, noise, steps_actor):
        """noise: for the next action and for the action. steps_actor: True, False, or None: decided by the
        number of the update."""
        state, critic_loss = self.step_critics(state, batch, noise[0])
        s = batch["s"]
        if steps_actor is None:
            state, losses = jax.lax.cond(state["updates"] % agents.CYCLE == 0,
                                         lambda state: self.step_actor(state, s, noise[1]),
                                         lambda state: self.move_actor(state, s), state)
        else:
            state, losses = self.step_actor(state, s, noise[1]) if steps_actor else \
                self.move_actor(state, s)
        return {**state, "updates": state["updates"] + 1}, (critic_loss, *losses)


@partial(jax.jit, static_argnums=(1, 2))
def draw(key, shape, dtype):
    """The next key, and a list of normal numbers of this shape."""
    return jax.random.split(key)[0], list(jax.random.normal(key, shape, dtype))


class Agent:
    def __init__(self, problem, method):
        self.p, self.method = problem, method
        self.of = Update(problem, mapped=method in ("mapped", "sharded"))
        devices = jax.devices() if method == "sharded" else jax.devices()[:1]
        mesh = Mesh(devices[:agents.CRITICS], "e")
        self.everywhere, apart = (NamedSharding(mesh, PartitionSpec(*x)) for x in ((), ("e",)))
        self.where = jax.tree.map(lambda _: self.everywhere, self.of.start())
        if self.of.mapped:
            self.where["critics"] = jax.tree.map(lambda _: apart, self.where["critics"])
        self.update = jax.jit(self.of.update, static_argnums=3, donate_argnums=0,
                              out_shardings=(self.where, self.everywhere))
        self.minibatches = jax.device_put(problem.minibatches, self.everywhere)
        self.key = jax.device_put(jax.random.key(0), self.everywhere)
        self.restart()

    def restart(self):
        self.state, self.done = jax.device_put(self.of.start(), self.where), 0

    def run(self, noises):
        """A cycle; returns its losses."""
        losses = []
        for noise in noises:
            steps_actor = self.done % agents.CYCLE == 0 if self.method == "two" else None
            batch = self.minibatches[self.done % agents.UPDATES]
            self.state, found = self.update(self.state, batch, noise, steps_actor)
            self.done += 1
            losses.append(found)
        return losses

    def cycle(self):
        self.key, noises = draw(self.key, (agents.CYCLE, 2, self.p.rows, self.p.actions),
                                self.p.dtype)
        jax.block_until_ready((self.run(noises), self.state))

    def check(self):
        self.restart()
        losses = self.run([jnp.stack((b["next_noise"], b["noise"])) for b in self.minibatches])
        critics = self.state["critics"]
        if not self.of.mapped:
            critics = jax.tree.map(lambda *x: np.stack(x), *critics)
        return agents.answer(critics, self.state["policy"], np.array(losses, dtype="f8"))


def main():
    folder, name, precision = sys.argv[1:]
    jax.config.update("jax_enable_x64", precision == "f64")
    problem, kept, methods = Problem(folder, name, precision), {}, {}

    def agent(method):  # created, and compiled, at its first use
        if method not in kept:
            kept[method] = Agent(problem, method)
        return kept[method]

    for method in "unrolled", "mapped", "two", "sharded":
        methods[method] = lambda method=method: agent(method).cycle()
        methods[method + "-check"] = lambda method=method: agent(method).check()
    serve({"name": f"JAX {jax.__version__}", "blas": "XLA's own", "devices": jax.device_count()},
          methods, lambda result: result)


main()
