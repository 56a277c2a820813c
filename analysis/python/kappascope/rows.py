"""Tables that grow by a row per step: CSV files whose first column is the step."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

from kappascope.checkpoint import write_file


def _rows(path: str) -> tuple[str, list[tuple[int | None, str]]]:
    """The header of a file, and its complete rows with their steps, None of one without; ("", []) without a
    file."""
    if not os.path.exists(path):
        return "", []
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        header, *rows = [line for line in file if line.endswith("\n")] or [""]
    names = header.rstrip("\r\n").split(",")
    column = names.index("env_step") if "env_step" in names else 0

    def step(row: str) -> int | None:
        try:
            return int(float(row.rstrip("\r\n").split(",")[column]))
        except (ValueError, OverflowError, IndexError):
            return None

    return header, [(step(row), row) for row in rows]


def header_of(path: str) -> list[str]:
    """The names of the columns; none without a file."""
    return next(csv.reader([_rows(path)[0]]), [])


def steps_of(path: str) -> list[int]:
    """The steps of the complete rows."""
    return [step for step, _ in _rows(path)[1] if step is not None]


def cut_rows(path: str, last: int, copy: str | None = None) -> None:
    """Removes the rows after step `last`, and an incomplete last line. The file with all its rows is kept
    under the name `copy`, if one is given."""
    if not os.path.exists(path):
        return
    header, rows = _rows(path)
    kept = [header, *(row for step, row in rows if (step or 0) <= last)]
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
    text, header = io.StringIO(), header_of(path)
    size = os.path.getsize(path) if os.path.exists(path) else 0
    writer = csv.DictWriter(text, header or list(row), restval="", extrasaction="ignore", lineterminator="\n")
    if not header:
        writer.writeheader()
    writer.writerow(row)  # None becomes ""
    try:
        with open(path, "a", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
    except OSError as error:
        if os.path.exists(path):
            os.truncate(path, size)
        error.filename = error.filename or path
        raise
