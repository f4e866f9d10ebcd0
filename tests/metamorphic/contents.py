"""What a trace holds, in a form in which only what must differ differs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl
import polars.selectors as cs

from stepscope.analyzers.check.run import check
from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.ingest.manifest import ReadReport
from stepscope.ingest.trace import Trace

Rows = Counter[tuple[Any, ...]]
WHEN = ("arrive_ns", "first_token_ns", "engine_first_token_ns", "ended_ns", "from_ns", "to_ns")


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


@dataclass(frozen=True, slots=True)
class _Said:
    findings: dict[str, Any]
    blame: Blame


_SAID: dict[str, _Said] = {}


def _said(trace: Trace) -> _Said:
    """What rules and `blame` say, once for each that is the same row for row, whoever wrote it."""
    frames = {name: trace.table(name).collect() for name in sorted(trace.manifest.tables)}
    hashed = [f"{name} {frame.hash_rows().to_list()}" for name, frame in frames.items()]
    key = f"{hashed} {trace.manifest}"
    if key not in _SAID:
        findings = {**check(trace).as_dict(), "trace": ""}
        _SAID[key] = _Said(findings, blame(trace))
    return _SAID[key]


def findings_of(trace: Trace) -> dict[str, Any]:
    """What `check` says, but for the name of the file."""
    return _said(trace).findings


def blamed(trace: Trace, later_ns: int = 0) -> dict[str, Rows]:
    """What `blame` says to the nanosecond, and when, so much later."""
    found = _said(trace).blame
    when = cs.by_name(*WHEN, require_all=False) + later_ns
    frames = {
        "requests": found.requests,
        "to first token": found.to_first_token,
        "intervals": found.intervals,
    }
    return {name: Counter(frame.with_columns(when).rows()) for name, frame in frames.items()}


def blamed_sums(trace: Trace, *ranks: int) -> Rows:
    """What each cause took of each request, or rank, whenever that was; of some ranks or all."""
    found = _said(trace).blame.requests
    kept = found.filter(pl.col("rank").is_in(ranks)) if ranks else found
    return Counter(kept.drop(WHEN, strict=False).rows())


@dataclass(frozen=True, slots=True)
class Told:
    """What is read and said of a trace as it is: tables, counts, findings, blame."""

    tables: dict[str, Rows]
    counts: tuple[dict[str, int], ...]
    findings: dict[str, Any]
    blamed: dict[str, Rows]
    sums: Rows


def told_of(trace: Trace) -> Told:
    """All that is compared."""
    said = (contents_of(trace), counts_of(trace), findings_of(trace))
    return Told(*said, blamed(trace), blamed_sums(trace))


@cache
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
