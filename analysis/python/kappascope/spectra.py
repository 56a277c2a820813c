"""Spectra: what an analysis found, as numbers and arrays."""

from __future__ import annotations

import ctypes
import html
import math
import os
import weakref
from ctypes import c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from kappascope.library import AnalysisError, Attribute, Library, Reading, StoredArray, library
from kappascope.names import Arrays, Path
from kappascope.refusal import Refused


@dataclass(frozen=True)
class Statistic:
    """A number, and what it is.

    value         NaN if there is only an interval, or nothing is resolved
    lower, upper  the ends of its interval; NaN if there is none, or that end is not resolved
    what          "bound": of an eigenvalue or a condition number, whose other side is unknown or in
                  lower and upper; "interval"; "estimate", by random vectors; "number": what the computation
                  found, with no bound; "quotient": of Ritz values, which is an estimate of nothing
    meaning       in a few words
    text          as it is printed, rounded to the side on which a bound stays a bound"""

    value: float
    lower: float
    upper: float
    what: str
    meaning: str
    text: str


class Spectrum:
    """The spectrum of an operator; checkpoints/README.md says what the names of attributes and arrays mean.

    statistics  {name: Statistic}, the most reliable first
    summary     {name: number}: all statistics, ends of intervals and statistics of fewer steps; NaN where
                one is not resolved
    attributes  "operator", "dimension", "claim" (what the spectrum proves, in words), ...
    arrays      "lanczos/alpha", "lanczos/beta", "ritz/value", "ritz/weight" and "ritz/residual" [probes, m],
                "density/grid", "density/value" [2048], "distribution/eigenvalue", "distribution/lower" and
                "distribution/upper" [194], the band of the cumulative distribution; rows of a probe with
                fewer than m steps end in NaN"""

    def __init__(self, lib: Library, handle: c_void_p) -> None:
        self._library, self._handle = lib, handle
        weakref.finalize(self, lib.free, "spectrum", handle)
        self.statistics = {
            one.name.decode(): Statistic(
                one.value, one.lower, one.upper, one.what.decode(), one.meaning.decode(), one.text.decode()
            )
            for one in lib.items("reading", handle, Reading)
        }
        self.summary = lib.summary(handle)
        self.attributes = {
            one.name.decode(): _attribute(one) for one in lib.items("attribute", handle, Attribute)
        }
        self.arrays: Arrays = {
            one.name.decode().lstrip("/"): np.ctypeslib.as_array(
                one.values, (one.rows, one.columns) if one.rows else (one.columns,)
            ).copy()
            for one in lib.items("array", handle, StoredArray)
            if one.values and one.columns
        }

    def __getitem__(self, name: str) -> Any:
        """An array ("ritz/value"), a statistic's number ("lambda_max") or an attribute ("dimension")."""
        for held in (self.arrays, self.summary, self.attributes):
            if name in held:
                return held[name]
        raise KeyError(name)

    def __repr__(self) -> str:
        return str(self.attributes.get("claim", "")) or f"a spectrum of order {self['order']}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{name}</td><td>{html.escape(one.text)}</td><td>{html.escape(one.meaning)}</td></tr>"
            for name, one in self.statistics.items()
        )
        head = "<tr><th>statistic</th><th>value</th><th>meaning</th></tr>"
        return f"<p>{html.escape(repr(self))}</p><table>{head}{rows}</table>"

    def table(self, group: str | None = None) -> Any:
        """The statistics as a table, a pandas.DataFrame if pandas is installed, else {column: list}. With a
        group ("ritz", "density", "distribution") its arrays as columns: the rows of several probes follow one
        another, without what fills them up, and the first column, `probe`, has their number from 0. Raises
        KeyError."""
        if group is None:
            fields = "value", "lower", "upper", "what", "meaning"
            columns: dict[str, Any] = {"statistic": list(self.statistics)}
            columns |= {key: [getattr(one, key) for one in self.statistics.values()] for key in fields}
        else:
            columns = self._columns(group)
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)

    def _columns(self, group: str) -> Arrays:
        columns = {
            name.split("/", 1)[1]: array
            for name, array in self.arrays.items()
            if name.startswith(group + "/") and name != "lanczos/steps"
        }
        if not columns:
            raise KeyError(f"no group {group}; there are {', '.join(sorted(self.arrays))}")
        first = next(iter(columns.values()))
        if first.ndim == 2:
            there = ~np.isnan(first)
            probe = np.broadcast_to(np.arange(len(first))[:, None], first.shape)
            columns = {name: array[there] for name, array in {"probe": probe, **columns}.items()}
        return columns

    def plot(self, axes: Any = None, density: bool = False) -> Any:
        """Draws the eigenvalues into `axes` of matplotlib (None: new ones), which it returns: the share of
        them that is at most x, by the band in which it lies with 99.5% at each x, and the Ritz values. With
        density=True, in place of the band, how many there are per decade of the axis: smoothed, an estimate.
        Raises ImportError without matplotlib."""
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if axes is None else axes
        ritz = np.sort(self.arrays["ritz/value"][~np.isnan(self.arrays["ritz/value"])])
        near_zero = max(1e-6 * float(np.abs(ritz).max()), 1e-300)
        if density:
            at = self.arrays["density/symlog_grid"]
            share = self.arrays["density/symlog_value"] * np.hypot(at, near_zero) * np.log(10)
            axes.plot(at, np.maximum(share * self["dimension"], 0.1), label="smoothed: an estimate")
            axes.set_yscale("log")
            axes.set_ylim(bottom=0.1)
        elif "distribution/lower" in self.arrays:
            at, low, high = (self.arrays[f"distribution/{name}"] for name in ("eigenvalue", "lower", "upper"))
            between = np.repeat(at, 2)[1:-1]  # from each x to the next one the share only grows
            label = "band, holds with 99.5% at each x" if "lanczos/alpha" in self.arrays else "computed"
            axes.fill_between(between, np.repeat(low[:-1], 2), np.repeat(high[1:], 2), alpha=0.4, label=label)
        marks = {"transform": axes.get_xaxis_transform(), "color": "black", "label": "Ritz values"}
        axes.plot(ritz, np.full_like(ritz, 0.02), "|", **marks)
        axes.set_xscale("symlog", linthresh=near_zero)
        powers = 10 ** (np.floor(np.log10(1e6 * near_zero)) - [0.0, 2.0, 4.0])
        axes.set_xticks([*-powers, 0, *powers[::-1]])
        axes.set_title(self._of())
        axes.set_xlabel("eigenvalue x")
        axes.set_ylabel(
            "eigenvalues per decade" if density else "share of the eigenvalues that are at most x"
        )
        axes.legend(loc="upper left")
        return axes

    def _of(self) -> str:
        """ "hessian of mine.h5, layer 2, n = 320"."""
        given = self.attributes
        parts = ["operator"]
        if "checkpoint" in given:
            parts = [f"{given['operator']} of {os.path.basename(given['checkpoint'])}"]
            parts += [f"{part} {given[part]}" for part in ("critic", "layer") if given.get(part, -1) >= 0]
            parts += [given[part] for part in ("array",) if part in given]
        return ", ".join([*parts, f"n = {given['dimension']}"])

    def save(self, path: Path) -> None:
        """Writes the spectrum's file, as `kappascope analyze` does. Raises OSError."""
        self._library.call("spectrum_write", self._handle, os.fsencode(path))


def _attribute(one: Attribute) -> Any:
    if one.text is not None:
        return one.text.decode(errors="replace")
    return int(one.number) if one.integer and math.isfinite(one.number) else one.number


def load_spectrum(path: Path) -> Spectrum:
    """Reads a spectrum:

        spectrum = kappascope.load_spectrum("mine.spectrum.h5")
        spectrum["lambda_max"], spectrum["ritz/value"], spectrum.table("density")

    A child process reads the file first, so that one that makes libhdf5 crash ends only the child. Raises
    Refused if the file cannot be opened or is no spectrum."""
    lib, handle, name = library(), c_void_p(), os.fsencode(path)
    try:
        lib.call("scout", name)
        lib.call("spectrum_read", name, ctypes.byref(handle))
    except (AnalysisError, OSError, ValueError) as error:
        raise Refused(f"{os.fspath(path)}: expected a spectrum: {error}") from None
    return Spectrum(lib, handle)
