"""What an answer costs, in Hessian-vector products, by KappaScope and by other programs. Started by
answers.sh.

The other programs run on the products of KappaScope's library: so a product is the same for all of them,
and their number is what is compared. One product is one with the mean over all minibatches of the
checkpoint; a product with one of N minibatches counts as 1/N.
"""

import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

from answers_peers import COUNT, FAILURES, LARGEST, PROGRAMS, RESIDUAL, STEPS, TRACE
from answers_product import Product

# name: (title, the statistic, its tolerance)
QUESTIONS = {
    "largest": (f"lambda_max, {LARGEST:.0%}", "lambda_max", LARGEST),
    "directions": ("directions_1e2, factor 2", "directions_1e2", 1),
    "trace": (f"trace, {TRACE:.0%}", "trace", TRACE),
    "negative": ("negative_mass, 0.02", "negative_mass", 0.02),
}
TOP = f"top {COUNT}, residual {RESIDUAL}"


# --- KappaScope ---

def analyze(command, folder, *arguments):
    """The rows of CSV that the analyzer prints. command: the program and the options of every analysis."""
    run = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"answers.py: {run.stderr.strip()}")
    return list(csv.DictReader(io.StringIO(run.stdout)))


def eigenvectors(command, folder, path, count, tolerance, precision):
    rows = analyze(command, folder, "--eigenvectors", str(count), "--tolerance", str(tolerance),
                   "--precision", precision, "--output", "v.h5", path)
    return [float(row["eigenvalue"]) for row in rows], int(rows[0]["steps"])


def number(row, name):
    return float(row[name]) if row.get(name) else float("nan")


def describe(row, statistic):
    """The interval of a statistic."""
    value, upper = number(row, statistic), number(row, f"{statistic}_upper")
    lower = value if statistic == "lambda_max" else number(row, f"{statistic}_lower")
    text = f"99%: {lower:.4g} to {upper:.4g}"
    error = number(row, f"{statistic}_data_se") / abs(value)
    return text if np.isnan(error) else f"{text}; standard error over minibatches {error:.1%}"


def adaptive(command, options, folder, path, minibatches):
    """Rows of the table: KappaScope's answers with a tolerance."""
    for question, (_, statistic, tolerance) in QUESTIONS.items():
        if question not in options.questions:
            continue
        start = time.perf_counter()
        row, = analyze(command, folder, "--tolerance", f"{statistic}={tolerance}", "-o", ".", path)
        seconds = time.perf_counter() - start
        missed = "NOT REACHED; " if number(row, f"{statistic}_width") > tolerance else ""
        yield (question, "KappaScope", int(row["minibatch_products"]) / minibatches,
               [number(row, statistic)], seconds, missed + describe(row, statistic))


def fixed(command, folder, path):
    """The same questions, answered by one analysis with a fixed number of steps. Its bounds take a few
    products more, which are not counted."""
    start = time.perf_counter()
    row, = analyze(command, folder, "--order", str(STEPS), "-o", ".", path)
    seconds = time.perf_counter() - start
    for question, (_, statistic, _) in QUESTIONS.items():
        yield (question, f"fixed, m = {STEPS}", STEPS, [number(row, statistic)], seconds,
               describe(row, statistic))


def top(command, folder, path):
    start = time.perf_counter()
    values, steps = eigenvectors(command, folder, path, COUNT, RESIDUAL, "f32")
    yield ("top", "KappaScope", steps, values, time.perf_counter() - start,
           f"and {COUNT} in float64")


# --- the truth ---

def count_directions(command, folder, path, steps):
    """The eigenvalues of absolute value at least 0.01 lambda_abs_max, from many Lanczos steps with
    complete orthogonalization; None where they have not all converged."""
    analyze(command, folder, "--order", str(steps), "--precision", "f64", "--no-certificates",
            "--name", "truth", "-o", ".", path)
    name = os.path.basename(path).replace(".h5", ".truth.spectrum.h5")
    with h5py.File(os.path.join(folder, name)) as file:
        values, residuals = file["ritz/value"][0], file["ritz/residual"][0]
    limit = np.nanmax(abs(values)) / 100
    near = abs(values) + residuals >= limit
    if np.any(abs(abs(values[near]) - limit) <= residuals[near]) or max(residuals[near]) > limit:
        return None
    return [float(near.sum())]


def truths(command, options, folder, path):
    """question: values; only for the questions that are asked, and None where too much was needed."""
    found = {}
    if "largest" in options.questions or "top" in options.questions:
        values, _ = eigenvectors(command, folder, path, COUNT, 1e-9, "f64")
        positive = [value for value in values if value > 0]
        if not positive:
            sys.exit(f"answers.py: {path}: expected a positive eigenvalue among the {COUNT} largest")
        found = {"largest": [max(positive)], "top": values}
    if options.trace_truth > 0 and "trace" in options.questions:
        row, = analyze(command, folder, "--tolerance", f"trace={options.trace_truth}", "--probes", "10000",
                       "--seed", "1", "--precision", "f64", "-o", ".", path)
        found["trace"] = [number(row, "trace")]
    if options.directions_steps > 0 and "directions" in options.questions:
        found["directions"] = count_directions(command, folder, path, options.directions_steps)
    return found


# --- the table ---

def peers(product, names, questions):
    for name in names:
        for question, method in PROGRAMS.get(name, {}).items():
            if question not in questions:
                continue
            product.count, start = 0, time.perf_counter()
            try:
                values, note = method(product)
            except ImportError as error:
                print(f"{name}: not installed: {error}", file=sys.stderr)
                break
            except FAILURES as error:
                values, note = None, str(error).split("\n")[0][:80]
            yield question, name, product.count, values, time.perf_counter() - start, note


def print_row(question, program, products, values, seconds, note, truth):
    title = QUESTIONS[question][0] if question in QUESTIONS else TOP
    value = error = "none"
    if values is not None:
        value = "%.5g" % values[0]
        error = "unknown" if truth is None else "%.1e" % max(
            abs(x - y) / abs(truth[0]) for x, y in zip(values, truth))
    print(f"  {title:25} {program:20} {products:9.1f} {value:>9} {error:>9} {seconds:8.2f}  {note}",
          flush=True)


def compare(options, path, folder):
    product = Product(options.build, path, options.batches)
    command = [f"{options.build}/bin/kappascope-analyze", "--quiet", "--csv"]
    if options.batches:
        command += ["--batches", str(options.batches)]
    print(f"{path}: {product.minibatches} minibatches, {product.n} parameters")
    expected = truths(command, options, folder, path)
    rows = [*adaptive(command, options, folder, path, product.minibatches)]
    if "fixed" in options.programs:
        rows += fixed(command, folder, path)
    if "top" in options.questions:
        rows += top(command, folder, path)
    rows += peers(product, options.programs, options.questions)
    print(f"  {'question':25} {'program':20} {'products':>9} {'answer':>9} {'error':>9} "
          f"{'seconds':>8}")
    for question in options.questions:
        for row in rows:
            if row[0] == question:
                print_row(*row, expected.get(question))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--programs", default=",".join(["fixed", *PROGRAMS]))
    parser.add_argument("--questions", default=",".join([*QUESTIONS, "top"]))
    parser.add_argument("--trace-truth", type=float, default=0.002,
                        help="the tolerance of the trace that counts as true; 0: none")
    parser.add_argument("--directions-steps", type=int, default=1500,
                        help="Lanczos steps for the true number of directions; 0: none")
    parser.add_argument("--batches", type=int, default=0,
                        help="the number of minibatches of a checkpoint, from the first; 0: all")
    parser.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.questions = options.questions.split(",")
    options.programs = options.programs.split(",")
    with tempfile.TemporaryDirectory() as folder:
        for path in options.checkpoints:
            compare(options, os.path.abspath(path), folder)


if __name__ == "__main__":
    main()
