"""What the comparisons of exported critics share (export.sh)."""

import json
import os
import re
import subprocess
import sys
import time

import h5py
import numpy as np

import kappascope

BOUND = 1e-12  # relative deviations; products differ by a few 1e-15


def analyze(analyzer, *arguments):
    """Runs the analyzer; returns what it printed."""
    done = subprocess.run(
        [analyzer, "--quiet", *arguments],
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def stored(path, group):
    """Datasets like the parameters, in the canonical order: critic by critic, layer by layer."""
    order = ("kernel", "v", "g", "scale", "bias", "scaler", "alpha")
    with h5py.File(path) as file:
        layers = sorted(file[group], key=lambda name: int(name.split("_")[0]))
        arrays = [
            file[group][layer][name][()]
            for layer in layers
            for name in order
            if name in file[group][layer]
        ]
    return np.concatenate([a.reshape(len(a), -1) for a in arrays], 1).ravel()


def deviation(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


class Comparison:
    """Gradients and products of exported files against a framework's, as lines of a table."""

    def __init__(self, analyzer, folder, framework):
        self.analyzer, self.folder, self.failures = analyzer, folder, []
        print(
            f"{framework}: critic, parameters, lines that a user writes, seconds to a spectrum, "
            "deviation of the gradient, of products"
        )

    def expect(self, true, message):
        if not true:
            self.failures.append(message)
            print(f"FAILED: {message}")

    def add(self, name, path, lines, start, expected):
        """expected(vectors) -> (gradient, products) in the canonical order, in float64; the export
        began at `start`."""
        statistics = json.loads(analyze(self.analyzer, "--json", path))
        seconds, n = time.time() - start, statistics["dimension"]
        vectors = np.random.default_rng(0).standard_normal((2, n))
        names = [f"{self.folder}/{part}.h5" for part in ("vector", "product", "gradient")]
        for old in names:
            if os.path.exists(old):
                os.unlink(old)
        with h5py.File(names[0], "w") as file:
            file.attrs.update(format="kappascope-vector", version=1)
            file["vector"] = vectors
        analyze(
            self.analyzer, "--precision", "f64", "--apply", names[0], "--output", names[1], path
        )
        analyze(self.analyzer, "--precision", "f64", "--gradient", names[2], path)
        with h5py.File(names[1]) as product, h5py.File(names[2]) as gradient, h5py.File(
            path
        ) as file:
            products, g, loss = product["vector"][:], gradient["vector"][0], gradient.attrs["loss"]
            proofs = {key: file[f"batch/{key}"][()] for key in ("output", "loss", "gradient_norm")}
        want_gradient, want_products = expected(vectors)
        off = deviation(g, want_gradient), max(
            deviation(a, b) for a, b in zip(products, want_products)
        )
        print(f"{name}, {n}, {lines}, {seconds:.2f}, {off[0]:.1e}, {off[1]:.1e}")
        self.expect(max(off) <= BOUND, f"{name}: expected deviations of at most {BOUND:g}")
        self.expect(
            abs(proofs["loss"].mean() / loss - 1) <= BOUND,
            f"{name}: /batch/loss: expected a mean of {loss!r}",
        )
        self.expect(
            proofs["output"].dtype == np.float64 and proofs["output"].ndim == 4,
            f"{name}: /batch/output: expected float64",
        )
        self.expect(
            len(proofs["loss"]) > 1
            or abs(proofs["gradient_norm"][0] / np.linalg.norm(g) - 1) <= BOUND,
            f"{name}: /batch/gradient_norm",
        )

    def end(self):
        if self.failures:
            sys.exit(f"{len(self.failures)} comparisons failed")


def expect_refusal(folder, call, words, what):
    """What is wrong if save(**call) is not refused with words that match, without a file; else
    None."""
    path = f"{folder}/refused.h5"
    try:
        kappascope.save(path, **call)
    except kappascope.Refused as error:
        missing = [w for w in words if not re.search(w, str(error))]
        if missing:
            return f"{what}: expected {missing} in\n{error}"
        return f"{what}: expected no file" if os.path.exists(path) else None
    os.unlink(path)
    return f"{what}: expected a refusal with {words}"


def main(compare):
    compare(*sys.argv[1:3])
