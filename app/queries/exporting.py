"""An answer as a file: CSV for a spreadsheet, Parquet or JSON for a program."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import polars as pl

from stepscope.app.present.spans.area_table import STARTS_FORMULA
from stepscope.app.printable import plain
from stepscope.app.units import count
from stepscope.ingest.errors import QueryError

LARGEST = 64 << 20
"""Bytes of an answer that a screen writes to a file."""
TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "json": "application/json"}


def too_large(frame: pl.DataFrame) -> str:
    """Why an answer is not written from a screen; empty where it is."""
    if frame.estimated_size() <= LARGEST:
        return ""
    return f"it has more than {count(LARGEST >> 20)} MB: `stepscope sql --format csv` writes it"


def written(frame: pl.DataFrame, form: str) -> bytes:
    """The rows of an answer in one of TYPES; raises QueryError where it cannot be written so.

    Texts are as recorded, but in CSV: there control characters are replaced, and one that a
    spreadsheet would take for a formula has an apostrophe before it.
    """
    if told := too_large(frame):
        raise QueryError(told)
    try:
        return _WRITERS[form](frame)
    except pl.exceptions.PolarsError as error:
        told = str(error).strip().splitlines()[0]
        raise QueryError(f"it cannot be written as {form}: {told}") from None


def _csv(frame: pl.DataFrame) -> bytes:
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(_safe(name) for name in frame.columns)
    writer.writerows(map(_safe, row) for row in frame.iter_rows())
    return made.getvalue().encode("utf-8", "replace")


def _safe(value: object) -> object:
    if value is None or isinstance(value, int | float):
        return value
    text = plain(str(value))
    return f"'{text}" if text.startswith(STARTS_FORMULA) else text


def _parquet(frame: pl.DataFrame) -> bytes:
    made = io.BytesIO()
    frame.write_parquet(made)
    return made.getvalue()


def _json(frame: pl.DataFrame) -> bytes:
    return frame.write_json().encode("utf-8", "replace")


_WRITERS: dict[str, Callable[[pl.DataFrame], bytes]] = {
    "csv": _csv, "parquet": _parquet, "json": _json,
}  # fmt: skip


def answer_file(trace_name: str, form: str, *, is_cut: bool) -> str:
    """What a file of an answer is called; one that lacks rows says so."""
    stem = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in trace_name)
    return f"{stem.strip('-')[:80] or 'trace'}-query{'-cut' if is_cut else ''}.{form}"
