#!/usr/bin/env python3
"""Makes plots/gallery/critics.csv: the critics that an audit compares with, from the tables of the gallery's studies.

usage: critics.py [--check] [GALLERY]

A row is a critic of one seed at one stage of its training, by its study's standard analysis. All values stand in the
tables of the studies with the same digits. With --check nothing is written, and the exit status says whether the table
is up to date.
"""
import csv
import io
import os
import re
import sys

STUDIES = ("trot-small", "trot", "small", "reference")
KEPT = ("env", "architecture", "seed", "env_step", "update", "loss", "return_mean")
# The numbers of minibatches stand in the studies' files.
MINIBATCHES = re.compile(r"^(?:analysis_minibatches|batches) *= *(\d+)", re.MULTILINE)
ENDS = tuple(f"{name}_{end}" for name in ("directions_1e2", "kappa_q99") for end in ("lower", "upper"))


def loss(row):
    """The older tables name the loss in the architecture alone."""
    return row.get("loss") or row["architecture"].rpartition("+")[2]


def table(gallery):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("study", *KEPT, "minibatches", *ENDS))
    for study in STUDIES:
        folder = os.path.join(gallery, study)
        with open(os.path.join(folder, "study.study"), encoding="utf-8") as f:
            minibatches = min(map(int, MINIBATCHES.findall(f.read())))
        with open(os.path.join(folder, "tables", "checkpoints.csv"), newline="") as f:
            for row in csv.DictReader(f):
                if row["analysis"] == "standard":
                    row["loss"] = loss(row)
                    writer.writerow((study, *map(row.get, KEPT), minibatches, *map(row.get, ENDS)))
    return out.getvalue()


def main(arguments):
    check = "--check" in arguments
    folders = [one for one in arguments if one != "--check"]
    gallery = folders[0] if folders else os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(gallery, "critics.csv")
    made = table(gallery)
    if check:
        with open(path, newline="") as f:
            if f.read() != made:
                sys.exit(f"{path}: is not what the studies' tables give: run plots/gallery/critics.py")
    else:
        with open(path, "w", newline="") as f:
            f.write(made)


if __name__ == "__main__":
    main(sys.argv[1:])
