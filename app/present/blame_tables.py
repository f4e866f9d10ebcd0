"""Blame in words and tables: who it was, what took how much of all or of one, its longest waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.analyzers.latency.blame import QUANTILES
from stepscope.analyzers.latency.causes import CAUSES
from stepscope.app.present.blame_bars import LOOKS
from stepscope.app.present.blocks import Swatch, Table
from stepscope.app.units import stated
from stepscope.app.widths import fit

if TYPE_CHECKING:
    from stepscope.analyzers.latency.blame import Blame

WIDEST_NAME = 16
BRIEF = ("", "cause", "total", "share")


def first_token(row: Mapping[str, Any]) -> str:
    """When a row of `Blame.requests` has its first token: the client's, and the engine's."""
    client, engine = (
        None if row[name] is None else row[name] - row["arrive_ns"]
        for name in ("first_token_ns", "engine_first_token_ns")
    )
    if client is None:
        return "no first token"
    if engine is None or engine == client:
        return f"first token after {stated(client)}"
    return f"first token at the client after {stated(client)}, in the engine {stated(engine)}"


def totals_table(blamed: Blame, *, is_brief: bool = False) -> Table:
    """What each cause took of all requests; brief, without how that is spread over them."""
    columns = (*BRIEF, *QUANTILES, "of")
    totals = list(blamed.totals())
    rows = [
        (
            swatch_of(total.cause.group), total.cause.name, stated(total.total_ns),
            f"{total.share:.1%}", *map(stated, total.each_ns.values()), total.num_requests,
        )
        for total in totals
    ]  # fmt: skip
    shown = BRIEF if is_brief else columns
    return Table(
        shown, tuple(row[: len(shown)] for row in rows), to_right=columns[2:],
        notes=tuple(total.cause.meaning for total in totals),
    )  # fmt: skip


def request_table(
    row: Mapping[str, Any], before: Mapping[str, Any] | None = None, *, has_meanings: bool = False
) -> Table:
    """What a row of `Blame.requests` went to; `before` is its row until the first token.

    A run that names no requests has no first token, and its row no `before`.
    """
    whole = max(row["latency_ns"], 1)
    causes = [cause for cause in CAUSES if row[cause.column]]
    rows: list[tuple[object, ...]] = [
        (swatch_of(cause.group), cause.name, stated(row[cause.column]),
         f"{row[cause.column] / whole:.1%}")
        for cause in causes
    ]  # fmt: skip
    columns: tuple[str, ...] = ("", "cause", "took", "share")
    if before is not None and row["request"] is not None:
        columns = (*columns, "to 1st token", "after")
        rows = [
            (
                *cells,
                stated(first := before[cause.column]),
                stated(row[cause.column] - first),
            )
            for cells, cause in zip(rows, causes, strict=True)
        ]
    to_right, notes = columns[2:], tuple(cause.meaning for cause in causes)
    if has_meanings:
        columns = (*columns, " ")
        rows = [(*cells, note) for cells, note in zip(rows, notes, strict=True)]
    return Table(columns, tuple(rows), to_right=to_right, notes=notes)


def waits_table(waits: pl.DataFrame, reasons: Sequence[str], most: int, arrive_ns: int) -> Table:
    """The longest of a request's `waits`, in order of time, each with the reason recorded.

    Where none of them has a reason, there is no column for it.
    """
    longest = waits.with_columns(reason=pl.Series(reasons, dtype=pl.String)).top_k(most, by="ns")
    rows: tuple[tuple[str, ...], ...] = tuple(
        (
            stated(each["from_ns"] - arrive_ns),
            stated(each["ns"]),
            each["cause"],
            each["reason"],
        )
        for each in longest.sort("from_ns", "cause").iter_rows(named=True)
    )
    title = f"longest waits{f', of {len(waits):,}' if len(waits) > most else ''}"
    columns: tuple[str, ...] = ("after", "for", "cause", "because")
    if not any(longest["reason"]):
        columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
    return Table(columns, rows, title, to_right=("after", "for"))


def swatch_of(group: str) -> Swatch:
    """What stands for a group of causes."""
    look = LOOKS[group]
    return Swatch(look.glyph, look.colour, look.cue)


def row_name(row: Mapping[str, Any], widest: int | None = None) -> str:
    """What a row of `Blame.requests` is called, with its rank where that is not 0.

    Cut to `widest` cells of a terminal, if that is given; else as recorded, for a front to escape.
    """
    name = "whole run" if row["request"] is None else row["request"]
    full = f"{row['rank']}:{name}" if row["rank"] else name
    return full if widest is None else fit(full, widest)


def outcome(row: Mapping[str, Any]) -> str:
    """How a request ended; of a run that names none, whose run it is."""
    if row["request"] is None:
        return f"all of rank {row['rank']}"
    return row["outcome"] or "still there when the trace ended"
