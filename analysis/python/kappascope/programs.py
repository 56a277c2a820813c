"""The programs of KappaScope: where they are, and audit as a function."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any, Union

from kappascope.names import Path

Row = dict[str, Any]
# What may stand in a keyword for an option: True: the option alone; False, None: not given; a list: repeated.
Option = Union[str, int, float, bool, None, list[str], "tuple[str, ...]"]

_PACKAGE = os.path.dirname(os.path.realpath(__file__))
# In this order: what a wheel has, what `make` builds in a checkout. Then the PATH.
_FOLDERS = [os.path.join(_PACKAGE, "bin"), os.path.join(_PACKAGE, "..", "..", "..", "build", "bin")]


class ProgramError(RuntimeError):
    """A program of KappaScope failed: its message, in one line, and its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def program(name: str = "kappascope") -> str:
    """The path of a program: in the folder KAPPASCOPE_PROGRAMS of the environment, where the programs say
    with it where they are; else in the package, if it was installed as a wheel with programs; else in
    build/bin of the checkout that the package is in; else in the PATH. Raises FileNotFoundError."""
    given = os.environ.get("KAPPASCOPE_PROGRAMS")
    for folder in [given] if given else _FOLDERS:
        path = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    # In the PATH `kappascope` may be the command of this package, which looks for the programs, too
    found = None if given else shutil.which("kappascope-analyze")
    path = os.path.join(os.path.dirname(found or ""), name)
    if not found or not os.path.isfile(path):
        places = given or f"{_FOLDERS[0]}, in build/bin of a checkout, or in the PATH"
        way = "set KAPPASCOPE_PROGRAMS to their folder" if given else "add their folder to the PATH"
        raise FileNotFoundError(
            f"{name}: no such program in {places}: run `make programs` in the checkout, or {way}"
        )
    return path


def _arguments(options: dict[str, Option]) -> list[str]:
    """["--weight-decay=0.1", "--exact"] from {"weight_decay": 0.1, "exact": True}."""
    return [
        f"--{key.replace('_', '-')}" + ("" if one is True else f"={one}")
        for key, value in options.items()
        for one in (value if isinstance(value, (list, tuple)) else [value])
        if one is not None and one is not False
    ]


def call(*arguments: str, allowed: Iterable[int] = (0,)) -> tuple[int, str]:
    """Runs `kappascope ARGUMENTS`; returns its exit status, one of `allowed`, and what it printed.
    Raises ProgramError."""
    done = subprocess.run([program(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode not in allowed:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        message = said[-1] if said else f"kappascope {arguments[0]}: exit status {done.returncode}"
        raise ProgramError(message, done.returncode)
    return done.returncode, done.stdout.decode(errors="replace")


def audit(checkpoint: Path, **options: Option) -> Row:
    """Runs `kappascope audit`, which keeps its spectra in the folder CHECKPOINT.audit.

        found = kappascope.audit("mine.h5", output="page.html", fail_if=["kappa_effective_bound>1e4"])

    checkpoint  a path
    options     those of the program, with _ for -; True for an option without a value; a list is an option
                that is repeated

    Returns "text", the page as the program prints it; "findings", a list of sentences; "limit_met", whether
    a limit of fail_if is met; and for each operator ("hessian", "ggn", "residual", with Adam's second moments
    "preconditioned") {statistic: number}, NaN where one is not resolved. Raises ProgramError with the line
    that the program printed, FileNotFoundError without the program."""
    wrong = sorted({"json", "csv", "quiet", "help", "usage", "version"} & set(options))
    if wrong:
        raise TypeError(f"audit: expected no option {wrong[0]}, as its output is read here")
    for key in ("order", "batches", "seed", "count_above"):
        if isinstance(options.get(key), (list, tuple)):
            raise TypeError(f"audit: {key}: expected one value, found {options[key]!r}")
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(f"audit: checkpoint: expected one path, found {checkpoint!r}")
    path = os.fspath(checkpoint)
    if path.startswith("-"):  # which would be taken for an option
        path = os.path.join(".", path)
    status, text = call("audit", "--quiet", *_arguments(options), path, allowed=(0, 3))
    findings = text.partition("\nFindings\n")[2].partition("\n\n")[0].split("\n  - ")
    from kappascope.spectra import load_spectrum

    row: Row = {
        "text": text,
        "findings": [" ".join(one.removeprefix("  - ").split()) for one in findings if one.strip()],
        "limit_met": status == 3,
    }
    folder, name = os.path.split(path)
    folder = os.path.join(str(options.get("cache") or folder), name.removesuffix(".h5") + ".audit")
    with open(os.path.join(folder, "tables", "spectra.csv"), newline="") as file:
        for spectrum in csv.DictReader(file):
            if spectrum["operator"] not in row:  # the Hessian of half of the minibatches comes second
                row[spectrum["operator"]] = load_spectrum(os.path.join(folder, spectrum["file"])).summary
    return row
