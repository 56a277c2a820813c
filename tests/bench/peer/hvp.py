"""Hessian-vector products against PyTorch and JAX: see run.sh, which sets up both and starts this.

For each critic: writes a checkpoint and a vector; compares loss, gradient and product of every
peer's method with the analyzer's, in float64 and float32; then measures all in turns in float32. A
first part finds every method's best settings (threads, workers, devices, libraries), a second
measures those alone."""

import argparse
import os
import re
import subprocess
import sys

import numpy as np

import critics
from contest import Contestant, measure

HERE = os.path.dirname(os.path.abspath(__file__))
# A relu whose input is within rounding of 0 may fall on either side in float32; one such unit moves
# the product by 1e-3. Our primal pass is in float64.
BOUNDS = {"f64": 1e-10, "f32": 1e-2}
OURS = "KappaScope"
METHODS = {
    (OURS, "product"): "exact product, primal kept",
    ("PyTorch", "double"): "double backward",
    ("PyTorch", "kept"): "double backward, graph kept",
    ("PyTorch", "forward"): "forward mode over backward",
    ("JAX", "each"): "jvp of grad, one minibatch a call",
    ("JAX", "scan"): "jvp of grad, scanned",
    ("JAX", "vmap"): "jvp of grad, mapped",
    ("JAX", "kept"): "grad linearized once",
}
# What the goals speak of: best of these, time as a multiple of ours.
VERDICTS = {
    "PyTorch's best, nothing kept": [("PyTorch", "double"), ("PyTorch", "forward")],
    "PyTorch with the graph kept": [("PyTorch", "kept")],
    "JAX's best jvp of grad, compiled": [("JAX", "each"), ("JAX", "scan"), ("JAX", "vmap")],
    "JAX linearized once": [("JAX", "kept")],
}


class Files:
    def __init__(self, folder, critic, ensemble, minibatches, batch):
        stem = os.path.join(folder, f"{critic.name}-{critic.width}")
        self.checkpoint, self.vector = stem + ".h5", stem + ".vector.h5"
        self.product, self.gradient = stem + ".product.h5", stem + ".gradient.h5"
        self.answer = stem + ".npy"
        critics.write_checkpoint(self.checkpoint, critic, ensemble, minibatches, batch)
        critics.write_vector(self.vector, critic, ensemble)


def has_avx512():
    with open("/proc/cpuinfo") as info:
        return "avx512f" in info.read()


def kernel(options):
    """What our programs make OpenBLAS use, where it does not know the processor itself."""
    out = subprocess.run([f"{options.build}/bin/kappascope-analyze", "--version"], check=True,
                         env=without_kernel(), stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"kernel (\S+)", out)[1]


def without_kernel():
    return {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}


def plural(n, word):
    return f"{n} {word}{'s' if n > 1 else ''}"


def settings(options, files, precision):
    """How each program can be started: {(program, label): (command, environment)}."""
    n = len(os.sched_getaffinity(0))
    files = [files.checkpoint, files.vector, precision]
    torch = [options.torch, f"{HERE}/hvp_torch.py", *files]
    jax = [options.jax, f"{HERE}/hvp_jax.py", *files]
    bare = dict.fromkeys(["OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
                          "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "ATEN_CPU_CAPABILITY"])
    ours = {**bare, "OMP_WAIT_POLICY": "PASSIVE"}
    plain = {**bare, "OPENBLAS_CORETYPE": kernel(options)}
    tuned = {**plain, "OMP_WAIT_POLICY": "PASSIVE"}
    if has_avx512():  # PyTorch before 2.0 does not use it by itself
        tuned["ATEN_CPU_CAPABILITY"] = "avx512"
    ynnpack = ("--xla_cpu_experimental_ynn_fusion_type="
               "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT")
    devices = f"--xla_force_host_platform_device_count={n}"
    every = {}
    for t in sorted({1, n}):
        threads = {"OMP_NUM_THREADS": str(t)}
        every[OURS, plural(t, "worker")] = [f"{options.build}/bench/peer/product",
                                            *files], {**ours, **threads}
        every["PyTorch", plural(t, "thread")] = torch + ["1"], {**tuned, **threads}
    every["PyTorch", "as it comes"] = torch + ["1"], plain
    every["PyTorch", f"{plural(n, 'worker')} of 1 thread"] = (torch + [str(n)],
                                                              {**tuned, "OMP_NUM_THREADS": "1"})
    every["JAX", "as it comes"] = jax, {"XLA_FLAGS": None}
    every["JAX", "1 thread"] = ["taskset", "-c", "0", *jax], {"XLA_FLAGS": None}
    every["JAX", "YNNPACK"] = jax, {"XLA_FLAGS": ynnpack}
    every["JAX", plural(n, "device")] = jax, {"XLA_FLAGS": devices}
    every["JAX", f"{plural(n, 'device')}, YNNPACK"] = jax, {"XLA_FLAGS": f"{devices} {ynnpack}"}
    return every


def last_of_each(every):
    """Of each program's settings: those that share minibatches among most workers or devices."""
    last = {program: label for program, label in every}
    return {key: how for key, how in every.items() if last[key[0]] == key[1]}


def analyze(options, *arguments):
    subprocess.run([f"{options.build}/bin/kappascope-analyze", "--quiet", *arguments], check=True,
                   env=without_kernel())


def distance(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def compare(contestant, program, files, precision):
    """Prints how far a peer's methods are from the analyzer; whether all are in bounds."""
    product, _ = critics.read_vector(files.product)
    gradient, loss = critics.read_vector(files.gradient)
    contestant.run("gradient", files.answer)
    found = np.load(files.answer)
    errors = {"loss": distance(found[:1], np.array([loss])),
              "gradient": distance(found[1:], gradient)}
    for peer, method in METHODS:
        if peer == program:
            contestant.run(method, files.answer)
            errors[method] = distance(np.load(files.answer), product)
    good = all(error <= BOUNDS[precision] for error in errors.values())
    print(f"  {precision} {program:8}", ", ".join(f"{k} {e:.1e}" for k, e in errors.items()),
          "" if good else f"FAILED: bound {BOUNDS[precision]:.0e}", flush=True)
    return good


def check(options, files):
    """Loss, gradient and products of the peers against the analyzer's, on the same checkpoint."""
    good = True
    analyze(options, "--gradient", files.gradient, files.checkpoint)
    for precision in BOUNDS:
        analyze(options, "--precision", precision, "--apply", files.vector, "--output",
                files.product, files.checkpoint)
        for (program, _), command in last_of_each(settings(options, files, precision)).items():
            if program != OURS:
                contestant = Contestant(*command)
                good = compare(contestant, program, files, precision) and good
                contestant.close()
    return good


def finalists(seconds, n):
    """The n fastest settings of each method, by their medians: others disturb single rounds."""
    chosen = []
    for program, method in METHODS:
        keys = [key for key in seconds if (key[0], key[2]) == (program, method)]
        chosen += sorted(keys, key=lambda key: np.median(seconds[key]))[:n]
    return chosen


def report(critic, contestants, seconds, unit):
    """One line a method, at its best settings; then the ratios that the goals speak of."""
    best = {(k[0], k[2]): k for k in finalists(seconds, 1)}
    ours = np.array(seconds[best[OURS, "product"]])
    ratio = {}
    print(f"  {'':46}{'best':>8}{'median':>8}{'x ours':>8}{'median, quartiles':>24}  settings")
    for (program, method), key in best.items():
        s = np.array(seconds[key])
        low, middle, high = np.percentile(s / ours, [25, 50, 75])
        spread = f"{middle:.2f} ({low:.2f} .. {high:.2f})"
        ratio[program, method] = middle, spread, s.min() / ours.min()
        print(f"  {program:12}{METHODS[program, method]:34}{1e3 * s.min() / unit:8.2f}"
              f"{1e3 * np.median(s) / unit:8.2f}{s.min() / ours.min():8.2f}{spread:>24}  {key[1]}")
    for words, rows in VERDICTS.items():
        _, spread, bests = min(ratio[row] for row in rows)
        print(f"  {critic.name}: {words}: {spread} times our time; by the bests {bests:.2f}")
    for program, label in sorted({key[:2] for key in best.values()}, reverse=True):
        about = contestants[program, label].about
        print(f"  {program}, {label}:", ", ".join(f"{k} {v}" for k, v in about.items()))


def race(options, critic, files, ensemble):
    every = settings(options, files, "f32")
    every = last_of_each(every) if options.quick else every
    contestants = {key: Contestant(*how) for key, how in every.items()}
    runs = {(p, label, m): (c, m) for (p, label), c in contestants.items()
            for q, m in METHODS if p == q}
    chosen = finalists(measure(runs, 1 if options.quick else 3), 2)
    for key, contestant in contestants.items():
        if key not in {c[:2] for c in chosen}:
            contestant.close()
    seconds = measure({key: runs[key] for key in chosen}, options.rounds)
    print(f"  milliseconds a minibatch and critic, {plural(options.rounds, 'round')}; times ours: "
          "by the bests; in each round: median, quartiles")
    report(critic, contestants, seconds, options.minibatches * ensemble)
    for contestant in contestants.values():
        contestant.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--torch", required=True, help="a Python that has PyTorch")
    parser.add_argument("--jax", required=True, help="a Python that has JAX")
    parser.add_argument("--quick", action="store_true",
                        help="small critics, few rounds: for the agreement")
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
        good = check(options, files) and good
        if not options.quick or name == critics.NAMES[0]:
            race(options, critic, files, ensemble)
    sys.exit(0 if good else "hvp.py: a peer disagrees: see FAILED above")


main()
