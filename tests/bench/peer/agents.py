"""The agents that the contestants update: networks, start state, minibatches, noise and the expected
results, from the files of tests/peer/update.c.

Constants and formulas are those of the XQC paper (Palenicek et al., ICLR 2026) and of soft
actor-critic (Haarnoja et al., arXiv 1812.05905)."""

import h5py
import numpy as np

from contest import distance
from critics import Critic, Network, split

CYCLE = 3  # updates, of which one steps the actor; times are measured per cycle
UPDATES = 3 * CYCLE
CRITICS = 2
TAU, BATCHNORM_MOMENTUM = 0.005, 0.99
BETA1, BETA2, ADAM_EPS = 0.9, 0.999, 1e-8
RATE_START, RATE_END = 3e-4, 3e-5
LOG_STD_MIN, LOG_STD_MAX = -10, 2
GAMMA = 0.99  # for dog-trot's 500 agent steps
# The state after an update, arrays [ensemble, ...], and the losses of all updates.
ARRAYS = "critic", "target", "critic_state", "actor", "actor_state", "log_temperature"
LOSSES = {"critic_loss": 0, "actor_loss": 3, "temperature_loss": 4}  # columns of /results
BATCH = "s", "a", "next_s", "reward", "mask", "next_noise", "noise"


def statistics_shapes(network):
    """Shapes of the running mean and variance of each batchnorm of a network."""
    return [shapes["scale"] for kind, shapes in network.layers if kind == "batchnorm"
            for _ in range(2)]


class Problem:
    """An agent before its first update, and the inputs of its updates, as arrays of one precision.

    critics, policy: {"w", "m", "v", "target", "state": list of arrays}, the critics' [E, ...];
    the actor's parameters are followed by the logarithm of the temperature, which Adam steps like them.
    minibatches: [UPDATES] of {name: [batch, ...]}; steps: of the optimizers so far."""

    def __init__(self, folder, name, precision):
        self.dtype = {"f32": "float32", "f64": "float64"}[precision]
        with h5py.File(f"{folder}/run.h5") as f:
            sizes = {key: int(f.attrs[key]) for key in (
                "observations", "actions", "hidden", "depth", "actor_hidden", "actor_depth",
                "atoms", "utd", "env_steps")}
            batch = {key: f[f"batch/{key}"][:UPDATES].astype(self.dtype) for key in BATCH}
        self.minibatches = [{key: x[u] for key, x in batch.items()} for u in range(UPDATES)]
        self.rows = batch["s"].shape[1]
        self.actions = sizes["actions"]
        self.schedule = sizes["utd"] * sizes["env_steps"] // 2  # updates until RATE_END
        self.critic = Critic(name, sizes["observations"] + sizes["actions"], sizes["hidden"],
                             sizes["depth"], sizes["atoms"])
        self.actor = Network(name, sizes["observations"], sizes["actor_hidden"],
                             sizes["actor_depth"], 2 * sizes["actions"])
        self.read_start(f"{folder}/{name}.h5")

    def read_start(self, path):
        with h5py.File(path) as f:
            group = f["update_000"]
            start = {name: group[name][()].astype(self.dtype) for name in group}
            self.critic_steps = int(group.attrs["critic_steps"])
            self.actor_steps = int(group.attrs["actor_steps"])
        critic, actor = self.critic, self.actor
        self.critics = {"w": critic.split(start["critic"]),
                        "m": critic.split(start["critic_m"]),
                        "v": critic.split(start["critic_v"]),
                        "target": critic.split(start["target"]),
                        "state": split(start["critic_state"], statistics_shapes(critic))}
        self.policy = {key: [*actor.split(start["actor" + end][0]),
                             start["log_temperature" + end][0, 0]]
                       for key, end in (("w", ""), ("m", "_m"), ("v", "_v"))}
        self.policy["state"] = split(start["actor_state"][0], statistics_shapes(actor))


def answer(critics, policy, losses):
    """The state after the updates as one vector, in the order of ARRAYS, then losses [UPDATES, 3].
    critics: lists of arrays [E, ...]."""
    *actor, log_temperature = policy["w"]
    parts = [join(critics["w"]), join(critics["target"]), join(critics["state"]),
             *actor, *policy["state"], log_temperature, losses]
    return np.concatenate([np.ravel(part) for part in parts])


def join(arrays):
    return np.concatenate([np.reshape(a, (CRITICS, -1)) for a in arrays], axis=1) if arrays else []


def read_answer(folder, name):
    """KappaScope's results, {name: flat array}; losses are NaN where the actor does not step."""
    with h5py.File(f"{folder}/{name}.h5") as f:
        group = f[f"update_{UPDATES:03d}"]
        parts = {array: group[array][()].ravel() for array in ARRAYS}
        results = f["results"][:UPDATES]
    return parts, {loss: results[:, column] for loss, column in LOSSES.items()}


def deviations(found, folder, name):
    """{name: relative deviation of an answer from KappaScope's}."""
    arrays, losses = read_answer(folder, name)
    out, at = {}, 0
    for what, expected in arrays.items():
        if len(expected):
            out[what] = distance(found[at:at + len(expected)], expected)
        at += len(expected)
    found = found[at:].reshape(UPDATES, len(LOSSES))
    for column, (what, expected) in enumerate(losses.items()):
        out[what] = distance(found[:, column], expected)
    return out
