"""Blame as text: what took how much of all requests, a waterfall, and one request in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from stepscope.analyzers.latency.blame import QUANTILES, spread
from stepscope.analyzers.latency.causes import CAUSES
from stepscope.app.palette import INK, TEXT
from stepscope.app.present.blame_bars import LOOKS, Bars, Piece, by_group
from stepscope.app.present.blame_words import WIDEST_NAME, outcome, row_name
from stepscope.app.printable import plain
from stepscope.app.units import duration
from stepscope.app.widths import aligned, padded, width_of

if TYPE_CHECKING:
    from stepscope.analyzers.latency.blame import Blame, CauseTotal

ROOM_FOR_MEANINGS = 120
DARK = {
    "queue", "parked", "idle", "dispatch", "communication", "unknown", "gpu-wait", "launch",
    "kernel",
}  # fmt: skip


def summary_lines(blamed: Blame) -> Iterator[str]:
    """How many requests there are, how long they took, and by which causes."""
    latency = blamed.requests["latency_ns"]
    yield f"{plain(blamed.trace)}: {_how_many(blamed)}"
    if latency.is_empty():
        return
    yield "  ".join(
        ["latency", *(f"{name} {duration(ns)}" for name, ns in spread(latency).items())]
    )
    yield ""
    yield from _columns(
        ("", "cause", "total", "share", *QUANTILES, "of"),
        [_total_cells(total) for total in blamed.totals()],
    )


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
    lengths = [duration(row["latency_ns"]) for row in rows]
    name_width, length_width = max(map(width_of, names)), max(map(len, lengths))
    room = max(width - name_width - length_width - 3, 8)
    first = min(row["arrive_ns"] for row in rows)
    last = max(row["ended_ns"] for row in rows)
    yield f"waterfall of {of}, {duration(last - first)} from left to right"
    yield from _legend(rows, width)
    for row, name, length in zip(rows, names, lengths, strict=True):
        bar = _bar(bars.cells(row, first, last, room))
        yield f"{padded(name, name_width)}  {length:>{length_width}} {bar}".rstrip()


def request_lines(
    bars: Bars, row: Mapping[str, Any], to_first_token: Mapping[str, Any], width: int
) -> Iterator[str]:
    """One request: its causes, before its first token and after it, and its bar."""
    yield f"{_name(row)}: {duration(row['latency_ns'])}, {plain(outcome(row))}"
    if row["first_token_ns"] is not None:
        yield f"first token after {duration(row['first_token_ns'] - row['arrive_ns'])}"
    yield ""
    whole = max(row["latency_ns"], 1)
    spent = [
        (
            LOOKS[cause.group].glyph,
            cause.name,
            duration(row[cause.column]),
            f"{row[cause.column] / whole:.1%}",
            duration(to_first_token[cause.column]),
            duration(row[cause.column] - to_first_token[cause.column]),
            cause.meaning if width >= ROOM_FOR_MEANINGS else "",
        )
        for cause in CAUSES
        if row[cause.column]
    ]
    yield from _columns(("", "cause", "took", "share", "to 1st token", "after", ""), spent)
    yield ""
    yield from waterfall_lines(bars, [row], width, "it")


def wait_lines(
    waits: pl.DataFrame, reasons: Sequence[str], most: int, arrive_ns: int
) -> Iterator[str]:
    """The longest of a request's `waits`, in order of time, each with the reason recorded."""
    if waits.is_empty():
        return
    longest = waits.with_columns(reason=pl.Series(reasons, dtype=pl.String)).top_k(most, by="ns")
    yield f"longest waits{f', of {len(waits):,}' if len(waits) > most else ''}"
    yield from _columns(
        ("after", "for", "cause", "because"),
        [
            (
                duration(each["from_ns"] - arrive_ns),
                duration(each["ns"]),
                each["cause"],
                plain(each["reason"]),
            )
            for each in longest.sort("from_ns", "cause").iter_rows(named=True)
        ],
    )


def _how_many(blamed: Blame) -> str:
    if blamed.requests.is_empty():
        return "nothing to blame"
    if not blamed.names_requests:
        return f"no requests, {duration(blamed.total_ns)} of steps"
    count = len(blamed.requests)
    return f"{count:,} request{'' if count == 1 else 's'}, {duration(blamed.total_ns)} together"


def _name(row: Mapping[str, Any]) -> str:
    return plain(row_name(row, WIDEST_NAME))


def _total_cells(total: CauseTotal) -> tuple[str, ...]:
    return (
        LOOKS[total.cause.group].glyph,
        total.cause.name,
        duration(total.total_ns),
        f"{total.share:.1%}",
        *(duration(ns) for ns in total.each_ns.values()),
        f"{total.num_requests:,}",
    )


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


LEFT = {"cause", "because", ""}


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of texts; numbers have their unit, so it is the header that tells which are right."""
    return aligned(header, rows, [name not in LEFT for name in header], ruled=True)
