"""Gradient updates against PyTorch and JAX: see run.sh, which sets up both and starts this.

For each architecture: records updates of the engine, in float64 and float32 (tests/peer/update.c);
lets every peer's method make the same updates, with the same noise, and compares what they leave
behind; then measures cycles of three updates, one of which steps the actor, in turns in float32:
race.py. The engine draws its noise, and so do the peers; they have the minibatches as arrays of
their own, the engine widens and joins its rows itself."""

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
# Nine updates from the start on, Euclidean norms over those of the engine's. In float64 rounding
# alone lies between the programs (measured: 1e-14). So it does in float32 (measured: 7e-5), but for
# relus whose input is within rounding of 0, which may be on in one and off in the other: then a
# unit that few rows switch on has another gradient, and Adam moves its weights by the learning
# rate, 3e-4, however small that is. The methods are the same in both.
BOUNDS = {"f64": 1e-10, "f32": 1e-3}
METHODS = {
    (OURS, "cycle"): "a thread a critic",
    ("PyTorch", "loop"): "critic by critic",
    ("PyTorch", "workers"): "a thread a critic",
    ("PyTorch", "batched"): "critics in batched products",
    ("JAX", "unrolled"): "critics unrolled",
    ("JAX", "mapped"): "critics mapped (vmap)",
    ("JAX", "two"): "unrolled, a program for each kind",
    ("JAX", "sharded"): "critics mapped, one a device",
}
VERDICTS = {f"{program}'s best": [key for key in METHODS if key[0] == program]
            for program in ("PyTorch", "JAX")}
QUICK = ["hidden=64", "depth=2", "actor_hidden=32", "actor_depth=2", "batch=32"]
RECORDER = {"f64": "update", "f32": "update.f32"}


def fits(program, label, method):
    """Workers and devices are there for what is dealt out to them."""
    if program == OURS:
        return True
    return ("worker" in label, "device" in label) == (method == "workers", method == "sharded")


RACE = Race(METHODS, VERDICTS, fits)


def record(options, folder, precision, name, sizes):
    """The engine's updates. The agent starts with all of it away from its first values, so that
    every term counts."""
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
    """Prints how far each peer's methods are from the engine; whether all are in bounds."""
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
            best = RACE.run(contestants, options, name, "an update, cycles of three",
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
                        help="small networks, few rounds: for the agreement")
    parser.add_argument("--architectures", help="of the twelve; with --quick one by default")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    names = options.architectures or ",".join(critics.NAMES[:1] if options.quick else critics.NAMES)
    if options.quick:
        options.rounds = 5
    good = True
    for name in names.split(","):
        print(f"{name}: relative distances from the engine after {agents.UPDATES} updates")
        good = check_and_race(options, name) and good
    sys.exit(0 if good else "update.py: a peer disagrees: see FAILED above")


main()
