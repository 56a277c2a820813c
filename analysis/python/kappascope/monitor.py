"""A run whose checkpoints are analyzed in the background while it trains, with statistics in its logs."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

from kappascope.arguments import real, whole
from kappascope.names import Path
from kappascope.programs import program as find_program
from kappascope.rows import append_row, cut_rows
from kappascope.run import Run

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

    def table(step: int, values: Row) -> None:
        cut_rows(path, step - 1)  # of a run that was stopped later
        append_row(path, {"step": step} | values)

    return table


class Monitor(Run):
    """A Run that analyzes its checkpoints in the background and logs the statistics:

        monitor = Monitor("mystudy", env="walker-run", name="mine", seed=0, every=25_000, save=save)
        monitor(step)        # in the loop
        monitor.close()

    log      where kappascope/NAME goes: a path of a CSV file, an object with add_scalar
             (TensorBoard's SummaryWriter), an object with log (a run of wandb), "tensorboard" (a
             writer in the run's folder), "wandb" (its current run), or a list; by default curves.csv
             in the run's folder. A run that starts again at an earlier step replaces rows of tables
    options  further options of `kappascope analyze`
    program  the program, if it is not where `kappascope.program` looks for it
    threads  that the analysis may use
    wait     seconds for which close, or the end of the program, waits for the last analysis before
             it is stopped
    other arguments  those of Run

    While an analysis runs, the next checkpoints are saved and not analyzed. Their spectra are in the
    folder `monitor` of the run's folder. A call only looks whether an analysis has ended, unless it
    saves. If the program is killed, an analysis that runs ends by itself."""

    def __init__(
        self,
        study: Path,
        *,
        log: Any = None,
        options: Iterable[str] = (),
        program: str | None = None,
        threads: int = 1,
        wait: float = 600,
        **run: Any,
    ) -> None:
        words = None if isinstance(options, str) else list(options)
        if words is None or not all(isinstance(word, str) for word in words):
            raise TypeError(f"Monitor: options: expected a list of strings, found {options!r}")
        if real(wait) is None:
            raise TypeError(f"Monitor: wait: expected seconds, found {wait!r}")
        self._process: subprocess.Popen[bytes] | None = None
        self.skipped, self.wait, self._program, self._options = 0, wait, program, words
        self._environment = os.environ | {"OMP_NUM_THREADS": str(whole("Monitor: threads", threads, 1))}
        super().__init__(study, **run)
        log = os.path.join(self.folder, "curves.csv") if log is None else log
        logs = log if isinstance(log, (list, tuple)) else [log]
        self._logs = [_logger(one, self.folder) for one in logs]
        atexit.register(self.close)

    def __call__(self, step: int, now: bool = False) -> bool:
        """Looks for the end of an analysis; saves if it is time. Returns whether it saved."""
        try:
            if os.getpid() == self._owner and self._process and self._process.poll() is not None:
                self._finish()
        except Exception as error:  # the training goes on, whatever happens here
            self._lines.report(self._analyzed, error, "the statistics of this step are not logged")
        return super().__call__(step, now)

    def _saved(self, path: str, step: int) -> None:
        if self._process:
            self.skipped += 1
            return
        try:
            self._start(path, step)
        except Exception as error:
            self._lines.report(step, error, "this checkpoint is not analyzed")

    def _start(self, path: str, step: int) -> None:
        folder = os.path.join(self.folder, "monitor")
        os.makedirs(folder, exist_ok=True)
        nice = shutil.which("nice")
        command = [*([nice, "-n", "19"] if nice else []), self._program or find_program(), "analyze"]
        command += ["--json", "--quiet", f"--out={folder}", *self._options, path]
        self._analyzed = step
        with contextlib.ExitStack() as files:
            self._out, self._err = [files.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
            # In a session of its own: Ctrl-C at the terminal ends the training, which then ends the
            # analysis.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                env=self._environment,
                start_new_session=True,
            )
            self._files = files.pop_all()

    def _finish(self) -> None:
        """Logs the statistics of the analysis that has ended."""
        values, failed = self._read(), []
        for log in self._logs:
            try:
                log(self._analyzed, values)
            except Exception as error:  # the other logs get their values
                failed.append(error)
        if failed:
            raise failed[0]

    def _read(self) -> Row:
        """The numbers that the analyzer printed."""
        process, self._process = self._process, None
        with self._files:
            self._out.seek(0)
            self._err.seek(0)
            lines, said = (
                self._out.read().splitlines(),
                self._err.read().decode(errors="replace").splitlines(),
            )
        status = process.returncode if process else None
        if status != 0 or not lines:
            message = [line.strip() for line in said if line.strip()] or ["no statistics and no message"]
            raise RuntimeError(f"kappascope analyze: exit status {status}: {message[-1]}")
        return {
            key: value
            for key, value in json.loads(lines[0]).items()
            if value is None or isinstance(value, (int, float)) and not isinstance(value, bool)
        }

    def close(self, wait: float | None = None) -> None:
        """Waits for the last analysis, at most `wait` seconds, and logs it; a longer one is
        stopped. May be called twice."""
        atexit.unregister(self.close)
        if os.getpid() != self._owner:
            return
        try:
            self._end(self.wait if wait is None else wait)
        finally:
            super().close()

    def _end(self, wait: float) -> None:
        if not self._process:
            return
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(min(wait, 2))
            if self._process.returncode is None and wait > 2:
                text = f"kappascope: waiting for the analysis of step {self._analyzed}, at most {wait:g} s"
                print(text, file=sys.stderr, flush=True)
            self._process.wait(max(wait - 2, 0))
            self._finish()
        except subprocess.TimeoutExpired:
            self._stop()
            error = RuntimeError("the analysis was stopped at the end of the program")
            self._lines.report(self._analyzed, error, "give Monitor a longer `wait`")
        except KeyboardInterrupt:
            self._stop()
            raise
        except Exception as error:
            self._lines.report(self._analyzed, error, "the statistics of this step are not logged")

    def _stop(self) -> None:
        """Ends the analysis and what it started: they are a group of processes of their own."""
        process, self._process = self._process, None
        if not process:
            return
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5 if sign == signal.SIGTERM else None)
                break
        self._files.close()
