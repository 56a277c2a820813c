#!/usr/bin/env python3
"""What the runs' progress.csv say of the norm of the head's bias, and of growth once a policy has learned.

usage: progress.py STUDYFOLDER OUTFOLDER

Writes progress.csv, a row per run; `-`: undefined.

- `hidden_change`: by what share the norm of a dense layer but the last changes at most.
- `head_kernel`, `head_bias`: norms in the last layer at the end, means over the critics, where kernels are projected
  (`hidden_change` below 1e-6). The kernel's is the layer's at step 0, where the bias is 0; the bias has the rest.
- `learned_step`, `learned_rows`: the first evaluation after the first update whose return is above twice the
  architecture's return at step 0 (mean over seeds), and the number of rows from there on.
- `..._growth`: in decades, by the rules of configs/claims.md, over the rows after the first update;
  `..._growth_learned`: over those from `learned_step` on, if they are at least four.
"""
import csv
import glob
import math
import os
import re
import statistics
import sys

QUANTITIES = ("param_norm", "grad_norm", "effective_lr")


def read(path):
    with open(path, newline="") as f:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(f)]


def growth(rows, name):
    """Median over the last quarter minus median over the first."""
    values = [math.log10(row["critic_" + name]) for row in rows]
    quarter = -(-len(values) // 4)
    return statistics.median(values[-quarter:]) - statistics.median(values[:quarter])


def head(rows):
    """hidden_change, head_kernel, head_bias of a run."""
    layers = sorted(k for k in rows[0] if re.fullmatch(r"critic_param_norm_\d+", k))
    change = max(abs(row[k] / rows[0][k] - 1) for row in rows for k in layers[:-1])
    kernel, last = rows[0][layers[-1]], rows[-1][layers[-1]]
    if change > 1e-6:
        return {"hidden_change": change}
    return {"hidden_change": change, "head_kernel": kernel, "head_bias": math.sqrt(last**2 - kernel**2)}


def measure(rows, first_return):
    after = [row for row in rows if row["update"] > 0]
    learned = [i for i, row in enumerate(after) if row["return_mean"] > 2 * first_return]  # NaN: no evaluation
    found = {**head(rows), **{f"{name}_growth": growth(after, name) for name in QUANTITIES}}
    if learned:
        late = after[learned[0]:]
        found.update(learned_step=int(late[0]["env_step"]), learned_rows=len(late))
        if len(late) >= 4:
            found.update({f"{name}_growth_learned": growth(late, name) for name in QUANTITIES})
    return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    runs = {}
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "runs", "*", "*", "seed*", "progress.csv"))):
        architecture, seed = path.split(os.sep)[-3:-1]
        runs.setdefault(architecture, {})[seed[len("seed"):]] = read(path)
    if not runs:
        sys.exit(f"{sys.argv[1]}: no runs")
    columns = ["architecture", "seed", "hidden_change", "head_kernel", "head_bias", "learned_step", "learned_rows"]
    columns += [name + end for name in QUANTITIES for end in ("_growth", "_growth_learned")]
    with open(os.path.join(sys.argv[2], "progress.csv"), "w", newline="") as f:
        out = csv.DictWriter(f, columns, restval="-", lineterminator="\n")
        out.writeheader()
        for architecture, seeds in runs.items():
            first = statistics.mean(rows[0]["return_mean"] for rows in seeds.values())
            for seed, rows in seeds.items():
                found = measure(rows, first)
                out.writerow({"architecture": architecture, "seed": seed,
                              **{k: f"{v:.4g}" if isinstance(v, float) else v for k, v in found.items()}})


if __name__ == "__main__":
    main()
