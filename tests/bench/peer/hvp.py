"""Hessian-vector products compared with PyTorch and JAX. Started by run.sh, which installs both.

For each critic: writes a checkpoint and a vector; compares loss, gradient and product of every method
with the analyzer's, in float64 and float32; then measures all in turn in float32 (race.py)."""

import argparse
import os
import subprocess
import sys

import numpy as np

import critics
from contest import Contestants, distance
from programs import OURS, settings, without_kernel
from race import Race

HERE = os.path.dirname(os.path.abspath(__file__))
# A relu's input within rounding errors of 0 may have either sign in float32; one such unit changes
# the product by 1e-3. KappaScope's primal pass is in float64.
BOUNDS = {"f64": 1e-10, "f32": 1e-2}
METHODS = {
    (OURS, "product"): "exact product, primal kept",
    ("PyTorch", "double"): "double backward",
    ("PyTorch", "kept"): "double backward, graph kept",
    ("PyTorch", "forward"): "forward mode over backward",
    ("JAX", "each"): "jvp of grad, one minibatch per call",
    ("JAX", "scan"): "jvp of grad, scanned",
    ("JAX", "vmap"): "jvp of grad, mapped",
    ("JAX", "kept"): "grad linearized once",
}
# The ratios that are printed at the end.
VERDICTS = {
    "PyTorch's best, nothing kept": [("PyTorch", "double"), ("PyTorch", "forward")],
    "PyTorch with the graph kept": [("PyTorch", "kept")],
    "JAX's best jvp of grad, compiled": [("JAX", "each"), ("JAX", "scan"), ("JAX", "vmap")],
    "JAX linearized once": [("JAX", "kept")],
}
RACE = Race(METHODS, VERDICTS)


class Files:
    def __init__(self, folder, critic, ensemble, minibatches, batch):
        stem = os.path.join(folder, f"{critic.name}-{critic.width}")
        self.checkpoint, self.vector = stem + ".h5", stem + ".vector.h5"
        self.product, self.gradient = stem + ".product.h5", stem + ".gradient.h5"
        self.answer = stem + ".npy"
        critics.write_checkpoint(self.checkpoint, critic, ensemble, minibatches, batch)
        critics.write_vector(self.vector, critic, ensemble)


def commands(options, files, precision):
    files = [files.checkpoint, files.vector, precision]
    return settings(options, [f"{options.build}/bench/peer/product", *files],
                    [options.torch, f"{HERE}/hvp_torch.py", *files],
                    [options.jax, f"{HERE}/hvp_jax.py", *files])


def analyze(options, *arguments):
    subprocess.run([f"{options.build}/bin/kappascope-analyze", "--quiet", *arguments], check=True,
                   env=without_kernel())


def compare(contestant, program, methods, files, precision):
    """Prints the deviations of a contestant's methods from the analyzer; returns whether all are in
    bounds."""
    product, _ = critics.read_vector(files.product)
    gradient, loss = critics.read_vector(files.gradient)
    contestant.run("gradient", files.answer)
    found = np.load(files.answer)
    errors = {"loss": distance(found[:1], np.array([loss])),
              "gradient": distance(found[1:], gradient)}
    for method in methods:
        contestant.run(method, files.answer)
        errors[method] = distance(np.load(files.answer), product)
    good = all(error <= BOUNDS[precision] for error in errors.values())
    print(f"  {precision} {program:8}", ", ".join(f"{k} {e:.1e}" for k, e in errors.items()),
          "" if good else f"FAILED: bound {BOUNDS[precision]:.0e}", flush=True)
    return good


def check(options, files, precision, contestants):
    """Compares the contestants' loss, gradient and products with the analyzer's, on one checkpoint."""
    analyze(options, "--precision", precision, "--apply", files.vector, "--output", files.product,
            files.checkpoint)
    good = True
    for key, methods in RACE.last(contestants.every).items():
        if key[0] != OURS:
            good = compare(contestants[key], key[0], methods, files, precision) and good
    return good


def check_and_race(options, critic, files, ensemble):
    good = True
    analyze(options, "--gradient", files.gradient, files.checkpoint)
    for precision in BOUNDS:
        contestants = Contestants(commands(options, files, precision))
        good = check(options, files, precision, contestants) and good
        if precision == "f32" and (not options.quick or critic.name == critics.NAMES[0]):
            RACE.run(contestants, options, critic.name, "a minibatch and critic",
                     options.minibatches * ensemble)
        contestants.close()
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--torch", required=True, help="a Python that has PyTorch")
    parser.add_argument("--jax", required=True, help="a Python that has JAX")
    parser.add_argument("--quick", action="store_true",
                        help="small critics and few rounds, to check agreement only")
    parser.add_argument("--critics", default=",".join(critics.NAMES))
    parser.add_argument("--minibatches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    sizes = {"width": 64, "depth": 2} if options.quick else {}
    batch, ensemble = (32, 2) if options.quick else (256, 1)
    if options.quick:
        options.minibatches, options.rounds = 3, 5
    folder = os.path.join(options.build, "peer", "hvp")
    os.makedirs(folder, exist_ok=True)
    good = True
    for name in options.critics.split(","):
        critic = critics.Critic(name, **sizes)
        files = Files(folder, critic, ensemble, options.minibatches, batch)
        print(f"{name}: {critic.size()} parameters, {options.minibatches} minibatches, relative "
              "distances from kappascope-analyze")
        good = check_and_race(options, critic, files, ensemble) and good
    sys.exit(0 if good else "hvp.py: a method disagrees: see FAILED above")


main()
