"""kappascope import: critics from the files of other frameworks, as a checkpoint.

The program reads the map, the description and the minibatches (import_files), finds the source of each array
of the critic (maps.py), checks all shapes before it reads values, and writes the checkpoint into a temporary
folder. There `analyze` reads it, and compares the results of the other framework with its own. Only then does
the checkpoint get its name."""

from __future__ import annotations

import collections
import contextlib
import glob
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kappascope.arrays import open_weights
from kappascope.checkpoint import LOCK, check_replaceable, lock, remove_abandoned, replace, write_checkpoint
from kappascope.description import Description
from kappascope.maps import Map, Match, Object, read_map, read_text
from kappascope.minibatches import ONE_ROW, RESULTS, read_results
from kappascope.names import Array, Arrays
from kappascope.programs import program
from kappascope.refusal import fail, printable, say
from kappascope.stored import Stored, Weights

NO_PROCESS = "no further process or thread can be started: expected a larger limit (ulimit -u)"
STOPPING = signal.SIGTERM, signal.SIGHUP, signal.SIGINT  # signals that ask this program to end
AXES, MOST_INDEX, _MOST_SIDE = 7, 1 << 30, 1 << 30
_BATCH = ("input", "target", "weight", *RESULTS)  # the first two are required


@dataclass
class Import:
    """arch, map, batch and weights are paths. output: None for the listing alone. axis: each index of this
    axis of every array belongs to another critic. slice: (axis, index), the only index of this axis that is
    taken. Axes count from 0 in the shapes of the file."""

    arch: str
    map: str
    batch: str
    weights: list[str]
    output: str | None = None
    axis: int | None = None
    slice: tuple[int, int] | None = None
    quiet: bool = False


# --- critics ---


def _cut(array: Array, job: Import, critic: int) -> Array:
    """The array of one critic in the file's own layout, without the axes of the options."""
    index: list[Any] = [slice(None)] * array.ndim
    if job.slice:
        index[job.slice[0]] = job.slice[1]
    if job.axis is not None:
        index[job.axis] = critic
    return np.asarray(array[tuple(index)])


def _squeeze(array: Array, dims: int) -> Array:
    """The same with `dims` axes, if the others have length 1: ensembles of linear layers often store biases
    [E, 1, out] beside kernels [E, in, out]."""
    while array.ndim > dims and 1 in array.shape:
        array = array.squeeze(array.shape.index(1))
    return array


def _hint_of_axes(found: tuple[int, ...], expected: tuple[int, ...], job: Import) -> str:
    """Which options would make the found shape, of which --slice has taken its axis, the expected one."""
    more = len(found) - len(expected)
    for axes in itertools.combinations(range(len(found)), more) if 1 <= more <= 2 - bool(job.slice) else ():
        if tuple(d for axis, d in enumerate(found) if axis not in axes) == expected:
            first, *rest = (axis + bool(job.slice and axis >= job.slice[0]) for axis in axes)
            other = f" --slice {rest[0]}:INDEX, or the other way round" if rest else ""
            if not rest and not job.slice:
                other = f"; if it has several seeds of one, --slice {first}:INDEX"
            return f": if axis {first} has several critics, --ensemble-axis {first}{other}"
    return ""


def _check_source(match: Match, o: Object, s: Stored, job: Import) -> None:
    where = f"{match.weights.path}: {s.name}"
    if not s.real:
        fail(f"{where}: expected real numbers for {o.name}, found {s.type}")
    if job.slice and (job.slice[0] >= len(s.shape) or job.slice[1] >= s.shape[job.slice[0]]):
        axis, index = job.slice
        fail(f"{where}: expected an index {index} in axis {axis} (--slice), found {s.describe()}")
    if job.axis is not None and (job.axis >= len(s.shape) or s.shape[job.axis] == 0):
        fail(f"{where}: expected critics in axis {job.axis} (--ensemble-axis), found {s.describe()}")
    found = _cut(np.broadcast_to(np.float32(0), s.shape), job, 0)  # which has a shape and takes no memory
    shape, layout = _squeeze(found, len(o.shape)).shape, match.map.layout
    expected, other = o.shape, o.shape[::-1]
    if layout == "torch":
        expected, other = other, expected
    if shape != expected:
        hint = ", as the other layout has it" if len(o.shape) == 2 and shape == other else ""
        if job.axis is None and not hint:
            hint = _hint_of_axes(found.shape, expected, job)
        fail(
            f"{where}: expected shape {list(expected)} for {o.name} with layout = {layout}, found "
            f"{list(found.shape)}{hint}"
        )


def _count_critics(match: Match, job: Import) -> int:
    """The number of critics in a file, whose sources all have the right types and shapes."""
    critics = 0
    for k, found in enumerate(match.found):
        n = len(found.sources)
        if job.axis is not None and n != 1 and found.line:
            fail(
                f"{match.map.path}:{found.line.number}: '{found.line.glob}': expected one array, whose "
                f"axis has the critics (--ensemble-axis), found {n}"
            )
        for s, _ in found.sources:
            _check_source(match, found.object, s, job)
        first = found.sources[0][0]
        n = n if job.axis is None else first.shape[job.axis]
        if k > 0 and n != critics:
            fail(
                f"{match.weights.path}: {first.name}: expected {critics} critics, as "
                f"{match.found[0].sources[0][0].name} has, found {n}"
            )
        critics = n
    return critics


def _take(match: Match, job: Import, arrays: dict[str, list[Array]]) -> bool:
    """Appends the critics of a file to arrays; whether a source has the type float64."""
    wide = False
    for found in match.found:
        o = found.object
        for s, _ in found.sources:
            values = match.weights.read(s)
            if o.name.endswith("norm/var") and (values < 0).any():
                flat = values.ravel(order="K")
                at = int(np.flatnonzero(flat < 0)[0])
                fail(
                    f"{match.weights.path}: {s.name}: expected variances, found {flat[at]:g} at element {at}"
                )
            for e in range(1 if job.axis is None else s.shape[job.axis]):
                one = _squeeze(_cut(values, job, e), len(o.shape))
                arrays.setdefault(o.name, []).append(one.T if match.map.layout == "torch" else one)
            wide = wide or s.type == "float64"
    return wide


# --- minibatches ---


def _open_batch(path: str) -> tuple[Weights, tuple[int, int, int]]:
    """The file of minibatches: its names and types are right, and input and target exist; and the shape of
    input, (N, R, D)."""
    batch = open_weights(path)
    for s in batch.arrays:
        if s.name not in _BATCH:
            fail(
                f"{path}: {s.name}: expected no arrays but input, target, weight, output, loss and "
                "gradient_norm"
            )
        if not s.real:
            fail(f"{path}: {s.name}: expected real numbers, found {s.type}")
        wrong = [d for d in s.shape if not 1 <= d <= _MOST_SIDE]
        if wrong:
            fail(f"{path}: {s.name}: expected 1 to {_MOST_SIDE} in each dimension, found {wrong[0]}")
    for name in _BATCH[:2]:
        if not batch.find(name):
            fail(f"{path}: expected an array {name}, found none")
    found = next(s for s in batch.arrays if s.name == "input")
    if len(found.shape) != 3:
        fail(f"{path}: input: expected [minibatches, rows, inputs], found {found.describe()}")
    return batch, (found.shape[0], found.shape[1], found.shape[2])


def _take_batch(
    batch: Weights, inputs: tuple[int, int, int], description: Description, critics: int
) -> tuple[Arrays, bool]:
    """All arrays; and whether inputs, targets or weights have the type float64. A target is [N, B, T] or
    [N, B, E, T], or [N, B] where T = 1, with B <= R. inputs: (N, R, D)."""
    found: Arrays = {}
    wide, (n, rows, _) = False, inputs
    targets, heads = description.outputs, description.heads
    for name, s in ((name, batch.find(name)) for name in _BATCH):
        if not s:
            continue
        if name == "target":
            if len(heads) == 1 and heads[0][0].name == "quantile" and len(s.shape) > 2:
                targets = s.shape[-1]  # any number of samples
            fits = s.shape[2:] in ((targets,), (critics, targets), *([()] if targets == 1 else []))
            if len(s.shape) < 2 or not fits or s.shape[0] != n or s.shape[1] > rows:
                without = " or without the last dimension" if targets == 1 else ""
                fail(
                    f"{batch.path}: target: expected [{n}, rows, {targets}]{without}, or with the targets of "
                    f"each critic [{n}, rows, {critics}, {targets}], with at most {rows} rows, found "
                    f"{s.describe()}"
                )
        elif name == "weight" and s.shape != found["target"].shape[:2]:
            expected = list(found["target"].shape[:2])
            fail(f"{batch.path}: weight: expected {expected}, found {s.describe()}")
        found[name] = batch.read(s)
        wide = wide or (s.type == "float64" and name not in RESULTS)
    if found["target"].ndim == 2:
        found["target"] = found["target"][..., None]
    results = {name: found[name] for name in RESULTS if name in found}
    shape, loss_rows = (n, rows, critics, description.outputs), found["target"].shape[1]
    return found | read_results(batch.path, results, shape, loss_rows), wide


# --- KappaScope: the library and the analyzer ---


def _run(command: list[str]) -> tuple[int, str]:
    """Exit status and standard error of a program, which ends if this one is asked to. Signals wait while it
    is started: one in between would leave it without a parent that knows of it."""
    process = None
    waiting = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        try:
            process = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="surrogateescape",
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, waiting),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, waiting)
        _, said = process.communicate()
        return process.returncode, said
    except BaseException:
        if process:
            process.kill()
            process.wait()
        raise


def _analyze(arguments: list[str], rename: dict[str, str]) -> None:
    """Runs the analyzer, which checks what is imported. Its message, with other names for the files, is a
    refusal."""
    name = "kappascope-analyze"
    try:
        status, said = _run([program(name), *arguments])
    except FileNotFoundError as error:
        fail(str(error))
    if status == 0:
        return
    lines = [line for line in said.splitlines() if line.startswith(f"{name}: ")]
    message = lines[-1].removeprefix(f"{name}: ") if lines else f"{name}: exit status {status}"
    if not lines and re.search("(?i)thread(_create| creation)", said):
        message = f"{name}: {NO_PROCESS}"
    for old, new in rename.items():
        message = message.replace(old, new)
    fail(message)


def _read_description(job: Import, inputs: int) -> tuple[str, Description]:
    """The text of the description, and what it says."""
    text = read_text(job.arch)
    try:
        description = Description(text, inputs, job.arch)
    except OSError as error:  # without the library
        fail(str(error))
    if not description.heads:
        fail(f"{job.arch}: expected a critic, which ends in a loss, found a policy or outputs")
    return text, description


def _objects(description: Description, moments: bool) -> list[Object]:
    """The arrays that the description asks for, in the canonical order; then Adam's moments."""
    return [
        Object(f"{layer.group}/{name}", shape, state)
        for layer in description.layers
        for arrays, state in ((layer.params, False), (layer.state, True))
        for name, shape in arrays.items()
    ] + [
        Object(f"adam/{moment}/{layer.group}/{name}", shape, False)
        for moment in ("m", "v")
        for layer in description.layers
        for name, shape in layer.params.items()
        if moments and layer.trainable
    ]


# --- the program ---


def _refuse_inputs(job: Import) -> None:
    """The checkpoint must not replace one of the files that it is made from."""
    for path in (job.arch, job.map, job.batch, *job.weights):
        if job.output and os.path.exists(job.output) and os.path.exists(path):
            if os.path.samefile(path, job.output):
                fail(f"{path}: the checkpoint would replace this input")


def _match_all(map: Map, job: Import, description: Description) -> list[Match]:
    """Applies the map to the files. All of them are listed before it fails because of a problem in one."""
    # These layers read their running statistics in training mode.
    needs = any(x.kind == "batchrenorm" or "u" in x.state for x in description.layers)
    objects = _objects(description, map.has_moments())
    matches = [Match(map, open_weights(path), objects, needs) for path in job.weights]
    problems = []
    for match in matches:
        w = match.weights
        _say(job, f"{w.path}: {w.format}, {len(w.arrays)} arrays")
        for how, what in match.list_all():
            _say(job, f"{how:10} {what}")
            problems += [(how, what)] if how not in ("taken", "ignored") else []
    if problems:
        counts = collections.Counter(how for how, _ in problems)
        first = f"{problems[0][0]:10} {problems[0][1]}"[:500]
        fail(
            f"{job.map}: {counts['unused']} arrays unused, {counts['missing']} missing, "
            f"{counts['ambiguous']} ambiguous; the first: {first}"
        )
    return matches


def _say(job: Import, line: str) -> None:
    if not job.quiet:
        say(printable(line))


def _adam(matches: list[Match], critics: Arrays) -> dict[str, Any] | None:
    """Adam's moments, which are taken out of the critics' arrays, its number of steps and its constants."""
    map = matches[0].map
    if not map.has_moments():
        return None
    adam: dict[str, Any] = {"m": {}, "v": {}, "step": matches[0].count_steps(), **map.adam}
    for match in matches[1:]:
        if match.count_steps() != adam["step"]:
            fail(
                f"{match.weights.path}: expected {adam['step']} steps of Adam, as {matches[0].weights.path} "
                f"has, found {match.count_steps()}"
            )
    for name in [name for name in critics if name.startswith("adam/")]:
        _, moment, array = name.split("/", 2)
        adam[moment][array] = critics.pop(name)
    return adam


def _write(
    path: str, text: str, arrays: dict[str, list[Array]], batch: Arrays, matches: list[Match], wide: bool
) -> None:
    """In float64 if a source is, else in float32; results of the other framework in their own type."""
    type = np.float64 if wide else np.float32
    critics = {name: np.stack(values).astype(type) for name, values in arrays.items()}
    batch = {name: a if name in RESULTS else a.astype(type) for name, a in batch.items()}
    ensemble, adam = len(next(iter(arrays.values()))), _adam(matches, critics)
    write_checkpoint(path, text, ensemble, critics, batch, adam, {}, fixed=True)


def import_files(job: Import) -> None:
    """Prints the listing on standard output and writes the checkpoint. A failure leaves no checkpoint, and an
    existing one as it is."""
    _refuse_inputs(job)
    map = read_map(job.map)
    batch, inputs = _open_batch(job.batch)
    parent = None
    if job.output is not None:
        check_replaceable(job.output)
        parent = os.path.dirname(job.output) or "."
        if not os.access(parent, os.W_OK | os.X_OK):
            fail(f"{job.output}: cannot be created: the folder {parent} cannot be written")
    start = ".kappascope-import-"
    remove_abandoned(os.path.join(glob.escape(parent or tempfile.gettempdir()), f"{start}*", LOCK))
    with tempfile.TemporaryDirectory(prefix=start, dir=parent) as folder, _locked(folder):
        text, description = _read_description(job, inputs[2])
        if description.joint and inputs[1] == 1 and not job.quiet:
            print(f"kappascope-import: {job.batch}: {ONE_ROW}", file=sys.stderr)
        matches = _match_all(map, job, description)
        counts = [_count_critics(match, job) for match in matches]
        arrays: dict[str, list[Array]] = {}
        wide = any([_take(match, job, arrays) for match in matches])
        results, wide_batch = _take_batch(batch, inputs, description, sum(counts))
        wide, path = wide or wide_batch, os.path.join(folder, "checkpoint.h5")
        _write(path, text, arrays, results, matches, wide)
        out = ["--quiet", "--precision", "f64", "--gradient", os.path.join(folder, "gradient.h5"), path]
        _analyze(out, {f"{path}: /batch/": f"{job.batch}: ", path: job.output or "the checkpoint"})
        _list_results(job, results)
        if job.output is not None:
            replace(path, job.output)
            _say(
                job,
                f"{job.output}: {sum(counts)} critics of {description.parameters} parameters, {inputs[0]} "
                f"minibatches of {inputs[1]} rows, in {'float64' if wide else 'float32'}",
            )


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """While this program works in the folder, its file LOCK is locked: it appears so."""
    name = os.path.join(folder, LOCK)
    with open(f"{name}.new", "xb") as file:
        lock(file)
        os.rename(f"{name}.new", name)
        yield


def _list_results(job: Import, batch: Arrays) -> None:
    """Which results of the other framework were compared, and which the file does not have."""
    if not any(name in batch for name in RESULTS):
        _say(
            job,
            f"{job.batch}: nothing was compared: it has no output, loss or gradient_norm of the program "
            "that trained the critic",
        )
        return
    for name in RESULTS:
        equal = "equal to what is computed here, up to rounding"
        missing = "not compared, because the file does not have it"
        _say(job, f"{job.batch}: {name}: {equal if name in batch else missing}")
