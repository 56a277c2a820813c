"""analyze: the spectrum of a checkpoint's file or of an operator, in this process."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import warnings
from collections.abc import Callable, Iterator
from ctypes import c_void_p
from typing import Any

import numpy as np

from kappascope.library import PRODUCT, WATCH, Library, Option, Request, library
from kappascope.names import Array, Path
from kappascope.operators import Operator
from kappascope.spectra import Spectrum


def analyze(given: Path | Operator, progress: bool = True, **options: Any) -> Spectrum:
    """The spectrum of the curvature of a critic's loss, or of any symmetric operator.

        found = kappascope.analyze("mine.h5", order=60, start="gradient")
        found.statistics["directions_1e2"], found["kappa_effective_bound"], found.plot()

    given     the path of a checkpoint, or an Operator
    progress  whether a bar of tqdm is shown, where tqdm is installed
    options   of `kappascope analyze` that decide how a spectrum is computed, with _ for -, and True for an
              option without a value; of an operator: order, probes, complement, tolerance, seed, exact,
              no_certificates, count_above

    Writes no file: Spectrum.save does. A checkpoint's file is read in a child process first, so that a
    damaged one ends only the child. Ctrl-C ends the analysis after the product that is being computed. Raises
    ValueError for an option, OSError for a file, AnalysisError for what is in it, and what an operator's
    product raises."""
    lib = library()
    if isinstance(given, Operator):
        with given.use():
            given.check()
            return _analyze_operator(lib, given, progress, options)
    name, handle = os.fsencode(given), c_void_p()
    lib.prepare_products()
    lib.call("scout", name)
    with _request(progress, options) as (request, _):
        lib.call("analyze", name, ctypes.byref(request), ctypes.byref(handle))
    return Spectrum(lib, handle)


def _analyze_operator(lib: Library, a: Operator, progress: bool, options: dict[str, Any]) -> Spectrum:
    n = a.shape[0]
    handle, found = c_void_p(), c_void_p()

    def multiply(x: Any, y: Any, exact: bool = False) -> None:
        _view(y, n)[:] = a.multiply(_view(x, n).copy(), exact)

    with _request(progress, options) as (request, caught):
        product = PRODUCT(caught(multiply))
        exact = PRODUCT(caught(functools.partial(multiply, exact=True))) if a.exact else PRODUCT()
        try:
            if a.precision == "f64":
                lib.call("operator_from_product", n, product, None, ctypes.byref(handle))
            else:
                lib.call("operator_from_products", n, product, exact, None, ctypes.byref(handle))
            lib.call("operator_analyze", handle, ctypes.byref(request), ctypes.byref(found))
        finally:
            lib.free("operator", handle)
    return Spectrum(lib, found)


def _view(at: Any, n: int) -> Array:
    return np.ctypeslib.as_array(at, (n,))


@contextlib.contextmanager
def _request(progress: bool, options: dict[str, Any]) -> Iterator[tuple[Request, Callable[[Any], Any]]]:
    """The options, and who watches; and caught(function), which C may call in place of a function. What that
    raises there is raised in place of the error that C returns."""
    given = [
        Option(key.replace("_", "-").encode(), ("yes" if value is True else str(value)).encode())
        for key, value in options.items()
        if value is not None and value is not False
    ]
    raised: list[BaseException] = []

    def caught(function: Callable[..., None]) -> Callable[..., int]:
        def call(_: Any, *arguments: Any) -> int:
            try:
                function(*arguments)
            except BaseException as error:  # also KeyboardInterrupt: it must not cross C
                raised.append(error)
                return 1
            return 0

        return call

    with _bar(progress) as bar:
        listed = (Option * len(given))(*given)
        try:
            yield Request(len(given), listed, WATCH(caught(bar)), None), caught
        except Exception:
            if raised:
                raise raised[0] from None
            raise


@contextlib.contextmanager
def _bar(progress: bool) -> Iterator[Any]:
    """A function of the products done and in all."""
    if progress:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a notebook without ipywidgets, which gets no bar
                from tqdm.auto import tqdm
        except ImportError:
            progress = False
    if not progress:
        yield lambda done, products: None
        return
    with tqdm(unit=" products", disable=None, leave=False) as bar:

        def show(done: int, products: int) -> None:
            bar.total = products
            bar.update(done - bar.n)

        yield show
