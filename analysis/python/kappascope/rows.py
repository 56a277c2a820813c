"""Tables that grow by a row per step: CSV files whose first column is the step."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

from kappascope.checkpoint import write_file


def _lines(path: str) -> list[str]:
    """The complete lines of a file, header included; none if there is no file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return [line for line in file if line.endswith("\n")]


def _step(line: str, column: int) -> int | None:
    """The step of a row; None if it has none."""
    try:
        return int(float(line.rstrip("\r\n").split(",")[column]))
    except (ValueError, OverflowError, IndexError):
        return None


def _column(header: str) -> int:
    names = header.rstrip("\r\n").split(",")
    return names.index("env_step") if "env_step" in names else 0


def header_of(path: str) -> list[str]:
    """The names of the columns; none without a file."""
    return next(csv.reader(_lines(path)[:1]), [])


def steps_of(path: str) -> list[int]:
    """The steps of the complete rows."""
    lines = _lines(path)
    found = [_step(line, _column(lines[0])) for line in lines[1:]]
    return [step for step in found if step is not None]


def cut_rows(path: str, last: int, copy: str | None = None) -> None:
    """Removes the rows after step `last`, and an incomplete last line. The file with all its rows is kept
    under the name `copy`, if one is given."""
    if not os.path.exists(path):
        return
    lines = _lines(path)
    kept = lines[:1] + [line for line in lines[1:] if (_step(line, _column(lines[0])) or 0) <= last]
    text = "".join(kept).encode("utf-8", "surrogateescape")
    if len(text) == os.path.getsize(path):
        return
    if copy is not None:
        with open(path, "rb") as file:
            write_file(copy, file.read())
    write_file(path, text)


def append_row(path: str, row: dict[str, Any]) -> None:
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
    except OSError as error:
        if os.path.exists(path):
            os.truncate(path, size)
        error.filename = error.filename or path
        raise
