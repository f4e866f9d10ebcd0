"""Whatever else is asked, as a query over the trace's tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import msgspec

from stepscope.app.mcp.answering.uncut import Answer, FrameRows, NotRecorded
from stepscope.app.mcp.tools.tool import Arguments, Tool, TraceName

if TYPE_CHECKING:
    import polars as pl

    from stepscope.app.mcp.desk.held_traces import HeldTrace, HeldTraces

SECONDS = 20.0
MOST_ROWS = 10_000


class Query(Arguments, frozen=True):
    """A query."""

    trace: TraceName
    query: Annotated[
        str,
        msgspec.Meta(
            description="One SELECT over the tables that `open` lists and `explain` describes, and "
            "over `findings`. Times are nanoseconds on the trace's clock.",
            min_length=1,
            max_length=20_000,
        ),
    ]


def _answer(held: HeldTraces, asked: Query) -> Answer:
    opened = held.trace(asked.trace)
    frame = _rows(opened, asked.query)
    is_cut = len(frame) > MOST_ROWS
    left_out = (
        f"rows behind the first {MOST_ROWS:,}: ask for fewer, with where, group by or limit",
    )
    return Answer(
        {"trace": opened.name, "columns": frame.columns},
        FrameRows(frame.head(MOST_ROWS), as_lists=True),
        "rows of the answer, a value for each column",
        tuple(_lacking(opened, asked.query)),
        left_out=left_out if is_cut else (),
    )


def _rows(opened: HeldTrace, query: str) -> pl.DataFrame:
    """The rows, which are asked for once: without an order they may come in another one."""
    from stepscope.ingest.query import Bounds

    bounds = Bounds(SECONDS, MOST_ROWS)
    return opened.last(("sql", query), lambda: opened.trace.sql(query, bounds))


def _lacking(opened: HeldTrace, query: str) -> list[NotRecorded]:
    """What the query names of which no row tells: a count or a sum of that is 0, and says nothing.

    A column that several tables have is looked at in those that the query names.
    """
    from stepscope.app.mcp.desk.recorded_by import lacks, lacks_table
    from stepscope.ingest.query import names_table
    from stepscope.ingest.schema import TABLES

    named = [table.name for table in TABLES if names_table(query, table.name)]
    empty = [lacks_table(name) for name in named if name not in opened.tables]
    words = set(re.findall(r"\w+", query))
    unknown = [
        lacks(f"the column {table}.{column}, which no row tells", table)
        for table, column in sorted(opened.unknown_columns)
        if table in named and column in words
    ]
    return [*empty, *unknown]


SQL = Tool(
    "sql",
    "Query with SQL",
    "Run one SQL query over the tables of a trace: it only reads, sees nothing but this trace, "
    f"and is given up after {SECONDS:g} seconds. A sum or count over what is not recorded is 0 and "
    "says nothing: the answer names such tables and columns.",
    Query,
    _answer,
)
