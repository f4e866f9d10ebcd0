"""Blame in the terminal: a row with a bar for each request, and one request in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from stepscope.analyzers.latency.blame import Blame
from stepscope.app.present.blame_bars import LOOKS, Bars
from stepscope.app.present.blame_reasons import reasons, waits_of
from stepscope.app.present.blame_tables import (
    first_token,
    outcome,
    request_table,
    row_name,
    totals_table,
)  # fmt: skip
from stepscope.app.present.blocks import Fact, Heading, Paragraph, Title, Tone
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import BACKGROUND, MUTED, PANEL, ink, readable_on
from stepscope.app.tui.widgets.prose import Flow, Shown
from stepscope.app.tui.widgets.table import Cell, Column
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.units import count, stated
from stepscope.ingest.trace import Trace

MOST_WAITS = 8
CAUSE_WIDTH, TIME_WIDTH, SHARE_WIDTH = 16, 10, 7


@dataclass(frozen=True, slots=True)
class Order:
    """A way to sort the requests: what it is called, and by which expression, largest first."""

    name: str
    by: pl.Expr
    descending: bool = True


ORDERS = (
    Order("latency", pl.col("latency_ns")),
    Order("arrival", pl.col("arrive_ns"), descending=False),
    Order("time to first token", pl.col("first_token_ns") - pl.col("arrive_ns")),
)


class BlameRows:
    """The requests in an order, each with its bar on one scale of time."""

    columns: tuple[Column, ...] = (
        Column("request", 14),
        Column("latency", TIME_WIDTH, to_right=True),
        Column("1st token", TIME_WIDTH, to_right=True, from_width=70),
        Column("first arrival to last end"),
    )

    def __init__(self, blamed: Blame, bars: Bars, order: Order) -> None:
        told = blamed.requests.sort(
            order.by, descending=order.descending, nulls_last=True, maintain_order=True
        )
        self.nothing = "Nothing to blame; the notes say why."
        self._told = told
        self._bars = bars
        # Of the least of a column polars' stubs say only that it is a value of some type.
        self._first = int(told["arrive_ns"].min() or 0)  # type: ignore[arg-type]  # a time, or None
        self._last = int(told["ended_ns"].max() or 0)  # type: ignore[arg-type]  # a time, or None

    def __len__(self) -> int:
        return len(self._told)

    def row(self, index: int) -> dict[str, Any]:
        """A row of `Blame.requests`."""
        return self._told.row(index, named=True)

    def cells(self, index: int) -> Sequence[Cell]:
        """One request: its name, how long it took in all and to its first token, its bar."""
        row = self.row(index)
        first = row["first_token_ns"]
        return (
            (row_name(row), None),
            (stated(row["latency_ns"]), None),
            (
                "–" if first is None else stated(first - row["arrive_ns"]),
                ink(MUTED, BACKGROUND),
            ),
            partial(self._draw, row),
        )

    def _draw(self, row: Mapping[str, Any], line: Line, start: int, width: int) -> None:
        for each in self._bars.cells(row, self._first, self._last, width):
            look = LOOKS[each.group]
            style = ink(readable_on(look.colour), look.colour)
            line.put(start + each.start, look.glyph * each.length, style)


def total_blocks(blamed: Blame) -> Iterator[Shown]:
    """What each cause took of all rows, where there are several, and what the trace left unsaid."""
    if len(blamed.requests) > 1:
        what = "all requests" if blamed.names_requests else "all ranks"
        yield Heading(what, f"{count(len(blamed.requests))}, {stated(blamed.total_ns)}")
        yield totals_table(blamed, is_brief=True)
    if blamed.notes:
        yield Heading("notes")
    for note in blamed.notes:
        yield Paragraph(note, Tone.MUTED)


def request_blocks(trace: Trace, blamed: Blame, row: Mapping[str, Any]) -> Iterator[Shown]:
    """One request: how long, how it ended, what it went to, and its longest waits with reasons."""
    yield Title(f"{row_name(row)}  {stated(row['latency_ns'])}")
    yield Paragraph(_how_it_ended(row), Tone.MUTED)
    yield Heading("where it went")
    yield request_table(row)
    yield from _waits(trace, blamed, row)


def legend(blamed: Blame, order: Order) -> Flow:
    """How the rows are sorted, and what the bars are made of, as far as it occurs."""
    spent = dict.fromkeys(group for each in blamed.totals() for group in (each.cause.group,))
    looks = [look for group, look in LOOKS.items() if group in spent]
    chips = [
        Piece(f" {look.glyph} {look.name} ", ink(readable_on(look.colour), look.colour))
        for look in looks
    ]
    return Flow((Piece(f"by {order.name}", ink(MUTED, PANEL)), *chips))


def _how_it_ended(row: Mapping[str, Any]) -> str:
    if row["request"] is None:
        return f"{outcome(row)}; the trace names no request"
    if row["first_token_ns"] is None:
        return f"{outcome(row)}, without a token"
    return f"{outcome(row)}; {first_token(row)}"


def _waits(trace: Trace, blamed: Blame, row: Mapping[str, Any]) -> Iterator[Shown]:
    own = blamed.intervals.filter(
        pl.col("request").eq_missing(pl.lit(row["request"], pl.String)),
        pl.col("rank") == row["rank"],
    )
    waits = waits_of(own).top_k(MOST_WAITS, by="ns").sort("from_ns")
    if waits.is_empty():
        return
    since = "arrival" if blamed.names_requests else "the start"
    yield Heading("longest waits", f"after {since}, for how long")
    for wait, reason in zip(waits.iter_rows(named=True), reasons(trace, waits), strict=True):
        after, took = (
            stated(wait["from_ns"] - row["arrive_ns"]),
            stated(wait["ns"]),
        )
        said = f": {reason}" if reason else ""
        yield Fact(f"+{after}", (f"{took} {wait['cause']}{said}",))
