"""The studies of the examples, and runs of the past: python3 examples.py PROGRAMS FOLDER (examples.sh)."""

import collections
import csv
import glob
import os
import re
import subprocess
import sys
import warnings

import h5py
import numpy as np
import sac_sb3
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from torch.utils.tensorboard import SummaryWriter

import kappascope

EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "analysis", "examples")


def check(true, what):
    if not true:
        sys.exit(f"examples: expected {what}")


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def blocks(kind):
    """The blocks of the page of this language."""
    with open(f"{EXAMPLES}/README.md", encoding="utf-8") as file:
        return re.findall(rf"(?ms)^```{kind}\n(.*?)^```", file.read())


def excerpts():
    """The lines that the page shows of a program are in it."""
    with open(f"{EXAMPLES}/sac_torch.py", encoding="utf-8") as file:
        lines = {re.sub("# \\[k\\]", "", line).strip() for line in file}
    for block in blocks("python")[:2]:
        missing = [line for line in block.splitlines() if line.strip() and line.strip() not in lines]
        check(not missing, f"lines of the page in sac_torch.py, not found: {missing}")


def study(folder, names):
    """Every checkpoint has its spectrum; the report has its Figure 4 with a row for each name."""
    checkpoints = sorted(glob.glob(f"{folder}/runs/Pendulum-v1/*/seed?/step_?????????.h5"))
    check(len(checkpoints) >= 8, f"{folder}: two checkpoints of four runs, found {len(checkpoints)}")
    for path in checkpoints:
        spectrum = kappascope.load_spectrum(path.replace(".h5", ".spectrum.h5"))
        check(spectrum.attributes["minibatches"] == "fixed", f"{path}: a spectrum of fixed minibatches")
        check(spectrum.attributes["gamma"] == 0.99, f"{path}: the discount in the spectrum")
    for run in {os.path.dirname(path) for path in checkpoints}:
        inputs = [h5py.File(path)["batch/input"][()] for path in checkpoints if path.startswith(run)]
        check(all((x == inputs[0]).all() for x in inputs), f"{run}: the same minibatches")
    rows = table(f"{folder}/tables/kappa_return.csv")
    check(sorted(row["architecture"] for row in rows) == sorted(names), f"{folder}: rows of {names}, found {rows}")
    for row in rows:
        last = [
            float(table(path)[-1]["return"])
            for path in glob.glob(f"{folder}/runs/Pendulum-v1/{row['architecture']}/seed?/returns.csv")
        ]
        found = float(row["return"])
        check(len(last) == 2 and abs(found - np.mean(last)) <= 1e-6 * abs(found), f"{folder}: the returns of {row}")
        check(float(row["kappa"]) > 1, f"{folder}: a kappa in {row}")
    check(os.path.exists(f"{folder}/report.html"), f"{folder}/report.html")
    check(glob.glob(f"{folder}/figures/kappa_return.*"), f"{folder}: the plot kappa_return")


def unchanged(folder):
    """A training is the same without its checkpoints."""
    code = (
        "import runpy, sys, kappascope\n"
        "kappascope.Run.__call__ = lambda self, step: False\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    arguments = [f"{EXAMPLES}/sac_torch.py", f"{folder}/without", "plain", "0"]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.DEVNULL)
    rows = [
        table(f"{folder}/{name}/runs/Pendulum-v1/plain/seed0/returns.csv") for name in ("torch", "without")
    ]
    check(rows[0] == rows[1], f"the same returns with and without checkpoints, found {rows}")


def n_step_returns(model):
    """Samples may have discounts, of n-step returns: of 0, targets are rewards; None stands for the model's."""
    fields = model.replay_buffer.sample(8 * 256)._asdict()
    zeros, targets = 0 * fields["rewards"], {}
    for name, discounts in (("zero", zeros), ("own", zeros + model.gamma), ("none", None)):
        given = {**fields, "discounts": discounts}
        samples = collections.namedtuple("Samples", given)(**given)
        model.replay_buffer.sample = lambda *_, samples=samples, **__: samples
        torch.manual_seed(0)
        sac_sb3.save(model, "n_step.h5", sac_sb3.draw(model))
        with h5py.File("n_step.h5") as file:
            targets[name] = file["batch/target"][()]
    rewards = fields["rewards"].reshape(8, 256, 1).numpy()
    check((targets["zero"] == rewards).all(), "without a future the rewards as targets")
    check((targets["none"] == targets["own"]).all() and (targets["none"] != rewards).any(), "the discount of the model")


def past(programs, folder):
    """The page's loop over saved models; the returns that Stable-Baselines3 measured, from both its files."""
    os.mkdir(folder)
    os.chdir(folder)
    model = SAC("MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": [32]}, seed=0, tensorboard_log="tb", train_freq=8)
    evaluate = EvalCallback(
        make_vec_env("Pendulum-v1"), eval_freq=1000, n_eval_episodes=2, log_path="logs", verbose=0
    )
    model.learn(3000, callback=[CheckpointCallback(1000, "logs", save_replay_buffer=True), evaluate])
    exec(compile(blocks("python")[2], "README.md", "exec"), {})
    runs = "past/runs/Pendulum-v1/relu/seed0"
    check(
        sorted(glob.glob(f"{runs}/step*.h5")) == [f"{runs}/step_00000{k}000.h5" for k in (1, 2, 3)],
        f"a checkpoint of each model, found {os.listdir(runs)}",
    )
    with h5py.File(f"{runs}/step_000002000.h5") as file:
        stored = file["critic/00_dense/kernel"][0].T
    saved = SAC.load("logs/rl_model_2000_steps.zip").critic.q_networks[0][0].weight.detach().numpy()
    check((stored == saved).all(), "the weights of the saved model")
    n_step_returns(model)
    rows = [(int(row["env_step"]), float(row["return"])) for row in table(f"{runs}/returns.csv")]
    check([step for step, _ in rows] == [1000, 2000, 3000] and rows[-1][1] == evaluate.last_mean_reward, f"{rows}")
    found = kappascope.returns(glob.glob("tb/*")[0], "events")
    check([step for step, _ in found] == [1000, 2000, 3000], f"the evaluations among the events, found {found}")
    check(np.allclose([r for _, r in found], [r for _, r in rows], rtol=1e-6), f"the same returns, found {found}")
    with SummaryWriter("mine") as writer:
        for step, value in ((10, 1.0), (10, 3.0), (20, 5.0)):
            writer.add_scalar("charts/episodic_return", value, step)
            writer.add_scalar("losses/qf1", value, step)
    check(kappascope.returns("mine", "mine") == [(10, 2.0), (20, 5.0)], "means of the values of a step")
    check(kappascope.returns("mine", "mine", "losses/qf1")[-1] == (20, 5.0), "another tag")
    damaged = glob.glob("mine/*tfevents*")[0]
    with open(damaged, "r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.write(b"?")
    with warnings.catch_warnings(record=True) as said:
        found = kappascope.returns("mine", "mine", "losses/qf1")
    check(found == [(10, 2.0)], f"the events before the damage, found {found}")
    check(len(said) == 1 and f"{damaged}: damaged or incomplete after byte" in str(said[0].message), f"a warning, {said}")
    try:
        kappascope.returns("mine", "nowhere", "losses/qf2")
        check(False, "a refusal")
    except kappascope.Refused as error:
        check("expected tag=" in str(error), f"what was found, in {error}")
    subprocess.run([f"{programs}/kappascope", "study", "--quiet", "past"], check=True)
    check(len(table("past/tables/kappa_return.csv")) == 1, "one row for the past")


def main():
    programs, folder = map(os.path.abspath, sys.argv[1:3])
    excerpts()
    study(f"{folder}/torch", ["plain", "layernorm"])
    study(f"{folder}/flax", ["plain", "layernorm"])
    study(f"{folder}/sb3", ["relu", "tanh"])
    unchanged(folder)
    past(programs, f"{folder}/past")
    print("three examples and their studies, and runs of the past")


if __name__ == "__main__":
    main()
