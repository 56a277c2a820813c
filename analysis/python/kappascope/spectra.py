"""Spectra, the files that `kappascope analyze` writes, as arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from kappascope.hdf5 import read_own
from kappascope.names import Array, Arrays, Path


@dataclass(frozen=True)
class Spectrum:
    """What a spectrum's file holds; checkpoints/README.md says what the names mean.

    path        of the file
    attributes  of the file, strings and numbers: "checkpoint", "operator", "dimension", "claim", ...
    summary     {statistic: number}, NaN where one is not resolved
    arrays      "lanczos/alpha" and "lanczos/beta" [probes, m], "lanczos/steps" [probes], "ritz/value",
                "ritz/weight" and "ritz/residual" [probes, m], "density/grid", "density/value" [2048],
                "distribution/lower", ... [194]; rows of a probe with fewer than m steps end in NaN"""

    path: str
    attributes: dict[str, Any]
    summary: dict[str, float]
    arrays: Arrays

    def __getitem__(self, name: str) -> Array:
        """An array by its name: spectrum["ritz/value"]. Raises KeyError."""
        return self.arrays[name]

    def table(self, group: str = "ritz") -> Any:
        """The arrays of a group as the columns of a table, a pandas.DataFrame if pandas is installed,
        else {name: array}. The rows of several probes follow one another, without what fills them up,
        and the first column, `probe`, has their number from 0. Raises KeyError."""
        columns = {
            name.split("/", 1)[1]: array
            for name, array in self.arrays.items()
            if name.startswith(group + "/") and name != "lanczos/steps"
        }
        if not columns:
            raise KeyError(f"{self.path}: no group {group}; it has {', '.join(sorted(self.arrays))}")
        first = next(iter(columns.values()))
        if first.ndim == 2:
            there = ~np.isnan(first)
            probe = np.broadcast_to(np.arange(len(first))[:, None], first.shape)
            columns = {name: array[there] for name, array in {"probe": probe, **columns}.items()}
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)


def _plain(value: Any) -> Any:
    """An attribute of a file as a string, a number or an array."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray) and value.ndim > 0:
        return value
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def _read(path: str, file: Any) -> Spectrum:
    attributes = {name: _plain(value) for name, value in file.attrs.items()}
    arrays: Arrays = {}
    file.visititems(
        lambda name, one: arrays.__setitem__(name, np.asarray(one)) if isinstance(one, h5py.Dataset) else None
    )
    summary = {name: float(value) for name, value in file["summary"].attrs.items()}
    return Spectrum(path, attributes, summary, arrays)


def load_spectrum(path: Path) -> Spectrum:
    """Reads a spectrum:

        spectrum = kappascope.load_spectrum("mine.spectrum.h5")
        spectrum.summary["lambda_max"], spectrum["ritz/value"], spectrum.table("density")

    Raises Refused if the file cannot be opened or is no spectrum."""
    path = os.fspath(path)
    return read_own(path, "kappascope-spectrum", "a spectrum", lambda file: _read(path, file))
