"""Records episodes of a task with dm_control's own Python, for tests/trajectory.h to read.

Usage: dm_control_record.py TASK EPISODES STEPS SEED FILE      ("dog-trot", ...)

Each episode starts with dm_control's own reset; then come uniformly random actions. The file is one
line of text, the magic word, task, versions and sizes, and then doubles: for each episode, for each
step from 0 to STEPS, qpos, qvel and act after it, the action that led there (0 at step 0), the
observation (blocks in the alphabetical order of their names) and the reward (0 at step 0).
"""

import os
import sys

os.environ.setdefault("MUJOCO_GL", "disabled")

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from dm_control import suite  # noqa: E402


def flatten(observation):
    return np.concatenate([np.ravel(observation[name]) for name in sorted(observation)])


def row(physics, action, observation, reward):
    data = physics.data
    return np.concatenate([data.qpos, data.qvel, data.act, action, flatten(observation), [reward]])


def record(task, episodes, steps, seed, path):
    domain, name = task.split("-", 1)
    environment = suite.load(domain, name, task_kwargs={"random": seed})
    physics, model = environment.physics, environment.physics.model
    draws = np.random.RandomState(seed + 1)
    rows = []
    for _ in range(episodes):
        observation = environment.reset().observation
        rows.append(row(physics, np.zeros(model.nu), observation, 0))
        for _ in range(steps):
            action = draws.uniform(-1, 1, model.nu)
            step = environment.step(action)
            rows.append(row(physics, action, step.observation, step.reward))
    rows = np.array(rows, dtype="<f8")
    width = rows.shape[1] - (model.nq + model.nv + model.na + model.nu + 1)
    with open(path, "wb") as out:
        out.write(
            f"ks-trajectory {task} {mujoco.__version__} {episodes} {steps} "
            f"{model.nq} {model.nv} {model.na} {model.nu} {width}\n".encode()
        )
        out.write(rows.tobytes())


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    record(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
