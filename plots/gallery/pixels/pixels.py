#!/usr/bin/env python3
"""Does XQC improve on DrQ-v2 from pixels? From the curves that the authors of both have published.

usage: pixels.py XQC_CSV DRQV2_CURVES OUTFOLDER

XQC_CSV is results/xqc_visual.csv of the XQC repository, DRQV2_CURVES the folder `curves` of DrQ-v2's. Writes pixels.csv
(a row per task or group of tasks, and measure) and counts.csv (a row per measure). Needs numpy.

Rules, written on 2026-11-27, when steps and seeds of both sources had been looked at, but no return:

- A task's grid: the steps that all its runs of both have. A run's measures, divided by 1,000: `area`, the mean return
  over the grid (headline; the paper takes the area under the curve of interquartile means), and `last`, the return at
  the grid's last step. The statistic: interquartile mean over runs, XQC's minus DrQ-v2's. Of a group of tasks (`all`,
  `humanoid`, `others`): over all runs of the group; `humanoid-others` is the first difference minus the second.
- Intervals: percentiles of 50,000 bootstrap resamples of the seeds of each system within each task. `coverage_90`,
  `coverage_95`: how often such an interval held the expected difference in 1,000 simulated data sets of as many seeds,
  drawn with replacement from the runs (1,000 resamples each).
- Verdict: "XQC higher" if the 95% interval lies above 0, "DrQ-v2 higher" if below, else "not decided". It is not
  corrected for 15 tasks. `p` is: two-sided, from 99,999 random exchanges of the systems' names within tasks; `p_holm`
  is adjusted by Holm's method over the 15 tasks of a measure.
- "Significantly improves": the verdict of `all`. "Most pronounced on the humanoids": that of `humanoid-others`.
- "On most tasks outperforms or at least matches": XQC at least matches where the 95% interval lies above -0.05.
  "supported" if it does on 8 or more of 15 tasks; "not supported" if DrQ-v2 is higher on 8 or more; else "not decided".
"""
import csv
import os
import sys

import numpy as np

RESAMPLES, SIMULATIONS, SIMULATED_RESAMPLES, EXCHANGES = 50000, 1000, 1000, 99999
MARGIN = 0.05
SCALE = 1000  # the largest return of the DeepMind Control Suite; the paper divides by it
MEASURES = ("area", "last")
ENDS = (5, 95, 2.5, 97.5)


def read(path, names, runs):
    """Adds a CSV file to runs, {task: {seed: {step: return}}}. names: its columns of task, seed, step, return."""
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            task, seed, step, value = (row[name] for name in names)
            curve = runs.setdefault(task.replace("-", "_"), {}).setdefault(seed, {})
            curve[int(float(step))] = float(value) / SCALE
    return runs


def measure(curves, steps):
    """{measure: [runs]} of the runs {seed: {step: return}} of a task."""
    values = np.array([[curves[seed][step] for step in steps] for seed in sorted(curves)])
    return {"area": values.mean(axis=1), "last": values[:, -1]}


def iqm(values):
    """As in src/results/aggregate.h: without the floor(n/4) smallest and largest values. values: [..., n]."""
    drop = values.shape[-1] // 4
    return np.sort(values, axis=-1)[..., drop: values.shape[-1] - drop].mean(axis=-1)


def draw(random, strata, times):
    """[times, runs]: resamples of the runs of each stratum."""
    return np.concatenate([x[random.integers(len(x), size=(times, len(x)))] for x in strata], axis=1)


def resample(random, strata, times):
    """[times] differences of the interquartile means. strata: a pair of arrays (XQC's runs, DrQ-v2's) per task."""
    return iqm(draw(random, [x for x, _ in strata], times)) - iqm(draw(random, [y for _, y in strata], times))


def exchange(random, strata):
    """[EXCHANGES] differences with the systems' names exchanged at random within each task."""
    mixed = [random.permuted(np.tile(np.concatenate(pair), (EXCHANGES, 1)), axis=1) for pair in strata]
    ends = [len(x) for x, _ in strata]
    return (iqm(np.concatenate([m[:, :n] for m, n in zip(mixed, ends)], axis=1)) -
            iqm(np.concatenate([m[:, n:] for m, n in zip(mixed, ends)], axis=1)))


def simulate(random, groups):
    """The coverage of the 90% and of the 95% interval. groups: strata whose differences are added with their sign."""
    found, intervals = [], []
    for _ in range(SIMULATIONS):
        data = [(sign, [tuple(x[random.integers(len(x), size=len(x))] for x in pair) for pair in strata])
                for sign, strata in groups]
        found.append(sum(sign * difference(strata) for sign, strata in data))
        intervals.append(np.percentile(
            sum(sign * resample(random, strata, SIMULATED_RESAMPLES) for sign, strata in data), ENDS))
    low_90, high_90, low_95, high_95 = np.transpose(intervals)
    truth = np.mean(found)
    return [np.mean((low <= truth) & (truth <= high)) for low, high in ((low_90, high_90), (low_95, high_95))]


def levels(strata):
    return [iqm(np.concatenate([pair[k] for pair in strata])) for k in (0, 1)]


def difference(strata):
    xqc, drqv2 = levels(strata)
    return xqc - drqv2


def compare(groups):
    """The numbers of a row; groups as in simulate()."""
    random = np.random.default_rng(0)
    level = sum(sign * np.array(levels(strata)) for sign, strata in groups)
    ends = np.percentile(sum(sign * resample(random, strata, RESAMPLES) for sign, strata in groups), ENDS)
    exchanged = np.abs(sum(sign * exchange(random, strata) for sign, strata in groups))
    found = level[0] - level[1]
    p = (1 + np.count_nonzero(exchanged >= abs(found) - 1e-12)) / (1 + EXCHANGES)
    word = "XQC higher" if ends[2] > 0 else "DrQ-v2 higher" if ends[3] < 0 else "not decided"
    return {"xqc": level[0], "drqv2": level[1], "difference": found, "low_90": ends[0], "high_90": ends[1],
            "low_95": ends[2], "high_95": ends[3], "p": p, "verdict": word,
            **dict(zip(("coverage_90", "coverage_95"), simulate(random, groups)))}


def adjust(rows):
    """Holm's method over the rows of single tasks."""
    least = 0
    for k, row in enumerate(sorted(rows, key=lambda row: row["p"])):
        least = max(least, min(1, (len(rows) - k) * row["p"]))
        row["p_holm"] = least


def count(rows, name):
    words = [row["verdict"] for row in rows]
    matches = sum(row["low_95"] > -MARGIN for row in rows)
    half = len(rows) // 2
    word = "supported" if matches > half else "not supported" if words.count("DrQ-v2 higher") > half else "not decided"
    after = [row["verdict"] for row in rows if row["p_holm"] <= 0.05]
    return {"measure": name, "tasks": len(rows), "xqc_higher": words.count("XQC higher"),
            "drqv2_higher": words.count("DrQ-v2 higher"), "not_decided": words.count("not decided"),
            "xqc_higher_holm": after.count("XQC higher"), "drqv2_higher_holm": after.count("DrQ-v2 higher"),
            "at_least_matches": matches, "most_tasks": word}


def write(path, columns, rows):
    with open(path, "w", newline="") as f:
        out = csv.DictWriter(f, columns, restval="-", lineterminator="\n")
        out.writeheader()
        for row in rows:
            out.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    xqc, drqv2 = read(sys.argv[1], ("env_name", "seed", "env_step", "value"), {}), {}
    for task in xqc:
        read(os.path.join(sys.argv[2], f"dmc_{task}.csv"), ("task", "seed", "frame", "episode_reward"), drqv2)
    steps = {task: sorted(set.intersection(*(set(c) for runs in (xqc, drqv2) for c in runs[task].values())))
             for task in xqc}
    values = {task: [measure(runs[task], steps[task]) for runs in (xqc, drqv2)] for task in xqc}
    humanoid = [task for task in sorted(xqc) if task.startswith("humanoid")]
    others = [task for task in sorted(xqc) if task not in humanoid]
    rows, counts = [], []
    for name in MEASURES:
        strata = {task: tuple(v[name] for v in values[task]) for task in values}
        tasks = [{"task": t, "last_step": steps[t][-1], "xqc_seeds": len(xqc[t]), "drqv2_seeds": len(drqv2[t]),
                  **compare([(1, [strata[t]])])} for t in others + humanoid]
        adjust(tasks)
        group = {g: [strata[t] for t in members]
                 for g, members in (("all", others + humanoid), ("humanoid", humanoid), ("others", others))}
        tasks += [{"task": g, **compare([(1, group[g])])} for g in group]
        tasks.append({"task": "humanoid-others", **compare([(1, group["humanoid"]), (-1, group["others"])])})
        rows += [{"measure": name, **row} for row in tasks]
        counts.append(count([row for row in tasks if "p_holm" in row], name))
    os.makedirs(sys.argv[3], exist_ok=True)
    write(os.path.join(sys.argv[3], "pixels.csv"),
          ["task", "measure", "last_step", "xqc_seeds", "drqv2_seeds", "xqc", "drqv2", "difference", "low_90",
           "high_90", "low_95", "high_95", "coverage_90", "coverage_95", "p", "p_holm", "verdict"], rows)
    write(os.path.join(sys.argv[3], "counts.csv"), list(counts[0]), counts)


if __name__ == "__main__":
    main()
