"""Saves and analyzes critics in the background while a program trains, and logs the statistics."""

from __future__ import annotations

import atexit
import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

from kappascope.names import Path

Row = dict[str, Any]
Log = Callable[[int, Row], None]


def _logger(log: Any, folder: str) -> Log:
    """A function (step, values) that logs values; None stands for one that is not resolved."""
    if log == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        log = SummaryWriter(folder)
    if log == "wandb":
        import wandb

        log = wandb
    if hasattr(log, "add_scalar"):

        def scalars(step: int, values: Row) -> None:
            for key, value in values.items():
                if value is not None:
                    log.add_scalar(f"kappascope/{key}", value, step)

        return scalars
    if hasattr(log, "log"):
        if hasattr(log, "define_metric"):  # an analysis ends later than the step that it is of
            log.define_metric("kappascope/*", step_metric="kappascope/step")

        def row(step: int, values: Row) -> None:
            found = {f"kappascope/{key}": v for key, v in values.items() if v is not None}
            log.log({"kappascope/step": step} | found)

        return row
    path = os.fspath(log)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return lambda step, values: append_row(path, {"step": step} | values)


class Monitor:
    """Saves and analyzes critics in the background while a program trains:

        monitor = Monitor("audit", save, every=10_000, log="audit/curves.csv")
        monitor(step)        # in the loop
        monitor.close()

    folder   for the checkpoints step_NNNNNNNNN.h5 and their spectra
    save     save(path, step) writes a checkpoint, always of the same minibatches
    every    steps between two analyses. While one runs, the next are left out
    log      where kappascope/NAME goes: a path of a CSV file, an object with add_scalar
             (TensorBoard's SummaryWriter), an object with log (a run of wandb), "tensorboard" (a
             writer in folder), "wandb" (its current run), or a list
    options  further options of `kappascope analyze`
    program  the program, if it is not in the PATH
    threads  that the analysis may use
    keep     False: delete each checkpoint when its analysis has ended, well or not
    wait     seconds for which close, or the end of the program, waits for the last analysis before
             it is stopped

    A call only looks whether an analysis has ended, unless it saves. No failure ends the training:
    each is printed once, on standard error. Processes that the program forks do nothing here. If
    the program is killed, an analysis that runs ends by itself."""

    def __init__(
        self,
        folder: Path,
        save: Callable[[str, int], Any],
        every: int,
        log: Any,
        options: Iterable[str] = (),
        program: str = "kappascope",
        threads: int = 1,
        keep: bool = True,
        wait: float = 600,
    ) -> None:
        if every < 1:
            raise ValueError(f"Monitor: every: expected at least 1 step, found {every}")
        self.folder, self.save, self.every = os.fspath(folder), save, every
        self.keep, self.wait, self.owner = keep, wait, os.getpid()
        nice = shutil.which("nice")
        self.command = [
            *([nice, "-n", "19"] if nice else []),
            program,
            "analyze",
            "--json",
            "--quiet",
            *options,
        ]
        self.environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        self.next, self.skipped = 0, 0
        self.process: subprocess.Popen[bytes] | None = None
        self.reported: set[str] = set()
        os.makedirs(self.folder, exist_ok=True)
        logs = log if isinstance(log, (list, tuple)) else [log]
        self.logs = [_logger(one, self.folder) for one in logs]
        atexit.register(self.close)

    def __call__(self, step: int) -> bool:
        """Looks for the end of an analysis; starts one if it is time. Returns whether it saved."""
        if os.getpid() != self.owner:
            return False
        try:
            if self.process and self.process.poll() is not None:
                self._finish()
        except Exception as error:  # the training goes on, whatever happens here
            self._report(self.step, error)
        try:
            if step < self.next:
                return False
            self.next = step - step % self.every + self.every
            if self.process:
                self.skipped += 1
                return False
            self._start(step)
            return True
        except Exception as error:
            self._report(step, error)
            return False

    def _start(self, step: int) -> None:
        path = os.path.join(self.folder, f"step_{step:09d}.h5")
        self.save(path, step)
        self.path, self.step = path, step
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        try:
            # In a session of its own: Ctrl-C at the terminal ends the training, which then ends the
            # analysis.
            self.process = subprocess.Popen(
                [*self.command, path],
                stdin=subprocess.DEVNULL,
                stdout=self.out,
                stderr=self.err,
                env=self.environment,
                start_new_session=True,
            )
        except BaseException:
            self._clean()
            raise

    def _finish(self) -> None:
        """Logs the statistics of the analysis that has ended."""
        process, self.process = self.process, None
        try:
            values = self._read(process.returncode if process else None)
        finally:
            self._clean()
        failed = []
        for log in self.logs:
            try:
                log(self.step, values)
            except Exception as error:  # the other logs get their values
                failed.append(error)
        if failed:
            raise failed[0]

    def _read(self, status: int | None) -> Row:
        """The numbers that the analyzer printed."""
        self.out.seek(0)
        self.err.seek(0)
        lines = self.out.read().splitlines()
        if status != 0 or not lines:
            said = self.err.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(
                f"kappascope analyze: exit status {status}: "
                f"{said[-1] if said else 'no statistics and no message'}"
            )
        return {
            key: value
            for key, value in json.loads(lines[0]).items()
            if value is None or isinstance(value, (int, float)) and not isinstance(value, bool)
        }

    def _clean(self) -> None:
        self.out.close()
        self.err.close()
        if not self.keep and os.path.exists(self.path):
            os.unlink(self.path)

    def _report(self, step: int, error: Exception) -> None:
        """Prints a message, once for all steps."""
        message = str(error) if type(error) is RuntimeError else f"{type(error).__name__}: {error}"
        kind = re.sub(r"\d+", "", message)
        if kind not in self.reported:
            self.reported.add(kind)
            print(
                f"kappascope: step {step}: {message} (the training goes on; the same is not printed again)",
                file=sys.stderr,
                flush=True,
            )

    def close(self, wait: float | None = None) -> None:
        """Waits for the last analysis, at most `wait` seconds, and logs it; a longer one is
        stopped. May be called twice."""
        atexit.unregister(self.close)
        if not self.process or os.getpid() != self.owner:
            return
        wait = self.wait if wait is None else wait
        try:
            try:
                self.process.wait(min(wait, 2))
            except subprocess.TimeoutExpired:
                if wait > 2:
                    print(
                        f"kappascope: waiting for the analysis of step {self.step}, at most {wait:g} s",
                        file=sys.stderr,
                        flush=True,
                    )
                self.process.wait(max(wait - 2, 0))
            self._finish()
        except subprocess.TimeoutExpired:
            self._stop()
            self._report(self.step, RuntimeError("the analysis was stopped at the end of the program"))
        except KeyboardInterrupt:
            self._stop()
            raise
        except Exception as error:
            self._report(self.step, error)

    def _stop(self) -> None:
        """Ends the analysis and what it started: they are a group of processes of their own."""
        process, self.process = self.process, None
        if not process:
            return
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5 if sign == signal.SIGTERM else None)
                break
        self._clean()


def append_row(path: str, row: Row) -> None:
    """A row of a CSV file, under the header that it has or gets; a value that is not resolved is
    empty. On a full disk the file stays as it was."""
    text = io.StringIO()
    size = os.path.getsize(path) if os.path.exists(path) else 0
    header = list(row)
    if size > 0:
        with open(path, encoding="utf-8", newline="") as file:
            header = next(csv.reader(file))
    writer = csv.DictWriter(text, header, restval="", extrasaction="ignore", lineterminator="\n")
    if size == 0:
        writer.writeheader()
    writer.writerow({key: "" if value is None else value for key, value in row.items()})
    try:
        with open(path, "a", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
    except OSError:
        if os.path.exists(path):
            os.truncate(path, size)
        raise
