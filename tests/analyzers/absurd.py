"""Traces that no engine would write, for hypothesis: any table, any column null, any number."""

from __future__ import annotations

import math
from random import Random
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

MOST_ROWS = 12
_HUGE = (-(2**63), 2**63 - 1, 2**62, 1_763_000_000_000_000_000)
_NAMES = ("r1", "r2", "r10", "", "\x1b[31m", "len=7 text", "9" * 30)
_FLOATS = (0.0, -0.0, 1.5, -1e308, 5e-324, math.inf, -math.inf, math.nan)


def _value(column: Column, dice: Random) -> Any:
    match column.type:
        case Type.I64:
            return dice.choice(_HUGE) if _rarely(dice) else dice.randint(-3, 40)
        case Type.I32:
            return dice.choice((-(2**31), 2**31 - 1)) if _rarely(dice) else dice.randint(0, 2)
        case Type.BOOL:
            return dice.random() < 0.5
        case Type.F64:
            return dice.choice(_FLOATS) if _rarely(dice) else dice.uniform(-3, 40)
        case Type.STR:
            return dice.choice(column.values or _NAMES)


def _rarely(dice: Random) -> bool:
    return dice.random() < 1 / 6


def _row(table: str, dice: Random, kept: tuple[str, ...]) -> dict[str, Any]:
    """A row of which every column outside `kept` may be null."""
    row = {
        column.name: None if column.name not in kept and _rarely(dice) else _value(column, dice)
        for column in BY_NAME[table].columns
    }
    return row | {"rank": dice.randint(0, 1)}


def _absurd(seed: int, num_rows: dict[str, int]) -> Rows:
    """So many rows of each table; fewer are the first of more, so that hypothesis can shrink."""
    rows: Rows = {}
    for table, number in num_rows.items():
        dice = Random(f"{seed} {table}")  # one for each table, whatever the others have
        kept = BY_NAME[table].required if dice.random() < 0.5 else ()
        rows[table] = [_row(table, dice, kept) for _ in range(number)]
    return rows


# Hypothesis draws how much there is, and dice what it is: cell by cell it takes seconds for each.
absurd_rows: st.SearchStrategy[Rows] = st.builds(
    _absurd,
    st.integers(0, 2**32),
    st.fixed_dictionaries({table: st.integers(0, MOST_ROWS) for table in TABLES}),
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
