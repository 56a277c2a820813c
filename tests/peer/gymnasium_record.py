"""Records episodes of Gymnasium's v4 tasks, to be read by tests/support/suites.h.

Usage: gymnasium_record.py FOLDER SEED STARTS STEPS TASK[:EPISODES]...      ("Hopper-v4:5", ...)

Writes FOLDER/TASK.trajectory, see trajectory.py. Start states are drawn in Gymnasium's order. A state has no
reward before the first step. An episode ends at a terminal state, where Gymnasium says `terminated`.
"""

import os

os.environ.setdefault("MUJOCO_GL", "disabled")

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from gymnasium.envs.mujoco.ant_v4 import AntEnv  # noqa: E402
from gymnasium.envs.mujoco.half_cheetah_v4 import HalfCheetahEnv  # noqa: E402
from gymnasium.envs.mujoco.hopper_v4 import HopperEnv  # noqa: E402
from gymnasium.envs.mujoco.humanoid_v4 import HumanoidEnv  # noqa: E402
from gymnasium.envs.mujoco.humanoidstandup_v4 import HumanoidStandupEnv  # noqa: E402
from gymnasium.envs.mujoco.walker2d_v4 import Walker2dEnv  # noqa: E402
from trajectory import Stream, main, write  # noqa: E402

TASKS = {
    "Ant-v4": AntEnv,
    "HalfCheetah-v4": HalfCheetahEnv,
    "Hopper-v4": HopperEnv,
    "Humanoid-v4": HumanoidEnv,
    "HumanoidStandup-v4": HumanoidStandupEnv,
    "Walker2d-v4": Walker2dEnv,
}
FASTEST = 20  # m/s and rad/s of forced states: beyond the limits of the clipped observations


def row(environment, action, observation, reward=np.nan):
    data = environment.data
    return np.concatenate([data.qpos, data.qvel, data.act, action, observation, [reward]])


def force(environment, position, velocity):
    """Sets a state after a reset, as reset() does; returns the observation."""
    mujoco.mj_resetData(environment.model, environment.data)
    environment.set_state(position, velocity)
    return environment._get_obs()


def record_episode(environment, steps, draws):
    model = environment.model
    low, high = model.actuator_ctrlrange.T
    gain = (high - low) / 2
    observation, _ = environment.reset()
    rows = [row(environment, np.zeros(model.nu), observation)]
    for _ in range(steps):
        action = draws.uniform(-1, 1, model.nu)
        observation, reward, terminated, _, _ = environment.step(gain * action + (gain + low))
        rows.append(row(environment, action, observation, reward))
        if terminated:
            break
    return rows + [np.full_like(rows[0], np.nan)] * (steps + 1 - len(rows))


def record(folder, seed, starts, steps, task, episodes):
    stream = Stream(seed)
    environment = TASKS[task]()
    environment.np_random = stream
    model = environment.model
    draws = np.random.RandomState(seed)
    rows, forced = [], []
    for k in range(episodes):
        stream.start(k)
        rows += record_episode(environment, steps, draws)
    for k in range(starts):
        stream.start(k)
        observation, _ = environment.reset()
        rows.append(row(environment, np.zeros(model.nu), observation))
        observation = force(environment, environment.data.qpos.copy(), FASTEST * draws.uniform(-1, 1, model.nv))
        forced.append(row(environment, np.zeros(model.nu), observation))
    write(folder, task, seed, (episodes, steps, starts), [model.nq, model.nv, model.na, 0, model.nu], rows + forced)


if __name__ == "__main__":
    main(__doc__, record)
