"""Returns of past runs, as other programs have stored them, as returns.csv."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kappascope.checkpoint import write_file
from kappascope.names import Array, Path
from kappascope.refusal import did_you_mean, fail

# Of Stable-Baselines3's evaluations, of CleanRL, of Stable-Baselines3's training; the first that is there.
TAGS = ("eval/mean_reward", "charts/episodic_return", "rollout/ep_rew_mean")
# The columns of a table, the first that is there.
_RETURNS = ("return", *TAGS, "mean_reward", "episodic_return", "ep_rew_mean", "reward")
_STEPS = ("env_step", "step", "Step", "global_step", "time/total_timesteps", "total_timesteps", "timesteps")


def returns(
    source: Path, folder: Path, tag: str | None = None, step: str | None = None
) -> list[tuple[int, float]]:
    """Writes returns.csv of a run from what another program has stored:

        run = kappascope.Run("mystudy", env="Pendulum-v1", name="sac", seed=0, ...)
        kappascope.returns("logs/evaluations.npz", run.folder)

    source  Stable-Baselines3's evaluations.npz (timesteps [T], results [T, episodes]: their mean is the
            return); a table .csv with a header, such as progress.csv, whose rows without a return are left
            out; or a file of TensorBoard's events, or a folder with such files (needs the package
            tensorboard)
    folder  of the run, mystudy/runs/ENV/NAME/seedS; it is made. An existing returns.csv is replaced
    tag     the name of the returns in events, or of their column in a table; by default
            eval/mean_reward, charts/episodic_return or rollout/ep_rew_mean; in a table also return, reward
            and others
    step    the name of the steps' column in a table; by default env_step, step, global_step,
            total_timesteps and others

    Values of one step become their mean; of a run that started again at an earlier step the later values
    are taken. Of a file of events that is damaged, or a table whose last line has no end, what is before is
    taken, with a warning. Returns the rows [(env_step, return)]. Raises Refused, before anything is
    written."""
    source, folder = os.fspath(source), os.fspath(folder)
    if not os.path.exists(source):
        fail(f"{source}: no such file or folder")
    if source.endswith(".npz"):
        pairs = _evaluations(source)
    else:
        pairs = _table(source, tag, step) if source.endswith(".csv") else _events(source, tag)
    rows: list[tuple[int, list[float]]] = []
    for at, value in pairs:
        if rows and rows[-1][0] > at:  # started again
            rows = [row for row in rows if row[0] < at]
        if rows and rows[-1][0] == at:
            rows[-1][1].append(value)
        else:
            rows.append((at, [value]))
    found = [(at, float(np.mean(values))) for at, values in rows]
    if not found:
        fail(f"{source}: expected returns, found none")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        fail(f"{folder}: cannot be created: {error.strerror}")
    text = "".join(f"{at},{value!r}\n" for at, value in found)
    write_file(os.path.join(folder, "returns.csv"), ("env_step,return\n" + text).encode())
    return found


def _evaluations(source: str) -> Iterable[tuple[int, float]]:
    try:
        with open(source, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays: dict[str, Array] = {name: stored[name] for name in ("timesteps", "results")}
    except Exception as error:  # zipfile and NumPy have many
        said = " ".join(str(error).split())
        fail(f"{source}: expected evaluations.npz of Stable-Baselines3, with timesteps and results: {said}")
    steps, results = arrays["timesteps"], arrays["results"]
    real = steps.dtype.kind in "iu" and results.dtype.kind in "iuf"
    if not real or steps.ndim != 1 or results.ndim != 2 or len(steps) != len(results) or not results.size:
        fail(
            f"{source}: expected timesteps [T] and results [T, episodes] of numbers, found "
            f"{list(steps.shape)} of {steps.dtype} and {list(results.shape)} of {results.dtype}"
        )
    return zip(steps.tolist(), results.mean(1).tolist())


def _table(source: str, tag: str | None, step: str | None) -> list[tuple[int, float]]:
    try:
        with open(source, encoding="utf-8-sig", newline="") as file:
            lines = [line for line in file if not line.startswith("#")]
        if lines and not lines[-1].endswith(("\n", "\r")):
            warnings.warn(f"{source}: the last line has no end, so it is left out", stacklevel=3)
            del lines[-1]
        header, *rows = csv.reader(lines) if lines else [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        fail(f"{source}: expected a table with a header: {' '.join(str(error).split())}")
    at = _column(source, header, step, _STEPS, "step")
    of = _column(source, header, tag, _RETURNS, "tag")
    pairs = []
    for cells in (cells for cells in rows if len(cells) > of and cells[of].strip()):
        try:
            pairs.append((int(float(cells[at])), float(cells[of])))
        except (IndexError, OverflowError, ValueError):
            fail(f"{source}: expected a step and a return in each row, found {','.join(cells)[:100]}")
    return pairs


def _column(source: str, header: list[str], name: str | None, known: Sequence[str], what: str) -> int:
    """Where a column is: that of this name, or the first of those that are known."""
    wanted = [name] if name else known
    found = next((one for one in wanted if one in header), None)
    if found is None:
        fail(
            f"{source}: expected a column {' or '.join(wanted)}, found {', '.join(header)}. Way out: "
            f"{what}=NAME, the name of this column; or run.evaluated(step, value) for each row"
        )
    return header.index(found)


def _events(source: str, tag: str | None) -> Iterable[tuple[int, float]]:
    paths = [source]
    if os.path.isdir(source):
        paths = [os.path.join(source, name) for name in sorted(os.listdir(source))]
    paths = [path for path in paths if "tfevents" in os.path.basename(path)]
    if not paths:
        fail(
            f"{source}: expected evaluations.npz of Stable-Baselines3, a table .csv, or TensorBoard's events "
            "(names with tfevents) or their folder, found something else"
        )
    try:
        import tensorboard  # noqa: F401
    except ImportError as error:
        fail(
            f"{source}: TensorBoard's event files need the package tensorboard ({error}): python3 -m pip "
            "install tensorboard"
        )
    found: dict[str, list[Any]] = {}  # by tag: (time, step, value)
    damaged = []
    for path in paths:
        size = _read_events(path, found)
        if size != os.path.getsize(path):
            damaged.append(f"{path}: damaged or incomplete after byte {size}: what follows is left out")
    known = list(found)
    tag = tag or next((one for one in TAGS if one in known), None)
    if tag is None or tag not in known:
        listing = ", ".join(known) or "none"
        fail(
            f"{source}: expected tag={' or '.join(map(repr, [tag] if tag else TAGS))}"
            f"{did_you_mean(tag, known) if tag else ''}, found {listing}",
            damaged,
        )
    # In the order in which it was written; restarts are handled above
    events = sorted(found[tag], key=lambda event: event[0])
    try:
        pairs = [(step, float(value)) for _, step, value in events]
    except (TypeError, ValueError) as error:
        fail(f"{source}: {tag}: expected a number at each step: {error}")
    for line in damaged:
        warnings.warn(line, stacklevel=3)
    return pairs


def _read_events(path: str, found: dict[str, list[Any]]) -> int:
    """Adds the numbers and tensors of a file; returns at which byte its events end. The reader of TensorBoard
    says nothing where a checksum is wrong, and stops."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.util.tensor_util import make_ndarray

    size = 0
    try:
        for record in RawEventFileLoader(path).Load():
            size += len(record) + 16  # with its length and two checksums
            event = Event.FromString(record)
            for one in event.summary.value:
                kind = one.WhichOneof("value")
                if kind in ("simple_value", "tensor"):
                    value = one.simple_value if kind == "simple_value" else make_ndarray(one.tensor)
                    found.setdefault(one.tag, []).append((event.wall_time, event.step, value))
    except Exception as error:  # of the file system, of protobuf
        fail(f"{path}: expected a file of TensorBoard's events: {' '.join(str(error).split())}")
    return size
