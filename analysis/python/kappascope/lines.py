"""What a run has to say: lines on standard error, which never end the training."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import sysconfig
import traceback
from typing import Any

from kappascope.refusal import Refused, printable


def in_one_line(error: BaseException) -> str:
    """What went wrong, in one line: of several refusals the first."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return where + error.strerror
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[:2]) + (f" (and {len(lines) - 2} more)" if len(lines) > 2 else "")
    plain = isinstance(error, Refused) or type(error) in (RuntimeError, TypeError, ValueError)
    return said if plain and said else f"{type(error).__name__}: {said}".rstrip(": ")


def line_of(error: BaseException) -> str:
    """ "FILE:LINE: SOURCE: " of the innermost line of the caller's own code that the error came through."""
    libraries = os.path.dirname(__file__) + os.sep, sysconfig.get_path("stdlib") + os.sep
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        installed = re.search(r"[/\\](site|dist)-packages[/\\]", frame.filename)
        if frame.line and not installed and not frame.filename.startswith(libraries):
            return f"{os.path.basename(frame.filename)}:{frame.lineno}: {frame.line[:100]}: "
    return ""


def _print(text: str) -> None:
    with contextlib.suppress(Exception):  # standard error may be closed
        print(f"kappascope: {printable(text)}", file=sys.stderr, flush=True)


class Lines:
    """The lines about a run in `folder`. at_end: what is said when the run ends, unless it is empty."""

    def __init__(self, folder: str) -> None:
        self.folder, self.at_end = folder, ""
        self._owner, self._said = os.getpid(), set[str]()

    def say(self, step: Any, message: str) -> None:
        """Prints a line, once for all steps."""
        kind = re.sub(r"\d+", "", message)
        if kind in self._said:
            return
        self._said.add(kind)
        with contextlib.suppress(Exception):  # of a step that is no number
            where = "" if step is None else f"step {str(step)[:40]}: "
            _print(f"{where}{message} (the training goes on; this is said once)")

    def report(self, step: Any, error: Exception, so: str) -> None:
        self.say(step, f"{self.folder}: {in_one_line(error)}: {so}")

    def end(self) -> None:
        """Says `at_end`, once; not in a process that was forked."""
        if self.at_end and os.getpid() == self._owner:
            _print(f"{self.folder}: {self.at_end}")
        self.at_end = ""
