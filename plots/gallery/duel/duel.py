#!/usr/bin/env python3
"""Judges the duel: which of six numbers predicts the return beyond what the architecture's factors say?

usage: duel.py CHECKPOINTS.csv [OUT.csv]

The rule is in configs/duel.study. Prints a row for each question and candidate: the q2 without and with the candidate,
the partial correlation times the candidate's sign, p and adjusted p of the sign that the rule names and of the other
sign, and the verdict. Needs NumPy.
"""
import csv
import sys

import numpy as np

ARCHITECTURES = [f"{n}{w}+{loss}" for n in ("bn", "ln", "dense") for w in ("+wn", "") for loss in ("ce", "mse")]
FACTORS = np.array([[1, "bn" in a, "ln" in a, "wn" in a, "ce" in a] for a in ARCHITECTURES], float)
TASK, SEEDS = "dog-trot", (4, 5, 6)
STEPS, EARLY, LAST = (25000, 50000, 75000, 100000), 50000, 100000
PUBLISHED = ("xqc", "xqc1", "xqc2", "xqc3", "xqc4")
# name, sign, and the columns whose log10 are averaged: (analysis, column)
CANDIDATES = (
    ("kappa", -1, [(analysis, "kappa") for analysis in PUBLISHED]),
    ("residual", -1, [("residual", "kappa_q99_lower")]),
    ("ggn", -1, [("ggn", "kappa_q99_lower")]),
    ("directions", 1, [("standard", "directions_1e2_lower"), ("standard", "directions_1e2_upper")]),
    ("adam", -1, [("preconditioned", "lambda_max")]),
    ("noise", -1, [("standard", "noise_scale_lower")]),
)
PERMUTATIONS, LEVEL = 99999, 0.05


class Table:
    """The checkpoints of all runs: log10 of a column's values, as a mean over an architecture's seeds."""

    def __init__(self, rows):
        self.value = {}
        for row in rows:
            key = row["architecture"], int(row["seed"]), int(row["env_step"]), row["analysis"]
            if row["env"] != TASK or key[1] not in SEEDS:
                sys.exit(f"duel.py: expected {TASK} with seeds 4, 5, 6, found {row['env']} with seed {key[1]}")
            self.value[key] = row

    def log(self, architecture, seed, step, analysis, column):
        text = self.value.get((architecture, seed, step, analysis), {}).get(column, "")
        number = float(text) if text not in ("", "-") else np.nan
        return np.log10(number) if number > 0 else np.nan

    def mean(self, columns, steps):
        """[12]; NaN where a value is missing."""
        return np.array(
            [
                np.mean([self.log(a, seed, step, *of) for seed in SEEDS for step in steps for of in columns])
                for a in ARCHITECTURES
            ]
        )


def residuals(columns, v):
    q, _ = np.linalg.qr(columns)
    return v - q @ (q.T @ v)


def left_out(columns, y):
    """1 - the sum of squares of the errors when each point is predicted from the others, over that of the mean."""

    def squares(of):
        q, _ = np.linalg.qr(of)
        leverage = (q**2).sum(1)
        return ((residuals(of, y) / (1 - leverage)) ** 2).sum()

    return 1 - squares(columns) / squares(np.ones((len(y), 1)))


def holm(p):
    """A candidate without a value counts as one that was tried."""
    adjusted, largest = np.full(len(p), np.nan), 0.0
    order = [i for i in np.argsort(p) if np.isfinite(p[i])]
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = largest
    return adjusted


def judge(columns, y, x, signs, seed):
    """For each x [12] of a question: q2 with it, its signed partial correlation, p for either sign."""
    e = residuals(columns, y)
    rng = np.random.default_rng(seed)
    shuffled = e[rng.permuted(np.tile(np.arange(len(y)), (PERMUTATIONS, 1)), axis=1)]
    shuffled = shuffled - (shuffled @ (q := np.linalg.qr(columns)[0])) @ q.T
    lengths = np.linalg.norm(shuffled, axis=1)
    found = []
    for value, sign in zip(x, signs):
        if not np.isfinite(value).all():
            found.append((np.nan, np.nan, np.nan, np.nan))
            continue
        along = residuals(columns, value)
        along = sign * along / np.linalg.norm(along)
        r, others = along @ e / np.linalg.norm(e), shuffled @ along / lengths
        p = [(1 + np.sum(side * others >= side * r - 1e-12)) / (1 + PERMUTATIONS) for side in (1, -1)]
        found.append((left_out(np.column_stack([columns, value]), y), r, *p))
    return np.array(found)


def verdict(q2, found, adjusted, against):
    if not np.isfinite(found[1]):
        return "no value"
    if adjusted <= LEVEL and found[0] > q2:
        return "predicts"
    return "contradicts its sign" if against <= LEVEL else "not decided"


def duel(table):
    y = table.mean([("standard", "return_mean")], [LAST])
    before = table.mean([("standard", "return_mean")], [EARLY])
    rows = []
    for number, (question, columns, steps) in enumerate(
        (("early", np.column_stack([FACTORS, before]), [EARLY]), ("pooled", FACTORS, STEPS))
    ):
        if not np.isfinite(y).all() or not np.isfinite(columns).all():
            sys.exit(f"duel.py: {question}: expected returns above 0 of all twelve architectures")
        x = [table.mean(of, steps) for _, _, of in CANDIDATES]
        found = judge(columns, y, x, [sign for _, sign, _ in CANDIDATES], number)
        q2, adjusted, against = left_out(columns, y), holm(found[:, 2]), holm(found[:, 3])
        for i, (name, sign, _) in enumerate(CANDIDATES):
            words = verdict(q2, found[i], adjusted[i], against[i])
            numbers = (q2, *found[i], adjusted[i], against[i])
            rows.append((question, name, "+" if sign > 0 else "-", *(f"{v:.4g}" for v in numbers), words))
    return rows


HEADER = ("question", "candidate", "sign", "q2_factors", "q2", "partial", "p", "p_other_sign", "p_holm",
          "p_other_sign_holm", "verdict")  # fmt: skip


def main(arguments):
    with open(arguments[0], newline="", encoding="utf-8") as f:
        rows = duel(Table(csv.DictReader(f)))
    out = open(arguments[1], "w", newline="", encoding="utf-8") if len(arguments) > 1 else sys.stdout
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
