"""What a trace holds, in a form in which only what must differ differs."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import polars as pl

from stepscope.analyzers.run import check
from stepscope.ingest.manifest import ReadReport
from stepscope.ingest.trace import Trace

Rows = Counter[tuple[Any, ...]]


def rows_of(trace: Trace, table: str, *without: str) -> Rows:
    """The rows of a table as a multiset; JSON in them without regard to spaces and order."""
    frame = trace.table(table).drop(without).collect()
    if "parent" in frame.columns:
        frame = _around(frame)
    columns = [
        [_plain(text) for text in frame[name]] if name == "args" else frame[name].to_list()
        for name in sorted(frame.columns)
    ]
    return Counter(zip(*columns, strict=True))


def _around(spans: pl.DataFrame) -> pl.DataFrame:
    """Spans that say which slice is around them by its name and times, whatever its number."""
    around = spans.select("rank", "span", pl.struct("name", "ts_ns", "dur_ns").alias("around"))
    found = spans.join(
        around, left_on=["rank", "parent"], right_on=["rank", "span"], how="left"
    ).with_columns(
        pl.col("around")
        .cast(pl.Struct({"name": pl.String, "ts_ns": pl.Int64, "dur_ns": pl.Int64}))
        .struct.json_encode()
    )
    return found.drop("parent", "span")


def contents_of(trace: Trace, *without: str) -> dict[str, Rows]:
    """All tables; columns named in `without` are left out of those that have them."""
    return {
        table: rows_of(
            trace, table, *(set(without) & set(trace.table(table).collect_schema().names()))
        )
        for table in sorted(trace.manifest.tables)
    }


def report_of(trace: Trace) -> ReadReport:
    """What the reader counted."""
    assert trace.manifest.report is not None
    return trace.manifest.report


def counts_of(trace: Trace) -> tuple[dict[str, int], ...]:
    """What was read, skipped, repaired and inferred, by number."""
    report = report_of(trace)
    return (report.read, report.skipped, report.repaired, report.inferred)


def findings_of(trace: Trace) -> dict[str, Any]:
    """What `check` says, but for the name of the file."""
    return {**check(trace).as_dict(), "trace": ""}


def _plain(text: str | None) -> str | None:
    return None if text is None else json.dumps(_numbers(json.loads(text)), sort_keys=True)


def _numbers(value: Any) -> Any:
    """A value in which 5, 5.0 and "5" are the same."""
    if isinstance(value, dict):
        return {key: _numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return float(value) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and value is not None and float(value) == float(value)
    except ValueError:
        return False
