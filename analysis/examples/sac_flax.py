"""SAC in one file, in JAX with Flax: a run of a study. What KappaScope needs is marked [k].

python3 sac_flax.py STUDY plain|layernorm SEED [STEPS]"""

import functools
import sys

import flax.linen as nn
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax

import kappascope  # [k]

study, name, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int((sys.argv[4:] or ["3000"])[0])
WIDTH, BATCH, GAMMA, TAU, ALPHA, LR, START, EVERY = 64, 128, 0.99, 0.005, 0.1, 1e-3, 500, 1000
SCALE = 2.0  # of the actions of Pendulum-v1


class Network(nn.Module):
    outputs: int

    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = nn.Dense(WIDTH)(x)
            x = nn.relu(nn.LayerNorm()(x) if name == "layernorm" else x)
        return nn.Dense(self.outputs)(x)


# Two critics, with parameters [2, ...]
Critics = nn.vmap(
    Network, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None, axis_size=2
)
actor, critics = Network(2), Critics(1)
ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}  # [k] which a state of optax.adam does not tell
optimizer = optax.adam(LR, *ADAM.values())


def values(variables, observation, action):
    return critics.apply(variables, jnp.concatenate([observation, action], -1))[..., 0]  # [2, rows]


def act(variables, observation, key):
    mean, log_std = jnp.split(actor.apply(variables, observation), 2, -1)
    noise = jax.random.normal(key, mean.shape)
    log_std = jnp.clip(log_std, -5, 2)
    x = mean + jnp.exp(log_std) * noise
    log_p = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi) - np.log(SCALE)
    log_p -= 2 * (np.log(2) - x - jax.nn.softplus(-2 * x))
    return SCALE * jnp.tanh(x), log_p.sum(-1), SCALE * jnp.tanh(mean)


act_now = jax.jit(act)


@jax.jit
def target_values(state, reward, following, end, key):
    action, log_p, _ = act(state["actor"], following, key)
    return reward + GAMMA * (1 - end) * (values(state["target"], following, action).min(0) - ALPHA * log_p)


@functools.partial(jax.jit, donate_argnums=0)
def update(state, observation, action, reward, following, end, key):
    keys = jax.random.split(key)
    y = target_values(state, reward, following, end, keys[0])

    def critic_loss(variables):
        return ((values(variables, observation, action) - y) ** 2).mean(-1).sum()

    def actor_loss(variables):
        action, log_p, _ = act(variables, observation, keys[1])
        return (ALPHA * log_p - values(state["critics"], observation, action).min(0)).mean()

    state = dict(state)
    for which, loss in (("critics", critic_loss), ("actor", actor_loss)):
        change, state[which + "_adam"] = optimizer.update(
            jax.grad(loss)(state[which]), state[which + "_adam"]
        )
        state[which] = optax.apply_updates(state[which], change)
    state["target"] = optax.incremental_update(state["critics"], state["target"], TAU)
    return state


env, eval_env = gymnasium.make("Pendulum-v1"), gymnasium.make("Pendulum-v1")
rng, keys, replay = np.random.default_rng(seed), jax.random.PRNGKey(seed), []
variables = critics.init(keys, jnp.zeros((1, 4)))
state = {
    "critics": variables,
    "target": jax.tree.map(jnp.copy, variables),
    "actor": actor.init(keys, jnp.zeros((1, 3))),
}
state |= {which + "_adam": optimizer.init(state[which]) for which in ("critics", "actor")}


def sample(n):
    rows = zip(*(replay[i] for i in rng.integers(len(replay), size=n)))
    return [np.array(column, np.float32) for column in rows]


def mean_return(episodes=5):
    total = 0.0
    for episode in range(episodes):
        observation, done = eval_env.reset(seed=1000 + episode)[0], False
        while not done:
            action = act_now(state["actor"], observation[None], keys)[2][0]
            observation, reward, end, cut, _ = eval_env.step(np.asarray(action))
            total, done = total + float(reward), end or cut
    return total / episodes


# [k] Of which data: 8 minibatches of 256 rows, drawn once. What is saved: critics, inputs and targets.
ARCH = "dense 64\nlayernorm eps=1e-6\nrelu\n" * 2 if name == "layernorm" else "dense 64\nrelu\n" * 2


def draw():
    return [column.reshape(8, 256, *column.shape[1:]) for column in sample(8 * 256)]


def save(path, step, minibatches):
    observation, action, *following = minibatches
    kappascope.save_flax(
        path,
        state["critics"],
        apply=values,
        arch=ARCH + "dense 1\n",
        inputs=(observation, action),
        targets=target_values(state, *following, keys),
        loss="mse weight=2",  # without the 1/2 of mse
        ensemble=2,
        optimizer=state["critics_adam"],
        **ADAM,
    )


run = kappascope.Run(
    study,
    env="Pendulum-v1",
    name=name,
    seed=seed,
    every=EVERY,
    save=save,
    draw=draw,
    attributes={"gamma": GAMMA},
)
# [k]

observation, _ = env.reset(seed=seed)
for step in range(1, steps + 1):
    keys, key = jax.random.split(keys)
    if step <= START:
        action = rng.uniform(-SCALE, SCALE, 1).astype(np.float32)
    else:
        action = np.asarray(act_now(state["actor"], observation[None], key)[0][0])
    following, reward, end, cut, _ = env.step(action)
    replay.append((observation, action, reward, following, end))
    observation = env.reset()[0] if end or cut else following
    if step > START:
        state = update(state, *sample(BATCH), key)
        run(step)  # [k]
    if step % EVERY == 0:
        value = mean_return()
        run.evaluated(step, value)  # [k]
        print(f"{name}, seed {seed}, step {step}: return {value:.0f}")
