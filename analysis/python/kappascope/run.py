"""A training run as a part of a study: its folder, its checkpoints at regular steps, its returns."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import itertools
import os
import random
import re
import shutil
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from kappascope.arguments import attributes_of, check_functions, check_names, real, whole
from kappascope.checkpoint import fixed_string, write_file
from kappascope.hdf5 import read_hdf5
from kappascope.lines import Lines, in_one_line, line_of
from kappascope.names import Path
from kappascope.rows import append_row, cut_rows, header_of, steps_of
from kappascope.samples import Samples, shapes_of

STUDY = """\
; A study of runs that were trained elsewhere. Change it as you like: kappascope.Run writes it only once.
[study]
trained = elsewhere

[analyze]
start = gradient

; Figure 4 of the XQC paper with the statistics of its published code.
[analyze xqc]
compat = xqc
"""
_WAIT = 10  # seconds for the end of a process that is being replaced
_held: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()  # by folder: of this process


class Run:
    """A training run of a study, with two lines in its loop, and functions that say what is saved:

        run = kappascope.Run("mystudy", env="walker-run", name="mine", seed=0, every=25_000, save=save)
        run(step)                          # each step: saves a checkpoint when it is time
        run.evaluated(step, mean_return)   # after each evaluation

    and when all runs are over, `kappascope study mystudy` analyzes and plots them.

    study        the study's folder; study.study is written there if there is none
    env          the task; characters other than letters, digits and +-_. become -
    name         of the architecture, of letters, digits and +-_.
    seed         a whole number
    every        environment steps between two checkpoints: at the first call at or after each multiple; but
                 the first call of a run saves only if its step is a multiple
    save         save(path, step) writes a checkpoint to `path`, for example by kappascope.save; with
                 `draw` save(path, step, minibatches)
    draw         draw() returns minibatches, which `save` gets with the shapes that they have: arrays or
                 tensors, in a tuple, list, dictionary, named tuple or data class. With
                 minibatches="fixed" they are those of the first checkpoint, also when the run is resumed
    minibatches  "fixed": the same for all checkpoints of a run; "fresh": drawn for each. Without `draw`
                 it says what `save` does; if "fixed" is not true, a warning says so, and the file
    attributes   further attributes of every checkpoint; `gamma`, the discount, and `reward_scale`, by
                 which rewards were divided, say whether spectra can be compared

    The folder is study/runs/ENV/NAME/seedS (`folder`): step_NNNNNNNNN.h5, and returns.csv with the
    columns env_step and return. If a run starts again at an earlier step, what it had written after that
    step is moved to the folder replaced-1 (-2, ...) there.

    Wrong arguments here raise TypeError or ValueError. After that nothing ends the training: each kind of
    error is one line on standard error. Processes that the program forks keep nothing. After a checkpoint the
    global generators of random numbers of Python, NumPy and PyTorch are as before it."""

    def __init__(
        self,
        study: Path,
        *,
        env: str,
        name: str,
        seed: int,
        every: int,
        save: Callable[..., Any],
        draw: Callable[[], Any] | None = None,
        minibatches: str = "fixed",
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        check_functions(save, draw, minibatches)
        check_names(env, name)
        self.attributes = attributes_of(dict(attributes or {}))
        self.study, self.name, self.seed = os.path.abspath(study), name, whole("Run: seed", seed)
        self.env = re.sub(r"[^A-Za-z0-9+_.-]", "-", env).lstrip("-.") or "env"
        self.every, self.save, self.draw = whole("Run: every", every, 1), save, draw
        self.minibatches = self._label = minibatches  # what is asked for, and what checkpoints say
        self.folder = os.path.join(self.study, "runs", self.env, self.name, f"seed{self.seed}")
        self.returns = os.path.join(self.folder, "returns.csv")
        self._drawn = os.path.join(self.folder, "minibatches.npz")
        self.step: int | None = None  # of the last call
        self._evaluated = -1  # the step of the last evaluation
        self._due = -1  # the multiple of `every` that is saved next; not known before the first call
        self._samples: Samples | None = None
        self._inputs: str | None = None  # of the first checkpoint: a checksum
        self._lock: Any = None
        self._ready = False  # whether the folder is locked and study.study is there
        self._other = ""  # who else writes into the folder, so that this run does not
        self._owner, self._lines = os.getpid(), Lines(self.folder)
        self._ended = weakref.finalize(self, self._lines.end)  # also at the end of the program
        try:
            self._open(_WAIT)
        except Exception as error:
            self._lines.report(None, error, "it is tried again at the next checkpoint and evaluation")

    # --- what a training calls ---

    def __call__(self, step: int, now: bool = False) -> bool:
        """Saves a checkpoint if it is time, or in any case with now=True. Returns whether it saved."""
        if self._is_idle():
            return False
        try:
            number = whole("step", step)
            if self.step is None:
                self._begin(number, number)
            elif number < self.step:
                self._backwards(number, self.step, "nothing is saved at such steps")
                return False
            self.step = number
            if self._due < 0:
                self._due = -(-number // self.every)
                first = f"no checkpoint was saved: the first was due at step {self._due * self.every}"
                self._lines.at_end = self._lines.at_end and first
            if number < self._due * self.every and not now:
                return False
            self._due, self._lines.at_end = number // self.every + 1, ""
            self._open()
            if self._other:
                return False
            with _same_random_numbers():
                path = self._save(number)
        except Exception as error:
            next_one = f"the next checkpoint is saved at step {max(self._due, 0) * self.every}"
            self._lines.report(step, error, f"no checkpoint of this step; {next_one}")
            return False
        self._saved(path, number)
        return True

    def evaluated(self, step: int, mean_return: float, **further: float) -> None:
        """Adds a row to returns.csv: step, mean return of the evaluation's episodes, and numbers for further
        columns, the same in all calls. A second evaluation at a step replaces the first."""
        if self._is_idle():
            return
        try:
            number, value = whole("step", step), real(mean_return)
            if value is None:
                raise TypeError(f"the return of an evaluation: expected a number, found {mean_return!r}")
            if self.step is None:
                self._begin(number, number - 1)
                self.step = number
            self._open()
            if self._other:
                return
            header = header_of(self.returns)
            if header and not {"env_step", "return"} <= set(header):
                raise ValueError(
                    f"{self.returns}: expected columns env_step and return, found {', '.join(header)}: move "
                    "this file away"
                )
            last = max(steps_of(self.returns), default=-1)
            if number < last:
                self._backwards(number, last, "no row is written for such steps")
                return
            if number == last:
                cut_rows(self.returns, number - 1)
                if number == self._evaluated:  # else by a former process, which was at this step, too
                    self._lines.say(number, f"{self.returns}: evaluated twice: the last return is kept")
            self._evaluated = number
            if not np.isfinite(value):
                self._lines.say(number, f"{self.returns}: a return of {value}: the study leaves this row out")
            kept = self._further(number, header, further)
            append_row(self.returns, {"env_step": number, "return": repr(value), **kept})
        except Exception as error:
            self._lines.report(step, error, f"{self.returns} has no row of this step")

    def _further(self, step: int, header: list[str], further: Mapping[str, Any]) -> dict[str, str | None]:
        """The values of further columns as text, None for none; says which cannot be kept."""
        kept: dict[str, str | None] = {}
        lost = []
        for name, value in further.items():
            number = real(value)
            if name in ("env_step", "return") or not re.fullmatch(r'[^",\x00-\x1f]+', name):
                lost.append(f"expected another name for a further column, found {name}")
            elif header and name not in header:
                lost.append(f"it has no column {name}")
            else:
                kept[name] = None if number is None else repr(number)
                if number is None and value is not None:
                    lost.append(f"{name}: expected a number, found a value of type {type(value).__name__}")
        if lost:
            self._lines.say(step, f"{self.returns}: {'; '.join(lost)}: not kept")
        return kept

    def close(self) -> None:
        """Gives the folder free for another process; the end of the program does so, too."""
        self._ended()
        self._leave("this run is closed: nothing more is kept")

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the folder ---

    def _is_idle(self) -> bool:
        """Whether calls do nothing: in a forked process, and where another run has the folder. It says so."""
        if os.getpid() != self._owner:
            self._lines.say(
                None,
                f"{self.folder}: process {self._owner} made this Run, and this one, which it forked, keeps "
                "nothing: make the Run in the process that calls it",
            )
            return True
        if self._other:
            self._lines.say(None, f"{self.folder}: {self._other}")
        return bool(self._other)

    def _leave(self, why: str) -> None:
        if self._lock and os.getpid() == self._owner:
            self._lock.close()
            self._lock, self._other, self._lines.at_end = None, why, ""

    def _open(self, wait: float = 0) -> None:
        """Makes the folder and study.study, and locks the folder, what is not done yet."""
        if self._ready:
            return
        if not self._lock and not self._take_lock(wait):
            return
        path = os.path.join(self.study, "study.study")
        if not os.path.exists(path):
            write_file(path, STUDY.encode(), shared=True)
        others = sorted(set(os.listdir(os.path.join(self.study, "runs"))) - {self.env})
        if others:
            self._lines.say(
                None,
                f"{self.study}: a study has one task, found {others[0]} beside {self.env}: give each its own "
                "folder, or say `env = ...` in its study.study",
            )
        self._ready = True

    def _take_lock(self, wait: float) -> bool:
        """Locks the folder; False if another process has it after `wait` seconds, which is said."""
        former = _held.get(os.path.realpath(self.folder))
        if former:  # a cell of a notebook, evaluated again
            former._leave("a later Run of this program continues this one: nothing more is kept by this one")
        os.makedirs(self.folder, exist_ok=True)
        file = open(os.path.join(self.folder, "run.lock"), "a+b", buffering=0)
        until = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(0.2)
                    continue
                file.seek(0)
                holder = file.read().decode("utf-8", "replace").strip() or "unknown"
                file.close()
                self._other = (
                    f"another process ({holder}) writes into this folder: nothing of this run is kept. Give "
                    "it another seed, name or study"
                )
                return not self._is_idle()
            except OSError:  # a file system that cannot lock
                break
        with contextlib.suppress(OSError):
            file.truncate(0)
            file.write(f"{os.uname().nodename}, process {os.getpid()}".encode())
        self._lock = file
        _held[os.path.realpath(self.folder)] = self
        return True

    def checkpoints(self) -> list[int]:
        """The steps of the checkpoints that the folder has."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        return sorted(int(m[1]) for m in (re.fullmatch(r"step_(\d{9,})\.h5", name) for name in names) if m)

    def _begin(self, step: int, row: int) -> None:
        """At the first step of this process: moves away what a former one wrote later, checkpoints after
        `step` and rows after `row`, and finds out which checkpoint comes next."""
        self._open()
        if self._other:
            return
        for name in os.listdir(self.folder):  # what killed processes left; the folder is locked
            if name.startswith(".kappascope-"):
                _remove(os.path.join(self.folder, name))
        saved = self.checkpoints()
        later = {f"step_{s:09d}" for s in saved if s > step}
        names = [name for name in os.listdir(self.folder) if name.split(".")[0] in later]
        first = not any(s <= step for s in saved)  # whether none stays
        if first and os.path.exists(self._drawn):
            names.append(os.path.basename(self._drawn))
        rows_later = max(steps_of(self.returns), default=-1) > row
        if later or rows_later:
            folders = (os.path.join(self.folder, f"replaced-{number}") for number in itertools.count(1))
            away = next(folder for folder in folders if not os.path.exists(folder))
            os.mkdir(away)
            if rows_later:
                cut_rows(self.returns, row, os.path.join(away, "returns.csv"))
            for name in names:
                os.rename(os.path.join(self.folder, name), os.path.join(away, name))
            self._lines.say(
                step, f"the run goes on from here: what it had written after this step is now in {away}"
            )
        cut_rows(self.returns, row)  # an incomplete last line goes
        before = [s for s in saved if s < step]
        self._due = before[-1] // self.every + 1 if before else -1
        self._lines.at_end = "no checkpoint was saved: the run was never called" if first else ""
        if before:
            with contextlib.suppress(Exception):  # a damaged one is found when it is analyzed
                path = self._path(before[-1])
                said = _read_checkpoint(path, lambda file: file.attrs.get("minibatches", self._label))
                if said in ("fresh", b"fresh"):
                    self._label = "fresh"
                if not self.draw:
                    self._check_inputs(self._path(before[0]))

    def _path(self, step: int) -> str:
        return os.path.join(self.folder, f"step_{step:09d}.h5")

    # --- a checkpoint ---

    def _save(self, step: int) -> str:
        path = self._path(step)
        temporary = os.path.join(self.folder, f".kappascope-{os.getpid()}-{os.path.basename(path)}")
        try:
            given = [self._ask("draw")] if self.draw and self.minibatches == "fresh" else []
            if self.draw and not given:
                if self._samples is None:
                    self._samples = Samples(self._drawn, lambda: self._ask("draw"))
                    if self._samples.new and any(saved < step for saved in self.checkpoints()):
                        self._label = "fresh"
                        self._lines.say(
                            step,
                            f"{self._drawn}: expected the minibatches of the run's first checkpoint, found "
                            "no file: new ones are drawn, and the checkpoints say fresh",
                        )
                given = [self._samples.get()]
            self._ask("save", temporary, step, *given)
            if not os.path.isfile(temporary):
                raise RuntimeError("expected save to write a file of the name that it is given, found none")
            if self.draw is None and self._label == "fixed" and not self._check_inputs(temporary, known=True):
                self._label = "fresh"
                self._lines.say(
                    step,
                    f"{path}: /batch/input is not that of the run's first checkpoint: the file says that the "
                    "minibatches are fresh. Give Run draw=..., or minibatches='fresh'",
                )
            own = {"env": self.env, "seed": self.seed, "env_step": step, "minibatches": self._label}
            write_file(path, _with_attributes(temporary, {**self.attributes, **own}))
        finally:
            for name in glob.glob(f"{glob.escape(temporary)}*"):
                with contextlib.suppress(OSError):
                    _remove(name)
        return path

    def _ask(self, what: str, *arguments: Any) -> Any:
        """What the user's function returns; an error names its line."""
        try:
            return getattr(self, what)(*arguments)
        except Exception as error:
            hint = _about_shapes(error, *arguments[2:]) if what == "save" else ""
            raise RuntimeError(f"{what}: {line_of(error)}{in_one_line(error)}{hint}") from error

    def _check_inputs(self, path: str, known: bool = False) -> bool:
        """Whether the inputs are those of the first checkpoint that was looked at."""
        inputs = _read_checkpoint(path, lambda file: file["batch/input"][()], known=known)
        found = hashlib.sha256(np.ascontiguousarray(inputs).tobytes()).hexdigest()
        self._inputs = self._inputs or found
        return found == self._inputs

    def _saved(self, path: str, step: int) -> None:
        """What follows a checkpoint."""

    # --- messages ---

    def _backwards(self, step: int, last: int, so: str) -> None:
        self._lines.say(
            step,
            f"{self.folder}: given after step {last}: {so}. Expected environment steps since the start of "
            "the training; a run that starts again needs a new Run",
        )


def _about_shapes(error: Exception, *minibatches: Any) -> str:
    """What save gets and expects, if that is what the error is about."""
    words = r"\b(shapes?|sizes?|dim(ension)?s?|broadcast\w*)\b|expected (each as )?\["
    if isinstance(error, (OSError, MemoryError)) or not re.search(words, str(error), re.IGNORECASE):
        return ""
    got = f"save gets what draw returns, here {shapes_of(minibatches)}: " if minibatches else ""
    return (
        f" ({got}[N, R, ...] are N minibatches of R rows; flatten(0, 1) makes rows of them, and of rollouts "
        "[T, envs, ...])"
    )


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Afterwards the global generators are as before: the training is the one that it is without a Run."""
    python, state = random.getstate(), np.random.get_state()
    torch = sys.modules.get("torch")
    cpu = torch.get_rng_state() if torch else None
    cuda = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(state)
        if torch:
            torch.set_rng_state(cpu)
        if torch and cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def _remove(path: str) -> None:
    """A file, or a folder that save has made."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _read_checkpoint(path: str, read: Callable[[Any], Any], **how: Any) -> Any:
    """What read(file) returns, of a file with minibatches; how: further arguments of read_hdf5."""

    def checked(file: Any) -> Any:
        if "batch/input" not in file:
            raise RuntimeError("expected save to write a checkpoint, found a file without /batch/input")
        return read(file)

    try:
        return read_hdf5(path, checked, **how)
    except OSError as error:
        raise RuntimeError(f"expected save to write a checkpoint: {error}") from error


def _with_attributes(path: str, attributes: Mapping[str, Any]) -> bytes:
    """The bytes of a checkpoint with these attributes. It is changed in memory: HDF5 cannot give up a file
    on a full disk."""

    def change(file: Any) -> bytes:
        for name, value in attributes.items():
            file.attrs[name] = fixed_string(value) if isinstance(value, str) else value
        file.flush()
        return bytes(file.id.get_file_image())

    image: bytes = _read_checkpoint(path, change, known=True, mode="r+", driver="core", backing_store=False)
    return image


# --- messages ---
