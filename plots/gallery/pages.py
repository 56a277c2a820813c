#!/usr/bin/env python3
"""Fills the tables of the gallery's pages from the tables of their studies.

usage: pages.py [--check] [GALLERY]

A table of GALLERY/STUDY/README.md stands between <!-- table: NAME --> and <!-- end -->. PAGES has a function for each
column that is computed: from the study's tables and the names in backticks in a row's first cell to a cell. Rows and
all other columns are text and stay. With --check nothing is written, and tables that differ are named.
"""
import csv
import decimal
import functools
import math
import os
import re
import sys

ENDS = ("lower", "upper")


@functools.cache
def read(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


class Study:
    """The tables of a study."""

    def __init__(self, folder):
        self.folder = folder

    def rows(self, table, **conditions):
        """The rows, at least one, in which columns have these values."""
        path = os.path.join(self.folder, "tables", table + ".csv")
        found = [row for row in read(path) if all(row[k] == v for k, v in conditions.items())]
        if not found:
            raise LookupError(f"{path}: no row with {conditions}")
        return found

    def seeds(self, architecture):
        return sorted({row["seed"] for row in self.rows("returns", architecture=architecture)})


# Statistics. Where an interval is known, of both ends; else the two are equal.


def iqm(values):
    """As in src/results/aggregate.h: without the floor(n/4) smallest and largest values."""
    ordered, drop = sorted(values), len(values) // 4
    middle = ordered[drop: len(ordered) - drop]
    return sum(middle) / len(middle)


def pooled(study, architecture, analysis, columns, **conditions):
    """Interquartile means over all checkpoints after the first update and all seeds together. An upper end that is not
    resolved is infinite; other undefined values are left out, as in src/results/aggregate.h."""
    rows = study.rows("checkpoints", architecture=architecture, analysis=analysis, **conditions)
    means = []
    for column in columns:
        found = [row[column] for row in rows if int(row["update"]) > 0]
        unresolved = [math.inf] * found.count("-") if column.endswith("_upper") else []
        means.append(iqm([float(text) for text in found if text != "-"] + unresolved))
    return means


def last_return(study, architecture, **conditions):
    rows = study.rows("returns", architecture=architecture, **conditions)
    return [float(max(rows, key=lambda row: int(row["env_step"]))["return_mean"])] * 2


def kappa(study, architecture, **conditions):
    return pooled(study, architecture, "xqc", ["kappa"] * 2, **conditions)


def directions(study, architecture, **conditions):
    return pooled(study, architecture, "standard", ["directions_1e2_" + end for end in ENDS], **conditions)


def kappa_q99(study, architecture, **conditions):
    return pooled(study, architecture, "standard", ["kappa_q99_" + end for end in ENDS], **conditions)


def lambda_max(study, architecture, **conditions):
    return pooled(study, architecture, "standard", ["lambda_max"] * 2, **conditions)


# Numbers as text.


def whole(value):
    return f"{value:.0f}"


def integer(value, rounding):
    return str(decimal.Decimal(value).quantize(decimal.Decimal(1), rounding))


def short(value):
    """Two digits, or all before the point."""
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def power(value, digits=1):
    """1.4e5"""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def bound(value, rounding, digits=3):
    return power(decimal.Context(digits, rounding).create_decimal(value), digits - 1)


def integer_or_power(value, rounding):
    return integer(value, rounding) if value < 9999 else bound(value, rounding, 2)


def star(study, architecture):
    """Powers with a star where kappa is above the largest that the bound of rounding errors certifies."""
    limit = float(study.rows("kappa_return", architecture=architecture)[0]["noise_limit"])
    return lambda value: power(value) + ("*" if value > limit else "")


def span(interval, text):
    low, high = (text(end) for end in interval)
    return low if low == high else f"{low} to {high}"


def bounds(interval, text):
    """Rounded outwards. text: end, rounding."""
    low, high = interval
    least = text(low, decimal.ROUND_FLOOR)
    return f"{least} to {text(high, decimal.ROUND_CEILING)}" if high < math.inf else f"{least} or more"


# Cells.


def of_each(cell):
    """A cell for several architectures."""
    return lambda study, names: ", ".join(cell(study, name) for name in names)


def one(statistic, text, join=span):
    return of_each(lambda study, a: join(statistic(study, a), text))


def beside(statistic, text, join=span):
    """The value of a full network, and in brackets the range of the seeds of trot-small. text: study, architecture."""

    def cell(study, a):
        small = Study(os.path.join(os.path.dirname(study.folder), "trot-small"))
        seeds = [statistic(small, a, seed=seed) for seed in small.seeds(a)]
        around = min(low for low, _ in seeds), max(high for _, high in seeds)
        return f"{join(statistic(study, a), text(study, a))} ({join(around, text(small, a))})"

    return of_each(cell)


def returns_of_seeds(study, a):
    return ", ".join(whole(last_return(study, a, seed=seed)[0]) for seed in study.seeds(a))


def kappa_over_starts(study, a):
    row = study.rows("kappa_return", architecture=a)[0]
    return span([float(row["kappa_starts_" + end]) for end in ("least", "most")], star(study, a))


def bias_over_kernel(study, a):
    """In the last layer, the range of the seeds; progress.csv has it where kernels are projected."""
    rows = study.rows("progress", architecture=a)
    if rows[0]["head_bias"] == "-":
        return "-"
    ratios = sorted(float(row["head_bias"]) / float(row["head_kernel"]) for row in rows)
    return span([ratios[0], ratios[-1]], lambda value: f"{value:.1f}")


def mean_return(suffix):
    """small: the row is a normalization, the column the rest of an architecture's name."""
    return lambda study, names: whole(float(study.rows("summary", architecture=names[0] + suffix)[0]["return"]))


def first_and_last_return(study, a):
    rows = study.rows("returns", architecture=a)
    return ", ".join(f"{float(row['return_mean']):.3g}" for row in (rows[0], rows[-1]))


def evaluations(study, a):
    """pixels-small: the returns of each seed in turn."""
    return [[float(row["return_mean"]) for row in study.rows("returns", architecture=a, seed=seed)]
            for seed in study.seeds(a)]


def curves(study, a):
    return "; ".join(", ".join(f"{value:.3g}" for value in values) for values in evaluations(study, a))


def gains(study, a):
    """The mean of the last two evaluations, over the first one."""
    return "; ".join(f"{(values[-2] + values[-1]) / 2 / values[0]:.3g}" for values in evaluations(study, a))


def checkpoint(study, a):
    """reference: the only one after the first update."""
    (row,) = (row for row in study.rows("checkpoints", architecture=a, analysis="standard") if int(row["update"]) > 0)
    return row


def lambda_with_error(study, a):
    value, error = (float(checkpoint(study, a)[name]) for name in ("lambda_max", "lambda_max_data_se"))
    text = f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return f"{text} ({100 * error / value:.2g}%)"


def ends(name):
    return lambda row: " to ".join(f"{float(row[name + end]):.2f}" for end in ("_low", "_high"))


def tau(text):
    """exact: a row names X, Y and "architectures" or "checkpoints"."""
    return lambda study, names: text(study.rows("taus", x=names[0], y=names[1], over=names[2])[0])


def pixels(measure, text):
    return lambda study, names: text(study.rows("pixels", task=names[0], measure=measure)[0])


def both(row):
    return f"{float(row['xqc']):.3f}, {float(row['drqv2']):.3f}"


def difference(row):
    return f"{float(row['difference']):.3f} [{float(row['low_95']):.3f}, {float(row['high_95']):.3f}]"


def pixel_columns(measure, name):
    return {f"{name}: XQC, DrQ-v2": pixels(measure, both), f"{name}: difference": pixels(measure, difference),
            f"{name}: verdict": pixels(measure, lambda row: row["verdict"])}


PAGES = {
    "trot-small": {"critics": {
        "returns of the seeds": of_each(returns_of_seeds),
        "paper's kappa": of_each(kappa_over_starts),
        "`directions_1e2`": one(directions, integer, bounds),
        "`kappa_q99`": one(kappa_q99, integer_or_power, bounds),
        "lambda_max": one(lambda_max, short),
        "bias / kernel": of_each(bias_over_kernel)}},
    "trot": {"critics": {
        "return": beside(last_return, lambda study, a: whole),
        "paper's kappa": beside(kappa, star),
        "`directions_1e2`": beside(directions, lambda study, a: integer, bounds),
        "lambda_max": beside(lambda_max, lambda study, a: short)}},
    "small": {"returns": {
        "cross-entropy, weight normalization": mean_return("+wn+ce"),
        "cross-entropy": mean_return("+ce"),
        "squared error, weight normalization": mean_return("+wn+mse"),
        "squared error": mean_return("+mse")}},
    "ablations-small": {"variants": {
        "return": one(last_return, whole),
        "lambda_max": one(lambda_max, short),
        "`directions_1e2`": one(directions, integer, bounds)}},
    "reference": {"systems": {
        "updates": of_each(lambda study, a: f"{int(checkpoint(study, a)['update']):,}"),
        "return at the start, at 25,000": of_each(first_and_last_return)},
                  "conditioning": {
        "lambda_max (standard error)": of_each(lambda_with_error),
        "`directions_1e2`": one(directions, integer, bounds),
        "`kappa_q99`": one(kappa_q99, bound, bounds),
        "`kappa_effective_bound`, at least": of_each(
            lambda study, a: bound(checkpoint(study, a)["kappa_effective_bound"], decimal.ROUND_FLOOR))}},
    "exact": {"taus": {
        "Kendall's tau": tau(ends("tau")),
        "90% interval": tau(ends("interval")),
        "known pairs": tau(lambda row: f"{float(row['known']):.2f}"),
        "verdict": tau(lambda row: row["word"])}},
    "pixels-small": {"curves": {
        "returns of the seeds": of_each(curves),
        "gain": of_each(gains)}},
    "pixels": {"tasks": {**pixel_columns("area", "area"), **pixel_columns("last", "last return")}},
}


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def fill(study, columns, lines):
    """The lines of a table with its computed cells."""
    header = cells(lines[0])
    unknown = set(columns) - set(header)
    if unknown:
        raise LookupError(f"{study.folder}/README.md: no column {', '.join(unknown)}")
    filled = lines[:2]
    for line in lines[2:]:
        row = cells(line)
        names = re.findall(r"`([^`]+)`", row[0])
        if len(row) != len(header) or not names:
            raise LookupError(f"{study.folder}/README.md: expected a name and {len(header)} cells, found {line}")
        row = [columns[name](study, names) if name in columns else cell for name, cell in zip(header, row)]
        filled.append("| " + " | ".join(row) + " |")
    return filled


def page(study, tables, text):
    """The page with all its tables filled, and the names of those that change."""
    stale = []

    def table(match):
        lines = match[2].splitlines()
        if match[1] not in tables:
            raise LookupError(f"{study.folder}/README.md: no table {match[1]} in pages.py")
        filled = fill(study, tables[match[1]], lines)
        if filled != lines:
            stale.append(match[1])
        return f"<!-- table: {match[1]} -->\n" + "\n".join(filled) + "\n<!-- end -->"

    text, found = re.subn(r"<!-- table: (.*?) -->\n(.*?)\n<!-- end -->", table, text, flags=re.DOTALL)
    if found != len(tables):
        raise LookupError(f"{study.folder}/README.md: expected tables {', '.join(tables)}, found {found}")
    return text, stale


def run(gallery, check):
    """The exit status."""
    status = 0
    for name, tables in PAGES.items():
        path = os.path.join(gallery, name, "README.md")
        with open(path) as f:
            old = f.read()
        new, stale = page(Study(os.path.join(gallery, name)), tables, old)
        for table in stale if check else []:
            print(f"{path}: the table '{table}' differs from {name}/tables; run {__file__}", file=sys.stderr)
            status = 1
        if stale and not check:
            with open(path, "w") as f:
                f.write(new)
    return status


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        sys.exit(__doc__)
    gallery = arguments[0] if arguments else os.path.dirname(os.path.abspath(__file__))
    try:
        sys.exit(run(gallery, "--check" in sys.argv))
    except LookupError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
