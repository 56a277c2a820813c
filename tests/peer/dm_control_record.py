"""Records episodes of dm_control's tasks, to be read by tests/support/suites.h.

Usage: dm_control_record.py FOLDER SEED STARTS STEPS TASK[:EPISODES]...      ("dog-trot:5", ...)

Writes FOLDER/TASK.trajectory, see trajectory.py, with the parts of an observation in alphabetical order
of their names. If the environment sets FRAMES, also FOLDER/TASK.frames: of each episode's first FRAMES
states a picture, uint8 [84, 84, 3], from the camera of agents from pixels (DrQ-v2's dmc.py).

Start states are drawn in dm_control's order. An episode begins with a start state that is forced: a reset,
the state, one forward pass, without additional passes that would warm-start the solver.
"""

import os
import sys

FRAMES = int(os.environ.get("FRAMES", 0))
os.environ.setdefault("MUJOCO_GL", "egl" if FRAMES else "disabled")

import numpy as np  # noqa: E402
from dm_control import suite  # noqa: E402
from trajectory import Stream, main, write  # noqa: E402

FASTEST = 20  # m/s and rad/s of forced states: above the target speed of every task


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
    rows, frames = [], []
    for k in range(episodes):
        stream.start(k)
        environment.reset()
        force(physics, physics.data.qvel.copy())
        rows.append(row(task, environment, still))
        for i in range(steps):
            if i < FRAMES:
                frames.append(physics.render(84, 84, camera_id=2 if domain == "quadruped" else 0))
            action = draws.uniform(-1, 1, model.nu)
            step = environment.step(gain * action + (gain + low))
            rows.append(row(task, environment, action, step))
    if FRAMES:
        np.array(frames).tofile(os.path.join(folder, task + ".frames"))
    forced = []
    for k in range(starts):
        stream.start(k)
        environment.reset()
        rows.append(row(task, environment, still))
        if task == "cartpole-swingup_sparse":  # hanging poles have no reward
            physics.data.qpos[1] = draws.uniform(-0.2, 0.2)
        force(physics, FASTEST * draws.uniform(-1, 1, model.nv))
        forced.append(row(task, environment, still))
    sizes = [model.nq, model.nv, model.na, target(task, physics).size, model.nu]
    write(folder, task, seed, (episodes, steps, starts), sizes, rows + forced)


if __name__ == "__main__":
    main(__doc__, record)
