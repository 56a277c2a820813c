"""Records episodes of HumanoidBench's own classes, robot h1, to be read by tests/support/suites.h.

Usage: humanoid_bench_record.py FOLDER SEED STARTS STEPS TASK[:EPISODES]...      ("h1-walk-v0:5", ...)

HUMANOID_BENCH_DIR in the environment is the root of a checkout of HumanoidBench. Writes
FOLDER/TASK.trajectory, see trajectory.py. Start states are drawn in HumanoidBench's order. An episode ends
at a terminal state. The first half of the episodes starts from drawn states, the other half from forced
ones. Forced states are scattered over the places where rewards change: near walls, poles, barriers,
checkpoints, the chair, the goal.

The pretrained policies of HumanoidBench's hierarchical control are not used, so the module that needs
PyTorch and JAX for them is replaced by an empty one; nothing is drawn.
"""

import math
import os
import sys
import types

os.environ.setdefault("MUJOCO_GL", "disabled")
sys.path.insert(0, os.environ["HUMANOID_BENCH_DIR"])
sys.dont_write_bytecode = True
policies = types.ModuleType("humanoid_bench.mjx.flax_to_torch")
policies.TorchModel = policies.TorchPolicy = None
sys.modules["humanoid_bench.mjx"] = types.ModuleType("humanoid_bench.mjx")
sys.modules["humanoid_bench.mjx.flax_to_torch"] = policies

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from humanoid_bench.env import HumanoidEnv  # noqa: E402
from trajectory import Stream, main, write  # noqa: E402

# Where the pelvis is in forced states: the least and the largest x, y, z.
PLACES = {
    "hurdle": ((-0.5, -4.6, 0.9), (20, 4.6, 1.1)),
    "crawl": ((-2, -1.3, 0.3), (12, 1.3, 1.1)),
    "maze": ((-2, -2, 0.9), (8, 8, 1.1)),
    "sit_simple": ((-0.6, -0.3, 0.45), (0.4, 0.3, 1)),
    "sit_hard": ((-0.6, -0.3, 0.45), (0.4, 0.3, 1)),
    "balance_simple": ((-0.2, -0.2, 0.7), (0.2, 0.2, 1.5)),
    "balance_hard": ((-0.2, -0.2, 0.7), (0.2, 0.2, 1.5)),
    "pole": ((-0.5, -3.0, 0.45), (20, 3.0, 1.1)),
    "stair": ((-1, -2, 0.9), (20, 2, 3)),
    "slide": ((-1, -4, 0.9), (20, 4, 3)),
}
ANYWHERE = ((-3, -3, 0.15), (3, 3, 1.2))
CHECKPOINTS = ((0, 0), (3, 0), (3, 6), (6, 6), (6, 6))


def task_name(task):
    return task[len("h1-") : -len("-v0")]


class Recorder:
    def __init__(self, task, seed):
        self.name = task_name(task)
        self.environment = HumanoidEnv(robot="h1", control="pos", task=self.name, render_mode=None)
        self.model, self.data = self.environment.model, self.environment.data
        self.task = self.environment.task
        self.stream = Stream(seed)
        # Both generators of a reset: Gymnasium's for the noise, NumPy's for goals and places.
        self.environment.np_random = self.stream
        np.random.uniform = self.stream.uniform
        self.draws = np.random.RandomState(seed)

    def target(self):
        """What else describes a state: the goal to be reached, the stage of the maze."""
        if self.name == "reach":
            return self.task.goal
        return [self.task.maze_stage] if self.name == "maze" else []

    def row(self, action, target, observation, reward=np.nan):
        data = self.data
        return np.concatenate([data.qpos, data.qvel, data.act, target, action, observation, [reward]])

    def start_row(self):
        target = np.array(self.target(), dtype=float)
        state = self.row(np.zeros(self.model.nu), target, self.task.get_obs())
        state[-1] = self.task.get_reward()[0]
        self.set_target(target)  # the reward of the maze counts checkpoints
        return state

    def set_target(self, target):
        if self.name == "reach":
            self.task.goal = np.array(target)
        if self.name == "maze":
            self.set_stage(int(target[0]))

    def set_stage(self, stage):
        """Passes the checkpoints before this stage, as the direction to walk depends on them, too."""
        pelvis, task = self.data.body("pelvis").xpos, self.task
        there = pelvis.copy()
        task.maze_stage, task.move_direction = 0, np.array([1, 0, 0])
        for checkpoint in task.checkpoints[:stage]:
            pelvis[:2] = checkpoint[:2]
            task.update_move_direction()
        pelvis[:] = there

    def reset(self, k):
        self.stream.start(k)
        self.environment.reset()

    def force(self, position, velocity, target):
        """Sets a state as reset() does, with as many forward passes."""
        mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        mujoco.mj_forward(self.model, self.data)
        self.environment.set_state(position, velocity)
        self.set_target(target)

    def place(self, k):
        """Forces a state: the start's pose, bent, tilted and moved; more so and faster the larger k % 4."""
        draws, much = self.draws, (k % 4) / 3
        position = self.model.key_qpos[0].copy()
        low, high = PLACES.get(self.name, ANYWHERE)
        position[7:26] += 0.8 * much * draws.uniform(-1, 1, 19)
        position[:3] = draws.uniform(low, high)
        axis = draws.randn(3) * [0.3, 1, 1]
        angle = 1.6 * much * draws.uniform()
        position[3:7] = [math.cos(angle / 2), *(math.sin(angle / 2) * axis / np.linalg.norm(axis))]
        for q in range(26, self.model.nq, 7):
            position[q : q + 3] += 0.05 * much * draws.uniform(-1, 1, 3)
        velocity = 3 * much * draws.uniform(-1, 1, self.model.nv)
        velocity[:2] = draws.uniform((-1, -1), (6, 1)) if k % 2 else draws.uniform(-1, 1, 2)
        target = []
        if self.name == "maze":
            target = [k % 5]
            if k % 3:
                position[:2] = np.add(CHECKPOINTS[k % 5], draws.uniform(-0.5, 0.5, 2))
                velocity[:2] = draws.uniform(-2.5, 2.5, 2)
        if self.name == "reach":
            self.force(position, velocity, np.zeros(3))
            reach = 10 ** draws.uniform(-2, 0.5)  # a third within 5 cm, two thirds within 1 m
            target = self.task.robot.left_hand_position() + reach * self.direction()
        self.force(position, velocity, target)

    def direction(self):
        vector = self.draws.randn(3)
        return vector / np.linalg.norm(vector)

    def restart(self):
        """Forces the current state: a recorded start has had one forward pass after the state was set."""
        self.force(self.data.qpos.copy(), self.data.qvel.copy(), np.array(self.target(), dtype=float))

    def episode(self, k, forced, steps):
        self.place(k) if forced else self.reset(k)
        self.restart()
        rows = [self.start_row()]
        for _ in range(steps):
            action = self.draws.uniform(-1, 1, self.model.nu)
            observation, reward, terminated, _, _ = self.environment.step(action)
            rows.append(self.row(action, self.target(), observation, reward))
            if terminated:
                break
        return rows + [np.full_like(rows[0], np.nan)] * (steps + 1 - len(rows))


def record(folder, seed, starts, steps, task, episodes):
    recorder = Recorder(task, seed)
    model = recorder.model
    rows, forced = [], []
    for k in range(episodes):
        rows += recorder.episode(k, k >= (episodes + 1) // 2, steps)
    for k in range(starts):
        recorder.reset(k)
        rows.append(recorder.start_row())
        recorder.place(k)
        forced.append(recorder.start_row())
    sizes = [model.nq, model.nv, model.na, len(recorder.target()), model.nu]
    write(folder, task, seed, (episodes, steps, starts), sizes, rows + forced)


if __name__ == "__main__":
    main(__doc__, record)
