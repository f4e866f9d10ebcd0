"""What a trace tells at all: a column that is null in every row was not recorded.

A rule that reads such a column finds nothing in it, which is not the same as *clean*.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import polars as pl

from stepscope.ingest.trace import Trace

CLOCK = "clock"
"""The need of a rule that compares durations or rates: with clock `none`, times are an order."""

# Most columns that have a value have one here, and are not looked at any further.
NUM_FIRST = 1_000

_told: WeakKeyDictionary[Trace, dict[str, frozenset[str]]] = WeakKeyDictionary()


def knows(trace: Trace, *needs: str) -> bool:
    """Tell whether the trace has all of these: a table, a value in a `table.column`, or CLOCK."""
    return all(_knows(trace, *need.split(".")) for need in needs)


def any_row(rows: pl.LazyFrame) -> bool:
    """Tell whether there is a row."""
    return not rows.head(1).collect().is_empty()


def _knows(trace: Trace, table: str, column: str | None = None) -> bool:
    if table == CLOCK:
        return trace.manifest.clock.has_times
    return trace.has(table) and (column is None or column in _with_values(trace, table))


def _with_values(trace: Trace, table: str) -> frozenset[str]:
    """The columns of a table that have a value in any row; looked for once."""
    of_trace = _told.setdefault(trace, {})
    if table not in of_trace:
        rows = trace.table(table)
        known = _of(rows.head(NUM_FIRST), rows.collect_schema().names())
        silent = [name for name in rows.collect_schema().names() if name not in known]
        more = _of(rows, silent) if trace.num_rows(table) > NUM_FIRST else set()
        of_trace[table] = frozenset(known | more)
    return of_trace[table]


def _of(rows: pl.LazyFrame, columns: list[str]) -> set[str]:
    found = rows.select(pl.col(columns).is_not_null().any()).collect()
    return {name for name in columns if found[name].item()}
