"""What cannot be exported or imported as it is."""

from __future__ import annotations

import difflib
import errno
import os
import sys
from collections.abc import Iterable
from typing import NoReturn


class Refused(ValueError):
    """The critic, its inputs or its loss cannot be exported as they are."""


def fail(message: str, lines: Iterable[str] = ()) -> NoReturn:
    raise Refused("\n  ".join([message, *dict.fromkeys(lines)]))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean X?", or nothing if no known word is similar."""
    near = [*difflib.get_close_matches(word, known, 1), *difflib.get_close_matches(word.lower(), known, 1)]
    return f"; did you mean {near[0]!r}?" if near else ""


class NotPrinted(Exception):
    """Standard output cannot be written."""


def say(text: str) -> None:
    """Prints a line on standard output, whose errors differ from those of other files. Raises NotPrinted."""
    if sys.stdout is None:
        raise NotPrinted(os.strerror(errno.EBADF))
    try:
        print(text, flush=True)
    except OSError as error:
        # What could not be written would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise NotPrinted(error.strerror) from error


def printable(text: str) -> str:
    """The text in one line, with \\xNN for each byte that a terminal could interpret."""

    def escape(c: str) -> str:
        if c >= " " and not "\x7f" <= c <= "\x9f" and not "\ud800" <= c <= "\udfff":
            return c
        how = "surrogateescape" if "\udc80" <= c <= "\udcff" else "surrogatepass"
        return "".join(f"\\x{byte:02x}" for byte in c.encode("utf-8", how))

    return "".join(map(escape, text))


def first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
