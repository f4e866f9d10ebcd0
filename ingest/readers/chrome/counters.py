"""Counters of a Chrome JSON file: one event may sample several numbers."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import msgspec
import polars as pl

from stepscope.ingest.readers.written_numbers import exact

ONLY = ("value", "")
_WITH_UNIT = re.compile(r"value \[(.*)\]", re.DOTALL)
_decoder = msgspec.json.Decoder()


def counter_rows(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One row per number sampled, and the events without any (event, lost).

    The series of an event's name and id are told apart by their key, `name key`, unless the key
    says no more than "value".
    """
    rows = []
    numberless = []
    columns = events.select("event", "ts_ns", "pid", "process", "name", "id", "args").iter_rows()
    for event, ts_ns, pid, process, name, id_, args in columns:
        title = " ".join(part for part in (name, id_) if part)
        numbers = _numbers(args)
        rows += [
            (ts_ns, process if pid else None, *_named(title, key), value) for key, value in numbers
        ]
        if not numbers:
            numberless.append(event)
    texts = dict.fromkeys(("track", "name", "unit"), pl.String)
    schema = {"ts_ns": pl.Int64, **texts, "value": pl.Float64}
    lost = pl.DataFrame({"event": numberless}, schema={"event": events.schema["event"]})
    return (
        pl.DataFrame(rows, schema=schema, orient="row"),
        lost.with_columns(pl.lit("counter without a number").alias("lost")),
    )


def _numbers(args: str | None) -> list[tuple[str, float]]:
    fields = _decoded(args or "{}")
    if not isinstance(fields, dict):
        return []
    found = ((key, _number(value)) for key, value in fields.items())
    return [(key, value) for key, value in found if value is not None]


def _decoded(args: str) -> Any:
    try:
        return _decoder.decode(args)
    except RecursionError:
        return None
    except msgspec.DecodeError:  # also where one of many numbers is too large for any of ours
        return _decoded_loosely(args)


def _decoded_loosely(args: str) -> Any:
    try:
        return json.loads(args)
    except (ValueError, RecursionError):
        return None


def _number(value: object) -> float | None:
    if isinstance(value, str):
        value = exact(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _named(title: str, key: str) -> tuple[str, str | None]:
    """Name and unit of a series."""
    if match := _WITH_UNIT.fullmatch(key):
        return title, match.group(1)
    return (f"{title} {key}".strip() if key not in ONLY else title), None
