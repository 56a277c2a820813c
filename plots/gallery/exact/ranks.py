#!/usr/bin/env python3
"""Does the XQC paper's kappa rank critics as Definition 3's condition number does?

usage: ranks.py STUDYFOLDER OUTFOLDER

Reads the spectra of the study `exact` and writes values.csv (a row per checkpoint after the first update) and taus.csv
(Kendall's tau between two quantities, as an interval with a 90% bootstrap interval), by the rules of
configs/claims.md, "Is kappa a condition number?". Needs h5py and numpy.
"""
import csv
import glob
import itertools
import os
import re
import sys

import h5py
import numpy as np

RESAMPLES = 50000
QUANTILES = (1, 5, 10, 25, 50, 75, 90, 99)
NAMES = ["K3", "K3_null", "P_0", "P_1", "P_2", "P_3", "P_4", "K"] + [f"Q_{q}" for q in QUANTILES] + ["D", "L"]
FACTS = ["dimension", "null_dimension", "dead_dimension", "noise_floor", "below_floor"]


def statistic(path, name):
    with h5py.File(path) as f:
        return float(f["summary"].attrs[name])


def ratio(largest, smallest, floor):
    """log10 of largest / smallest as an interval; below the noise floor only a lower bound is known."""
    if smallest > floor:
        return (np.log10(largest / smallest),) * 2
    return np.log10(largest / floor), np.inf


def measure(stem):
    """The quantities at one checkpoint, each an interval of logarithms in which larger is worse conditioned."""
    path = stem + ".exact.spectrum.h5"
    with h5py.File(path) as f:
        sizes = np.sort(np.abs(f["ritz/value"][...].ravel()))
    floor = statistic(path, "noise_floor")
    null, dead = (int(statistic(path, name)) for name in ("null_dimension", "dead_dimension"))
    largest = sizes[-1]
    found = {"K3": ratio(largest, sizes[null + dead], floor), "K3_null": ratio(largest, sizes[null], floor)}
    for s in range(5):
        name = ".xqc" + (str(s) if s else "") + ".spectrum.h5"
        found[f"P_{s}"] = (np.log10(statistic(stem + name, "kappa")),) * 2
    found["K"] = (np.log10(statistic(stem + ".spectrum.h5", "kappa")),) * 2
    for q in QUANTILES:
        found[f"Q_{q}"] = ratio(largest, np.percentile(sizes, q, method="inverted_cdf"), floor)
    found["D"] = (-np.log10(np.count_nonzero(sizes >= largest / 100)),) * 2
    found["L"] = (np.log10(statistic(path, "lambda_max")),) * 2
    return found, dict(zip(FACTS, (len(sizes), null, dead, floor, np.count_nonzero(sizes <= floor))))


def read(folder):
    """{architecture: {seed: [(step, quantities, facts), ...]}} of the checkpoints after the first update."""
    runs = {}
    for path in sorted(glob.glob(os.path.join(folder, "runs", "*", "*", "seed*", "step_*.exact.spectrum.h5"))):
        architecture, seed, name = path.split(os.sep)[-3:]
        step = int(re.match(r"step_(\d+)", name).group(1))
        stem = path[: -len(".exact.spectrum.h5")]
        if statistic_of_update(stem) > 0:
            runs.setdefault(architecture, {}).setdefault(seed, []).append((step, *measure(stem)))
    return runs


def statistic_of_update(stem):
    with h5py.File(stem + ".spectrum.h5") as f:
        return int(f.attrs["update"])


def iqm(values):
    """As in src/results/aggregate.h: without the floor(n/4) smallest and largest values."""
    ordered = np.sort(values)
    drop = len(ordered) // 4
    return np.mean(ordered[drop: len(ordered) - drop])


def order(a, b):
    """-1, 0 or 1, how interval a lies to interval b; None if that is not known. Arrays of any one shape."""
    below, above, tie = a[1] < b[0], a[0] > b[1], (a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0])
    return np.where(below, -1.0, np.where(above, 1.0, np.where(tie, 0.0, np.nan)))


def tau(x, y):
    """The smallest and the largest possible tau, and the share of pairs that are known. x, y: [n] intervals, each a
    pair (lower, upper) of arrays of any one shape."""
    low = high = known = 0
    pairs = list(itertools.combinations(range(len(x)), 2))
    for i, j in pairs:
        a, b = order(x[i], x[j]), order(y[i], y[j])
        agrees = np.where((a == 0) | (b == 0), 0.0, a * b)  # a tie in one is 0 even if the other is not known
        unknown = np.isnan(agrees)
        low = low + np.where(unknown, -1.0, agrees)
        high = high + np.where(unknown, 1.0, agrees)
        known = known + ~unknown
    return low / len(pairs), high / len(pairs), known / len(pairs)


class Bootstrap:
    """Stratified resamples of each architecture's seeds; level(name): the architectures' interquartile means."""

    def __init__(self, runs):
        self.runs = runs
        self.names = sorted(runs)
        self.seeds = {a: sorted(runs[a]) for a in self.names}
        random = np.random.default_rng(0)
        self.draws = {a: [tuple(range(len(self.seeds[a])))] +
                      [tuple(d) for d in random.integers(len(self.seeds[a]), size=(RESAMPLES, len(self.seeds[a])))]
                      for a in self.names}

    def pooled(self, a, draw, name, end):
        return [found[name][end] for i in draw for _, found, _ in self.runs[a][self.seeds[a][i]]]

    def level(self, name):
        """[architectures] intervals, each end an array [1 + RESAMPLES]; the first entry is of the runs themselves."""
        levels = []
        for a in self.names:
            ends = []
            for end in (0, 1):
                of = {d: iqm(self.pooled(a, d, name, end)) for d in set(self.draws[a])}
                ends.append(np.array([of[d] for d in self.draws[a]]))
            levels.append(tuple(ends))
        return levels

    def over_architectures(self, x, y):
        return tau(self.level(x), self.level(y))

    def over_checkpoints(self, x, y):
        sums = [0, 0, 0]
        for a in self.names:
            of_run = []
            for s in self.seeds[a]:
                points = self.runs[a][s]
                of_run.append(tau([p[1][x] for p in points], [p[1][y] for p in points]))
            for k in range(3):
                values = np.array([float(r[k]) for r in of_run])
                sums[k] = sums[k] + values[np.array(self.draws[a])].mean(axis=1)
        return tuple(s / len(self.names) for s in sums)


def word(low, high, known, y):
    """known: the share of pairs whose order is known; the rules ask for it where y is Definition 3's condition number."""
    if known < 0.5 and y.startswith("K3"):
        return "cannot be had"
    if np.percentile(low[1:], 5) >= 0.5:
        return "rank alike"
    return "do not rank alike" if np.percentile(high[1:], 95) < 0.5 else "not decided"


def write_values(runs, path):
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["architecture", "seed", "env_step"] + FACTS + [f"{n}_{end}" for n in NAMES for end in ("low", "high")])
        for a in sorted(runs):
            for s in sorted(runs[a]):
                for step, found, facts in runs[a][s]:
                    out.writerow([a, s[len("seed"):], step] + [f"{facts[k]:.6g}" for k in FACTS] +
                                 [f"{found[n][end]:.6g}" for n in NAMES for end in (0, 1)])


def write_taus(runs, path):
    boot = Bootstrap(runs)
    pairs = [("P_0", n) for n in NAMES if n != "P_0"] + [("K3", n) for n in NAMES if n[0] not in "PK"]
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["x", "y", "over", "tau_low", "tau_high", "interval_low", "interval_high", "known", "word"])
        for x, y in pairs:
            for over in ("architectures", "checkpoints"):
                low, high, known = getattr(boot, "over_" + over)(x, y)
                out.writerow([x, y, over] + [f"{v:.4g}" for v in (low[0], high[0], np.percentile(low[1:], 5),
                                                                  np.percentile(high[1:], 95), known[0])] +
                             [word(low, high, known[0], y)])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    runs = read(sys.argv[1])
    if not runs:
        sys.exit(f"{sys.argv[1]}: no spectra of [analyze exact]")
    os.makedirs(sys.argv[2], exist_ok=True)
    write_values(runs, os.path.join(sys.argv[2], "values.csv"))
    write_taus(runs, os.path.join(sys.argv[2], "taus.csv"))


if __name__ == "__main__":
    main()
