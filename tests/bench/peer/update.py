"""Gradient updates compared with PyTorch and JAX. Started by run.sh, which installs both.

For each architecture: records KappaScope's updates in float64 and float32 (tests/peer/update.c); makes
the same updates with every method, with the same noise, and compares the results; then measures cycles
of three updates, one of which steps the actor, in turn in float32 (race.py). In the measurement every
program draws its own noise. The others have the minibatches as ready arrays; KappaScope's time includes
converting and joining its rows."""

import argparse
import os
import shutil
import subprocess
import sys

import numpy as np

import agents
import critics
from contest import Contestants
from programs import OURS, settings, without_kernel
from race import Race

HERE = os.path.dirname(os.path.abspath(__file__))
# Deviations after nine updates, in the Euclidean norm relative to KappaScope's. In float64 they are
# rounding errors (measured: 1e-14). In float32, too (measured: 7e-5), except that a relu whose input
# is within rounding errors of 0 may be active in one program and not in the other. Then a unit that is
# active for few rows has a different gradient, and Adam moves its weights by up to the learning rate,
# 3e-4, however small the gradient is. The methods are the same in both precisions.
BOUNDS = {"f64": 1e-10, "f32": 1e-3}
METHODS = {
    (OURS, "cycle"): "a thread per critic",
    ("PyTorch", "loop"): "critic by critic",
    ("PyTorch", "workers"): "a thread per critic",
    ("PyTorch", "batched"): "critics in batched products",
    ("JAX", "unrolled"): "critics unrolled",
    ("JAX", "mapped"): "critics mapped (vmap)",
    ("JAX", "two"): "unrolled, a program for each kind",
    ("JAX", "sharded"): "critics mapped, one per device",
}
VERDICTS = {f"{program}'s best": [key for key in METHODS if key[0] == program]
            for program in ("PyTorch", "JAX")}
QUICK = ["hidden=64", "depth=2", "actor_hidden=32", "actor_depth=2", "batch=32"]
RECORDER = {"f64": "update", "f32": "update.f32"}


def fits(program, label, method):
    """Only "workers" uses workers, and only "sharded" devices."""
    if program == OURS:
        return True
    return ("worker" in label, "device" in label) == (method == "workers", method == "sharded")


RACE = Race(METHODS, VERDICTS, fits)


def record(options, folder, precision, name, sizes):
    """Records KappaScope's updates. All of the agent's state starts away from its initial values, so
    that every term matters."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    subprocess.run([f"{options.build}/peer/{RECORDER[precision]}", folder, "shaken",
                    str(agents.UPDATES), name, *sizes], check=True,
                   env={**without_kernel(), "OMP_WAIT_POLICY": "passive"})


def commands(options, folder, precision, name, sizes):
    ours = [f"{options.build}/bench/peer/cycle", f"{folder}/run.h5", name, *sizes]
    return settings(options, ours,
                    [options.torch, f"{HERE}/update_torch.py", folder, name, precision],
                    [options.jax, f"{HERE}/update_jax.py", folder, name, precision])


def compare(contestants, folder, name, precision):
    """Prints the deviations of each contestant's methods from KappaScope; returns whether all are in
    bounds."""
    answer, good = f"{folder}/answer.npy", True
    for key, methods in RACE.last(contestants.every).items():
        for method in methods if key[0] != OURS else []:
            contestants[key].run(f"{method}-check", answer)
            errors = agents.deviations(np.load(answer), folder, name)
            here = all(error <= BOUNDS[precision] for error in errors.values())
            print(f"  {precision} {key[0]:8}{method:10}",
                  ", ".join(f"{k} {e:.0e}" for k, e in errors.items()),
                  "" if here else f"FAILED: bound {BOUNDS[precision]:.0e}", flush=True)
            good = good and here
    return good


def check_and_race(options, name):
    sizes, good = QUICK if options.quick else [], True
    for precision in BOUNDS:
        folder = os.path.join(options.build, "peer", "cycles", precision)
        record(options, folder, precision, name, sizes)
        contestants = Contestants(commands(options, folder, precision, name, sizes))
        good = compare(contestants, folder, name, precision) and good
        if precision == "f32":
            best = RACE.run(contestants, options, name, "per update, in cycles of three",
                            agents.CYCLE)
            print(f"  {name}: {OURS}: {1 / best:.1f} updates a second")
        contestants.close()
        shutil.rmtree(folder)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--torch", required=True, help="a Python that has PyTorch")
    parser.add_argument("--jax", required=True, help="a Python that has JAX")
    parser.add_argument("--quick", action="store_true",
                        help="small networks and few rounds, to check agreement only")
    parser.add_argument("--architectures", help="names, of the twelve (default: three, with --quick one)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    names = options.architectures or ",".join(critics.NAMES[:1] if options.quick else critics.NAMES)
    if options.quick:
        options.rounds = 5
    good = True
    for name in names.split(","):
        print(f"{name}: relative deviations from KappaScope after {agents.UPDATES} updates")
        good = check_and_race(options, name) and good
    sys.exit(0 if good else "update.py: a method disagrees: see FAILED above")


main()
