"""Records episodes of dm_control's tasks, to be read by tests/trajectory.h.

Usage: dm_control_record.py FOLDER SEED STARTS STEPS TASK[:EPISODES]...      ("dog-trot:5", ...)

Writes FOLDER/TASK.trajectory: a line of text (magic word, task, versions, sizes), then rows of doubles.
A row describes a state: qpos, qvel, act, the target's position if the task draws one, the preceding
action (0 at a start), the observation (its parts in alphabetical order of their names), the reward.
First come EPISODES (1) episodes with the rows of steps 0 to STEPS; then STARTS start states as dm_control
draws them; then the same states forced with random velocities.

Start state k is drawn with the random numbers of src/core/rng.c, stream k of SEED, so a program that
draws in dm_control's order gets the same state. An episode begins with a start state that is forced: a
reset, the state, one forward pass, without additional passes that would warm-start the solver. Actions
are uniformly random.
"""

import math
import os
import sys

os.environ.setdefault("MUJOCO_GL", "disabled")

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from dm_control import suite  # noqa: E402

MASK = 2**64 - 1
FASTEST = 20  # m/s and rad/s of forced states: above the target speed of every task


def threefry(key, counter):
    """Threefry-2x64 with 20 rounds: Salmon et al., SC 2011."""
    rotations = (16, 42, 12, 31, 16, 32, 24, 21)
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDAA9FC1A22)
    a, b = (counter[0] + keys[0]) & MASK, (counter[1] + keys[1]) & MASK
    for i in range(20):
        turn = rotations[i % 8]
        a = (a + b) & MASK
        b = ((b << turn | b >> (64 - turn)) & MASK) ^ a
        if i % 4 == 3:
            n = i // 4 + 1
            a, b = (a + keys[n % 3]) & MASK, (b + keys[(n + 1) % 3] + n) & MASK
    return a, b


class Stream(np.random.RandomState):
    """The generator of src/core/rng.c, in place of NumPy's."""

    def __init__(self, seed):
        super().__init__(0)
        self.seed_number = seed
        self.start(0)

    def start(self, stream):
        self.stream, self.drawn = stream, 0

    def units(self):
        bits = threefry((self.seed_number, self.stream), (self.drawn, 0))
        self.drawn += 1
        return [(b >> 11) * 2.0**-53 for b in bits]

    def uniform(self, low=0.0, high=1.0, size=None):
        low, high = np.broadcast_arrays(low, high)
        shape = low.shape if size is None else size
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        draws = [a + (b - a) * self.units()[0] for a, b in zip(low.flat, high.flat)]
        return np.reshape(draws, shape) if shape != () else draws[0]

    def rand(self, *shape):
        return self.uniform(0, 1, shape)

    def normal_draw(self):
        u, v = self.units()
        return math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v)

    def randn(self, *shape):
        draws = [self.normal_draw() for _ in range(math.prod(shape))]
        return np.reshape(draws, shape) if shape else draws[0]


def target(task, physics):
    """The coordinates of the target that the task draws."""
    model = physics.named.model
    if task.startswith("finger-turn"):
        return model.site_pos["target", ["x", "z"]]
    if task == "fish-swim":
        return model.geom_pos["target"]
    if task.startswith("reacher"):
        return model.geom_pos["target", ["x", "y"]]
    return np.zeros(0)


def flatten(observation):
    return np.concatenate([np.ravel(observation[name]) for name in sorted(observation)])


def row(name, environment, action, step=None):
    """A row for the current state; observation and reward are from `step`, or else computed."""
    task, physics = environment.task, environment.physics
    data = physics.data
    parts = [data.qpos, data.qvel, data.act, target(name, physics), action]
    observation = step.observation if step else task.get_observation(physics)
    reward = step.reward if step else task.get_reward(physics)
    return np.concatenate([*parts, flatten(observation), [reward]])


def force(physics, velocity):
    """Sets the current state with another velocity, with as few forward passes as possible."""
    position, activation = physics.data.qpos.copy(), physics.data.act.copy()
    physics.reset()
    physics.data.qpos[:], physics.data.qvel[:], physics.data.act[:] = position, velocity, activation
    physics.after_reset()


def record(folder, seed, starts, steps, task, episodes):
    domain, name = task.split("-", 1)
    stream = Stream(seed)
    environment = suite.load(domain, name, task_kwargs={"random": stream})
    physics, model = environment.physics, environment.physics.model
    low, high = model.actuator_ctrlrange.T
    gain = (high - low) / 2
    draws = np.random.RandomState(seed)
    still = np.zeros(model.nu)
    rows = []
    for k in range(episodes):
        stream.start(k)
        environment.reset()
        force(physics, physics.data.qvel.copy())
        rows.append(row(task, environment, still))
        for _ in range(steps):
            action = draws.uniform(-1, 1, model.nu)
            step = environment.step(gain * action + (gain + low))
            rows.append(row(task, environment, action, step))
    forced = []
    for k in range(starts):
        stream.start(k)
        environment.reset()
        rows.append(row(task, environment, still))
        force(physics, FASTEST * draws.uniform(-1, 1, model.nv))
        forced.append(row(task, environment, still))
    rows = np.array(rows + forced, dtype="<f8")
    sizes = [model.nq, model.nv, model.na, target(task, physics).size, model.nu]
    sizes.append(rows.shape[1] - sum(sizes) - 1)
    with open(os.path.join(folder, task + ".trajectory"), "wb") as out:
        words = ["ks-trajectory", task, mujoco.__version__, seed, episodes, steps, starts, *sizes]
        out.write((" ".join(map(str, words)) + "\n").encode())
        out.write(rows.tobytes())


def main(folder, seed, starts, steps, *tasks):
    for task in tasks:
        name, _, episodes = task.partition(":")
        record(folder, int(seed), int(starts), int(steps), name, int(episodes or 1))


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
