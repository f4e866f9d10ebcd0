"""All that was recorded about one request, in true order: its events, decisions and batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.ingest.trace import Trace

EVENT, DECISION, BATCH = "event", "decision", "batch"
AT_ONCE = {
    "receive": 0, "arrive": 1, "ready": 2, DECISION: 3, "admit": 4, "resume": 4, BATCH: 5,
    "first-token": 6, "preempt": 7, "defer": 7, "finish": 8, "reject": 8, "abort": 8, "error": 8,
    "deliver": 9,
}  # fmt: skip
"""Of rows of one moment of which no order was recorded, which goes first."""
SAME = {
    DECISION: ("verdict", "resource", "reason", "holder"),
    BATCH: ("phase", "is_recompute"),
}
"""Rows that follow each other and have these columns alike are told as one."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that was recorded of a request, or several rows of it that say the same.

    `row` is the first of them as recorded, `last` the last; `num_tokens` adds up those of batches.
    """

    kind: str
    row: Mapping[str, Any]
    last: Mapping[str, Any]
    num: int = 1
    num_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Life:
    """A request's moments, and in how many steps how many of its tokens were computed again.

    `is_counted` says whether their order is that in which the engine counted its changes (`seq`),
    and not one by times alone.
    """

    moments: tuple[Moment, ...]
    is_counted: bool
    num_again: int
    tokens_again: int

    def holders(self) -> tuple[str, ...]:
        """The requests that held what it waited for, or went first, each once, in order."""
        named = (m.row["holder"] for m in self.moments if m.kind == DECISION)
        preempting = (m.row["by_request"] for m in self.moments if m.kind == EVENT)
        return tuple(dict.fromkeys(name for name in (*named, *preempting) if name))


def request_life(trace: Trace, rank: int, request: str) -> Life:
    """What was recorded of a request of a rank; nothing of one that the trace does not have."""
    own = pl.col("rank") == rank
    is_it = own & (pl.col("request") == request)
    about = own & (pl.col("subject_kind") == "request") & (pl.col("subject") == request)
    tables = {
        EVENT: trace.lifecycle.filter(is_it),
        DECISION: trace.decisions.filter(about),
        BATCH: trace.batch_rows.filter(is_it),
    }
    found = pl.collect_all(list(tables.values()))
    rows = [
        (kind, row)
        for kind, frame in zip(tables, found, strict=True)
        for row in frame.to_dicts()
        if row["ts_ns"] is not None
    ]
    is_counted = bool(rows) and all(row["seq"] is not None for _, row in rows)
    rows.sort(key=_by_seq if is_counted else _by_time)
    again = [row for kind, row in rows if kind == BATCH and row["is_recompute"]]
    return Life(
        _joined(rows),
        is_counted,
        len({row["step"] for row in again}),
        sum(row["num_tokens"] or 0 for row in again),
    )


def _by_seq(of: tuple[str, Mapping[str, Any]]) -> tuple[int, ...]:
    return (of[1]["seq"], *_by_time(of))


def _by_time(of: tuple[str, Mapping[str, Any]]) -> tuple[int, ...]:
    kind, row = of
    at_once = AT_ONCE.get(row["event"] or "" if kind == EVENT else kind, len(AT_ONCE))
    return row["ts_ns"], at_once


def _joined(rows: list[tuple[str, dict[str, Any]]]) -> tuple[Moment, ...]:
    moments: list[Moment] = []
    for kind, row in rows:
        tokens = (row["num_tokens"] or 0) if kind == BATCH else 0
        before = moments[-1] if moments else None
        if before and before.kind == kind and kind in SAME and _is_same(kind, before.last, row):
            moments[-1] = Moment(kind, before.row, row, before.num + 1, before.num_tokens + tokens)
        else:
            moments.append(Moment(kind, row, row, 1, tokens))
    return tuple(moments)


def _is_same(kind: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[name] == other[name] for name in SAME[kind])
