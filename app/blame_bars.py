"""A waterfall: one bar per request, from its arrival to its end, stacked by cause.

A bar begins where the request came and is as long as it was there. Within it, causes are stacked in
the order of `causes.GROUPS`, however they alternated: when each thing happened is what the timeline
shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.analyzers.causes import CAUSES, GROUPS
from stepscope.app.palette import (
    COUNTER,
    DECODE,
    HELD,
    IDLE,
    PREEMPTED,
    PREFILL,
    RECOMPUTE,
    SPAN,
    STATES,
    UNKNOWN,
    WAITING,
    State,
)


def _as(group: str, state: int, glyph: str = "") -> State:
    look = STATES[state]
    return State(group, look.colour, glyph or look.glyph, look.cue)


LOOKS: dict[str, State] = {
    look.name: look
    for look in (
        _as("queue", WAITING),
        _as("preempted", PREEMPTED),
        _as("recompute", RECOMPUTE),
        _as("prefill", PREFILL),
        _as("decode", DECODE),
        _as("gemm", SPAN + 1, "M"),
        _as("attention", SPAN + 2, "A"),
        _as("kernel", SPAN, "K"),
        _as("communication", SPAN + 3, "C"),
        _as("copy", COUNTER, "="),
        _as("gpu-wait", WAITING, "w"),
        _as("launch", HELD, "L"),
        _as("dispatch", HELD),
        _as("idle", IDLE),
        _as("unknown", UNKNOWN, "?"),
    )
}
"""What a group of causes looks like: the colour that it has on the timeline, and a glyph."""
assert LOOKS.keys() == set(GROUPS)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar, in nanoseconds or in cells of a terminal."""

    group: str
    start: int
    length: int


def by_group(row: Mapping[str, Any]) -> dict[str, int]:
    """What each group of causes took of a row of `Blame.requests`; those that took none are out."""
    spent = dict.fromkeys(GROUPS, 0)
    for cause in CAUSES:
        spent[cause.group] += row[cause.column]
    return {group: ns for group, ns in spent.items() if ns}


def pieces(row: Mapping[str, Any]) -> Iterator[Piece]:
    """The pieces of a request's bar, in nanoseconds from its arrival on."""
    start = 0
    for group, ns in by_group(row).items():
        yield Piece(group, start, ns)
        start += ns


def cells(row: Mapping[str, Any], first_ns: int, last_ns: int, width: int) -> list[Piece]:
    """The bar on `width` cells that reach from `first_ns` to `last_ns`, as the pieces' edges round.

    A request that was there for any time has at least one cell, which its largest cause gets.
    """
    span = max(last_ns - first_ns, 1)
    began = row["arrive_ns"] - first_ns
    edges = [(each, _edges(began + each.start, each.length, width, span)) for each in pieces(row)]
    drawn = [Piece(each.group, at, end - at) for each, (at, end) in edges if end > at]
    if drawn or not edges:
        return drawn
    largest = max(pieces(row), key=lambda each: each.length)
    return [Piece(largest.group, min(began * width // span, width - 1), 1)]


def _edges(start: int, length: int, width: int, span: int) -> tuple[int, int]:
    """Rounded halves up, in whole numbers: an edge is the same for the pieces on both sides."""
    at, end = ((2 * edge * width + span) // (2 * span) for edge in (start, start + length))
    return at, end
