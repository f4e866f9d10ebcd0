"""Blame as text: what took how much of all requests, a waterfall, and one request in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.latency.blame import spread
from stepscope.app.palette import INK, TEXT
from stepscope.app.present.blame_bars import LOOKS, Bars, Piece, by_group
from stepscope.app.present.blame_tables import (
    WIDEST_NAME,
    first_token,
    outcome,
    request_table,
    row_name,
    totals_table,
    waits_table,
)
from stepscope.app.present.plain_text import table_lines
from stepscope.app.printable import plain
from stepscope.app.units import stated
from stepscope.app.widths import padded, width_of

if TYPE_CHECKING:
    from stepscope.analyzers.latency.blame import Blame

ROOM_FOR_MEANINGS = 120
DARK = {
    "front-end", "delivery", "queue", "parked", "idle", "dispatch", "communication", "unknown",
    "gpu-wait", "launch", "kernel",
}  # fmt: skip


def summary_lines(blamed: Blame) -> Iterator[str]:
    """How many requests there are, how long they took, and by which causes."""
    latency = blamed.requests["latency_ns"]
    yield f"{plain(blamed.trace)}: {_how_many(blamed)}"
    if latency.is_empty():
        return
    yield "  ".join(["latency", *(f"{name} {stated(ns)}" for name, ns in spread(latency).items())])
    yield ""
    yield from table_lines(totals_table(blamed))


def note_lines(blamed: Blame) -> Iterator[str]:
    """What the trace left unsaid."""
    for note in blamed.notes:
        yield f"note: {plain(note)}"


def waterfall_lines(
    bars: Bars, rows: Sequence[Mapping[str, Any]], width: int, of: str
) -> Iterator[str]:
    """A bar for each row of `Blame.requests`, on one scale of time, with a legend.

    `of` says which requests these are. A line is at most `width` cells wide.
    """
    if not rows:
        return
    names = [_name(row) for row in rows]
    lengths = [stated(row["latency_ns"]) for row in rows]
    name_width, length_width = max(map(width_of, names)), max(map(len, lengths))
    room = max(width - name_width - length_width - 3, 8)
    first = min(row["arrive_ns"] for row in rows)
    last = max(row["ended_ns"] for row in rows)
    yield f"waterfall of {of}, {stated(last - first)} from left to right"
    yield from _legend(rows, width)
    for row, name, length in zip(rows, names, lengths, strict=True):
        bar = _bar(bars.cells(row, first, last, room))
        yield f"{padded(name, name_width)}  {length:>{length_width}} {bar}".rstrip()


def request_lines(
    bars: Bars, row: Mapping[str, Any], to_first_token: Mapping[str, Any], width: int
) -> Iterator[str]:
    """One request: its causes, before its first token and after it, and its bar."""
    yield f"{_name(row)}: {stated(row['latency_ns'])}, {plain(outcome(row))}"
    if row["first_token_ns"] is not None:
        yield first_token(row)
    yield ""
    has_meanings = width >= ROOM_FOR_MEANINGS
    yield from table_lines(request_table(row, to_first_token, has_meanings=has_meanings))
    yield ""
    yield from waterfall_lines(bars, [row], width, "it")


def wait_lines(
    waits: pl.DataFrame, reasons: Sequence[str], most: int, arrive_ns: int
) -> Iterator[str]:
    """The longest of a request's `waits`, in order of time, each with the reason recorded."""
    if not waits.is_empty():
        yield from table_lines(waits_table(waits, reasons, most, arrive_ns))


def _how_many(blamed: Blame) -> str:
    if blamed.requests.is_empty():
        return "nothing to blame"
    if not blamed.names_requests:
        ranks = times(len(blamed.requests), "rank")
        return f"no requests, {ranks}, {stated(blamed.total_ns)} together"
    requests = times(len(blamed.requests), "request")
    return f"{requests}, {stated(blamed.total_ns)} together"


def _name(row: Mapping[str, Any]) -> str:
    return plain(row_name(row, WIDEST_NAME))


def _legend(rows: Iterable[Mapping[str, Any]], width: int) -> Iterator[str]:
    shown = {group for row in rows for group in by_group(row)}
    line = ""
    for group, look in LOOKS.items():
        if group not in shown:
            continue
        if click.unstyle(line) and len(click.unstyle(line)) + len(group) + 4 > width:
            yield line.rstrip()
            line = ""
        line += f"{_styled(group, look.glyph)} {group}  "
    yield line.rstrip()


def _bar(pieces: Iterable[Piece]) -> str:
    drawn, at = "", 0
    for piece in pieces:
        drawn += " " * (piece.start - at)
        drawn += _styled(piece.group, LOOKS[piece.group].glyph * piece.length)
        at = piece.start + piece.length
    return drawn


def _styled(group: str, text: str) -> str:
    """Ink on the group's colour; what is dark is a light glyph on it. Pipes get the text."""
    ink = TEXT if group in DARK else INK
    return click.style(text, fg=_rgb(ink), bg=_rgb(LOOKS[group].colour))


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue
