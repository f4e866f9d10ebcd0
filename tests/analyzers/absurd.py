"""Traces that no engine would write, for hypothesis: any table, any column null, any number."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import strategies as st

from stepscope.ingest.columns import Column, Type
from stepscope.ingest.frames import polars_schema
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace

TABLES = tuple(name for name in BY_NAME if name not in {"spans", "flows"})  # no rule reads these
Rows = dict[str, list[dict[str, Any]]]

_small = st.integers(-3, 40)
_huge = st.sampled_from([-(2**63), 2**63 - 1, 2**62, 1_763_000_000_000_000_000])
_names = st.sampled_from(["r1", "r2", "r10", "", "\x1b[31m", "len=7 text", "9" * 30])


def _often(usual: st.SearchStrategy[Any], odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(usual, usual, usual, usual, usual, odd)


def _values(column: Column) -> st.SearchStrategy[Any]:
    match column.type:
        case Type.I64:
            return _often(_small, _huge)
        case Type.I32:
            return _often(st.integers(0, 2), st.sampled_from([-(2**31), 2**31 - 1]))
        case Type.BOOL:
            return st.booleans()
        case Type.F64:
            return st.floats()
        case Type.STR:
            return st.sampled_from(column.values) if column.values else _names


def _rows(table: str, kept: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of which every column outside `kept` may be null."""
    columns = {
        column.name: _values(column) if column.name in kept else _often(_values(column), st.none())
        for column in BY_NAME[table].columns
    }
    columns["rank"] = st.integers(0, 1)
    return st.lists(st.fixed_dictionaries(columns), max_size=12)


absurd_rows: st.SearchStrategy[Rows] = st.fixed_dictionaries(
    {table: _rows(table, ()) | _rows(table, BY_NAME[table].required) for table in TABLES}
)


def trace_from(rows: Rows) -> Trace:
    """A trace of those rows; with nulls even where the schema wants a value."""
    frames = {
        table: pl.DataFrame(listed, schema=polars_schema(BY_NAME[table]))
        for table, listed in rows.items()
    }
    ranks = {row["rank"] for listed in rows.values() for row in listed}
    states = dict.fromkeys(rows, "partial")
    manifest = Manifest("absurd", tables=states, ranks=tuple(sorted(ranks)) or (0,))
    return Trace.from_tables(frames, manifest)


@st.composite
def _spans(draw: st.DrawFn) -> dict[str, Any]:
    core, began = draw(st.integers(0, 5)), draw(st.integers(10, 40))
    dispatched = began - draw(st.integers(0, 10))
    return {
        "rank": draw(st.integers(0, 1)),
        "step": began // 10,
        "task": draw(st.integers(0, 3)),
        "block": draw(st.integers(0, 1)),
        "shape": draw(st.sampled_from(["AIC", "AIV", "MIX", "MIX"])),
        "group": core // 3,
        "core": core,
        "core_kind": ("AIC", "AIV0", "AIV1")[core % 3],
        "slot": draw(st.sampled_from(["running", "pending", None])),
        "ready_ns": dispatched - draw(st.integers(0, 20)),
        "dispatch_ns": dispatched,
        "ts_ns": began,
        "end_ns": draw(st.integers(began, 60) | st.none()),
    }


_requests = st.sampled_from(["r1", "r2", "r3", "r10"])
_moments = st.integers(1, 30)


@st.composite
def _event(draw: st.DrawFn) -> dict[str, Any]:
    at = draw(_moments)
    return {
        "rank": 0, "step": at, "ts_ns": at, "request": draw(_requests),
        "event": draw(st.sampled_from(["admit", "preempt", "resume", "finish", "abort", "reject"])),
        "by_request": draw(_requests),
    }  # fmt: skip


@st.composite
def _decision(draw: st.DrawFn) -> dict[str, Any]:
    at = draw(_moments)
    return {
        "rank": 0, "step": at, "ts_ns": at, "subject": draw(_requests),
        "subject_kind": draw(st.sampled_from(["request", "bucket"])),
        "verdict": draw(st.sampled_from(["deferred", "passed-over", "preempted"])),
        "needed": draw(st.integers(0, 3)), "available": draw(st.integers(0, 3)),
        "holder": draw(_requests), "instead": draw(_requests),
    }  # fmt: skip


_arrivals = [
    {"rank": 0, "step": 0, "ts_ns": at, "request": name, "event": "arrive", "deadline_ns": due}
    for name, at, due in (("r1", 0, 9), ("r2", 0, None), ("r3", 1, 20), ("r10", 2, None))
]

# What an engine with every fault at once might write.
faulty_rows: st.SearchStrategy[Rows] = st.fixed_dictionaries(
    {
        "core_spans": st.lists(_spans(), min_size=4, max_size=25),
        "lifecycle": st.lists(_event(), min_size=4, max_size=25).map(lambda rows: _arrivals + rows),
        "decisions": st.lists(_decision(), min_size=4, max_size=25),
    }
)
