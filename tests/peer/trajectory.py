"""Recorded episodes of other programs' tasks, to be read by tests/support/suites.h.

FOLDER/TASK.trajectory is a line of text (magic word, task, versions, sizes), then rows of doubles. A row
describes a state: qpos, qvel, act, the target's position if the task draws one, the preceding action (0 at
a start), the observation, the reward; NaN where the program has none. First come EPISODES (1) episodes with
the rows of steps 0 to STEPS, NaN after a terminal state; then STARTS start states as the program draws
them; then the same states forced with random velocities.

Start state k is drawn with the random numbers of src/core/rng.c, stream k of SEED, so a program that draws
in the same order gets the same state. Actions are uniformly random.
"""

import math
import os
import sys

import mujoco
import numpy as np

MASK = 2**64 - 1


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

    def standard_normal(self, size):
        return self.randn(size)


def write(folder, task, seed, counts, sizes, rows):
    """counts: episodes, steps, starts; sizes: nq, nv, na, coordinates of a target, nu."""
    rows = np.array(rows, dtype="<f8")
    sizes = [*sizes, rows.shape[1] - sum(sizes) - 1]
    with open(os.path.join(folder, task + ".trajectory"), "wb") as out:
        words = ["ks-trajectory", task, mujoco.__version__, seed, *counts, *sizes]
        out.write((" ".join(map(str, words)) + "\n").encode())
        out.write(rows.tobytes())


def main(usage, record):
    """Calls record(folder, seed, starts, steps, task, episodes) for every task of the command line."""
    if len(sys.argv) < 6:
        sys.exit(usage)
    folder, seed, starts, steps = sys.argv[1], *map(int, sys.argv[2:5])
    for task in sys.argv[5:]:
        name, _, episodes = task.partition(":")
        record(folder, seed, starts, steps, name, int(episodes or 1))
