"""What an answer costs, in Hessian-vector products, by KappaScope and by other programs. Started by
answers.sh.

The other programs run their own iterations, with the stopping rules that they offer, on the products of
KappaScope's library: so a product is the same for all of them, and their number is what is compared.
"""

import argparse
import csv
import ctypes
import glob
import io
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import primme
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

LARGEST, RESIDUAL, COUNT = 0.01, 0.001, 10
SEED = 0


# struct kappascope_sizes of include/kappascope.h
SIZES = ("parameters", "statistics", "inputs", "outputs", "targets", "layers", "ensemble", "minibatches",
         "rows", "loss_rows", "frozen")


class Problem(ctypes.Structure):
    """struct kappascope_problem of include/kappascope.h."""

    _fields_ = [("kind", ctypes.c_char_p), ("precision", ctypes.c_int),
                ("evaluation", ctypes.c_bool), ("raw_rewards", ctypes.c_bool),
                ("minibatches", ctypes.c_size_t), ("weight_decay", ctypes.c_double),
                ("scale", ctypes.c_double), ("critic", ctypes.c_int), ("layer", ctypes.c_int),
                ("memory", ctypes.c_size_t)]


class Product:
    """y = H x for a checkpoint, by the library, with a count of the products."""

    def __init__(self, library, path):
        self.library = ctypes.CDLL(library)
        self.library.kappascope_error.restype = ctypes.c_char_p
        self.library.kappascope_operator_dimension.restype = ctypes.c_size_t
        self.library.kappascope_blas_one_thread()
        checkpoint, self.operator, problem = ctypes.c_void_p(), ctypes.c_void_p(), Problem()
        sizes = (ctypes.c_size_t * len(SIZES))()
        self.call("checkpoint_read", path.encode(), ctypes.byref(checkpoint))
        self.call("checkpoint_sizes", checkpoint, sizes)
        self.minibatches = sizes[SIZES.index("minibatches")]
        self.library.kappascope_problem_defaults(ctypes.byref(problem))
        self.call("operator_new", checkpoint, ctypes.byref(problem), ctypes.byref(self.operator))
        self.n = self.library.kappascope_operator_dimension(self.operator)
        self.count = 0

    def call(self, name, *arguments):
        if getattr(self.library, f"kappascope_{name}")(*arguments) != 0:
            sys.exit(f"answers.py: {self.library.kappascope_error().decode()}")

    def __call__(self, x):
        x = np.ascontiguousarray(x, dtype="f8").ravel()
        y = np.empty(self.n)
        pointer = ctypes.POINTER(ctypes.c_double)
        self.call("operator_apply", self.operator, x.ctypes.data_as(pointer),
                  y.ctypes.data_as(pointer))
        self.count += 1
        return y


# --- the programs: (largest eigenvalue, eigenvalues of largest modulus), or None for what they lack ---

def scipy_largest(product):
    matrix = LinearOperator((product.n, product.n), matvec=product, dtype="f8")
    return eigsh(matrix, k=1, which="LA", tol=LARGEST, return_eigenvectors=False)[0]


def scipy_top(product):
    matrix = LinearOperator((product.n, product.n), matvec=product, dtype="f8")
    values = eigsh(matrix, k=COUNT, which="LM", tol=RESIDUAL, return_eigenvectors=True)[0]
    return sorted(values, key=abs, reverse=True)


def primme_columns(product):
    """PRIMME multiplies blocks of vectors."""
    def multiply(block):
        block = np.reshape(block, (product.n, -1))
        return np.stack([product(column) for column in block.T], axis=1)

    return LinearOperator((product.n, product.n), matvec=multiply, matmat=multiply, dtype="f8")


def primme_largest(product):
    return primme.eigsh(primme_columns(product), k=1, which="LA", tol=LARGEST,
                        return_eigenvectors=False)[0]


def primme_top(product):
    values = primme.eigsh(primme_columns(product), k=COUNT, which="LM", tol=RESIDUAL)[0]
    return sorted(values, key=abs, reverse=True)


def eigenthings(product):
    """Its operator, and its algorithms."""
    import torch
    from hessian_eigenthings import algorithms
    from hessian_eigenthings.operators import LambdaOperator

    operator = LambdaOperator(lambda v: torch.from_numpy(product(v.numpy())), size=product.n,
                              device=torch.device("cpu"), dtype=torch.float64)
    return operator, algorithms


def eigenthings_largest(product):
    operator, algorithms = eigenthings(product)
    return algorithms.power_iteration_one(operator, tol=LARGEST, seed=SEED)[0]


def eigenthings_top(product):
    operator, algorithms = eigenthings(product)
    found = algorithms.lanczos(operator, k=COUNT, max_iter=90, tol=RESIDUAL, seed=SEED,
                               reorthogonalize=True)
    if not bool(found.converged.all()):
        raise RuntimeError("90 steps are not enough")
    return [float(x) for x in found.eigenvalues]


def pyhessian_largest(product):
    import torch
    from pyhessian import hessian

    class Hessian(hessian):
        """Its algorithms with our products in place of its own."""

        def __init__(self):
            self.model, self.device, self.full_dataset = torch.nn.Linear(1, 1), "cpu", True
            self.params = [torch.zeros(product.n, dtype=torch.float64)]

        def dataloader_hv_product(self, v):
            image = torch.from_numpy(product(v[0].numpy()))
            return float(image @ v[0].double()), [image]

    torch.manual_seed(SEED)
    return Hessian().eigenvalues(tol=LARGEST)[0][0]


PROGRAMS = {"eigsh": (scipy_largest, scipy_top), "PRIMME": (primme_largest, primme_top),
            "hessian-eigenthings": (eigenthings_largest, eigenthings_top),
            "PyHessian": (pyhessian_largest, None)}


# --- KappaScope ---

def analyze(build, folder, *arguments):
    """The rows of CSV that the analyzer prints."""
    run = subprocess.run([f"{build}/bin/kappascope-analyze", "--quiet", "--csv", *arguments],
                         cwd=folder, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"answers.py: {run.stderr.strip()}")
    return list(csv.DictReader(io.StringIO(run.stdout)))


def eigenvectors(build, folder, path, count, tolerance, precision):
    rows = analyze(build, folder, "--eigenvectors", str(count), "--tolerance", str(tolerance),
                   "--precision", precision, "--output", "v.h5", path)
    return [float(row["eigenvalue"]) for row in rows], int(rows[0]["steps"])


def kappascope(build, folder, path, minibatches):
    """Rows of the table: its answers, with the products with single minibatches."""
    start = time.perf_counter()
    row, = analyze(build, folder, "--tolerance", f"lambda_max={LARGEST}", "-o", ".", path)
    seconds = time.perf_counter() - start
    bound = float(row["lambda_max_upper"]) / float(row["lambda_max"]) - 1
    yield ("largest", "KappaScope", int(row["minibatch_products"]) / minibatches,
           [float(row["lambda_max"])], seconds, f"upper bound {bound:.2%} above")
    start = time.perf_counter()
    values, steps = eigenvectors(build, folder, path, COUNT, RESIDUAL, "f32")
    yield ("top", "KappaScope", steps, values, time.perf_counter() - start,
           f"and {COUNT} in float64")


# --- the table ---

def truth(build, folder, path):
    """The eigenvalues of largest modulus, and the largest one: residuals of 1e-9 in float64."""
    top, _ = eigenvectors(build, folder, path, COUNT, 1e-9, "f64")
    positive = [value for value in top if value > 0]
    if not positive:
        sys.exit(f"answers.py: {path}: expected a positive eigenvalue among the {COUNT} largest")
    return {"largest": [max(positive)], "top": top}


def peers(product, names):
    for name in names:
        for question, method in zip(("largest", "top"), PROGRAMS[name]):
            if not method:
                continue
            product.count, start = 0, time.perf_counter()
            try:
                values = np.atleast_1d(method(product))
            except ImportError as error:
                print(f"{name}: not installed: {error}", file=sys.stderr)
                break
            except (RuntimeError, ArpackNoConvergence, primme.PrimmeError) as error:
                yield question, name, product.count, None, time.perf_counter() - start, str(error)
                continue
            yield question, name, product.count, values, time.perf_counter() - start, ""


def compare(options, path, folder):
    library, = glob.glob(f"{options.build}/lib/libkappascope.so*") or glob.glob(
        f"{options.build}/libkappascope.so*")
    product = Product(library, path)
    expected = truth(options.build, folder, path)
    rows = [*kappascope(options.build, folder, path, product.minibatches),
            *peers(product, options.programs.split(","))]
    print(f"{path}: {product.minibatches} minibatches")
    print(f"  {'question':22} {'program':20} {'products':>9} {'error':>9} {'seconds':>8}")
    names = {"largest": f"largest, {LARGEST:.0%}", "top": f"top {COUNT}, residual {RESIDUAL}"}
    for question, program, products, values, seconds, note in sorted(rows, key=lambda r: r[0]):
        error = "none" if values is None else "%.1e" % max(
            abs(x - y) / abs(expected[question][0]) for x, y in zip(values, expected[question]))
        print(f"  {names[question]:22} {program:20} {products:9.1f} {error:>9} {seconds:8.2f}  {note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as folder:
        for path in options.checkpoints:
            compare(options, os.path.abspath(path), folder)


if __name__ == "__main__":
    main()
