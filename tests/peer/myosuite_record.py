"""Records episodes of MyoSuite's tasks, to be read by tests/support/suites.h.

Usage: myosuite_record.py FOLDER SEED STARTS STEPS TASK[:EPISODES]...      ("myo-pose:5", ...)

Writes FOLDER/TASK.trajectory, see trajectory.py. Start states are drawn in MyoSuite's order. The forced states
have other positions, activations and targets as well, many of them close to the goal; in place of the action
they have two flags: whether the state ends the episode, and whether it solves the task. An episode ends where
MyoSuite says `done`, as in the training program of XQC's authors.
"""

import importlib.util
import os
import sys
import types
import warnings

# NumPy's exp for AVX-512 rounds differently from the C library's.
os.environ["NPY_DISABLE_CPU_FEATURES"] = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
os.environ.setdefault("MUJOCO_GL", "disabled")
os.environ.setdefault("ROBOHIVE_VERBOSITY", "SILENT")
warnings.simplefilter("ignore")


def stub(name, **attributes):
    """An empty module in place of one that is imported but not used."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(attributes)


# Importing the package itself would import all of its tasks and what they need.
stub("myosuite", __path__=list(importlib.util.find_spec("myosuite").submodule_search_locations))
stub("skvideo", io=None)
stub("skvideo.io")
stub("git")

import gymnasium  # noqa: E402
import myosuite.envs.myo.myobase  # noqa: E402, F401
import numpy as np  # noqa: E402
from trajectory import Stream, main, write  # noqa: E402

TASKS = {
    "myo-key-turn": "myoHandKeyTurn",
    "myo-obj-hold": "myoHandObjHold",
    "myo-pen-twirl": "myoHandPenTwirl",
    "myo-pose": "myoHandPose",
    "myo-reach": "myoHandReach",
}
FASTEST = 20  # m/s and rad/s of forced states
HAND = 23  # joints


def make(task):
    """The environment of MyoSuite that TD-MPC2 and XQC call by this name."""
    name = task.removesuffix("-hard")
    kind = "Fixed" if name == task else "Random"
    return gymnasium.make(f"{TASKS[name]}{kind}-v0").unwrapped


def target(task, environment):
    """The numbers of the model, or of the task, that the task draws."""
    model = environment.sim.model
    if "reach" in task:
        return model.site_pos[environment.target_sids].ravel()
    if "pose" in task:
        return environment.target_jnt_value
    if "hold" in task:
        return np.concatenate([model.site_pos[environment.goal_sid], model.geom_size[-1]])
    if "key" in task:
        return model.body_pos[-1]
    return model.body_quat[environment.target_obj_bid]


def set_target(task, environment, draws, near, position):
    """Sets a target; changes `position` so that the state is the closer to it, the smaller `near` is."""
    model, data = environment.sim.model, environment.sim.data
    if "reach" in task:  # the sites belong to the world: their positions are global
        data.qpos[:] = position
        environment.sim.forward()
        tips = data.site_xpos[environment.tip_sids]
        model.site_pos[environment.target_sids] = tips + 0.1 * near * draws.uniform(-1, 1, (5, 3))
    elif "pose" in task:
        environment.target_jnt_value = position + 3 * near * draws.uniform(-1, 1, HAND)
    elif "hold" in task:
        model.site_pos[environment.goal_sid] = position[HAND : HAND + 3] + 0.3 * near * draws.uniform(-1, 1, 3)
        model.geom_size[-1] = draws.uniform(0.02, 0.03, 3)
    elif "key" in task:
        position[HAND] = draws.uniform(-4, 8)
        hand = environment.sim.data.site_xpos[[environment.IF_sid, environment.TH_sid]].mean(axis=0)
        model.body_pos[-1] = hand + 0.2 * near * draws.uniform(-1, 1, 3)
    else:
        position[HAND:] = near * draws.uniform([-0.1] * 3 + [-2] * 3, [0.1] * 3 + [2] * 3)
        quaternion = model.body_quat[environment.obj_bid] + near * draws.uniform(-1, 1, 4)
        model.body_quat[environment.target_obj_bid] = quaternion / np.linalg.norm(quaternion)


def row(task, environment, action, observation, reward=np.nan):
    data = environment.sim.data
    parts = [data.qpos, data.qvel, data.act, target(task, environment), action]
    return np.concatenate([*parts, observation, [reward]])


def force(environment, position, velocity, activation):
    """Sets a state after a reset, as Robot.reset does; returns the observation."""
    data = environment.sim.data
    environment.sim.reset()
    data.qpos[:], data.qvel[:], data.act[:] = position, velocity, activation
    environment.sim.forward()
    return environment.get_obs()


def judge(environment):
    """The reward of the state that was observed last, and whether it is an end and a solution."""
    environment.expand_dims(environment.obs_dict)
    rewards = environment.squeeze_dims(environment.get_reward_dict(environment.obs_dict))
    environment.squeeze_dims(environment.obs_dict)
    return float(rewards["dense"]), bool(rewards["done"]), bool(rewards["solved"])


def forced_row(task, environment, draws):
    """A state near its target, from the start state that was drawn last."""
    model, data = environment.sim.model, environment.sim.data
    near = 10 ** draws.uniform(-2.5, 0)
    position = data.qpos.copy()
    position[:HAND] += 0.3 * draws.uniform(-1, 1, HAND)
    set_target(task, environment, draws, near, position)
    velocity = FASTEST * near * draws.uniform(-1, 1, model.nv)
    observation = force(environment, position, velocity, draws.uniform(0, 1, model.na))
    reward, done, solved = judge(environment)
    flags = np.zeros(model.nu)
    flags[:2] = done, solved
    return row(task, environment, flags, observation, reward)


def record_episode(task, environment, steps, draws):
    nu = environment.sim.model.nu
    observation, _ = environment.reset()
    rows = [row(task, environment, np.zeros(nu), observation)]
    for _ in range(steps):
        action = draws.uniform(-1, 1, nu)
        observation, reward, done, _, _ = environment.step(action)
        rows.append(row(task, environment, action, observation, reward))
        if done:
            break
    return rows + [np.full_like(rows[0], np.nan)] * (steps + 1 - len(rows))


def record(folder, seed, starts, steps, task, episodes):
    stream = Stream(seed)
    environment, other = make(task), make(task)  # forced targets are not to outlive their state
    environment.np_random = other.np_random = stream
    model = environment.sim.model
    draws = np.random.RandomState(seed)
    rows, forced = [], []
    for k in range(episodes):
        stream.start(k)
        rows += record_episode(task, environment, steps, draws)
    for k in range(starts):
        stream.start(k)
        observation, _ = environment.reset()
        rows.append(row(task, environment, np.zeros(model.nu), observation))
        stream.start(k)
        other.reset()
        forced.append(forced_row(task, other, draws))
    sizes = [model.nq, model.nv, model.na, target(task, environment).size, model.nu]
    write(folder, task, seed, (episodes, steps, starts), sizes, rows + forced)


if __name__ == "__main__":
    main(__doc__, record)
