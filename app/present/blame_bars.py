"""A waterfall: one bar per request, from its arrival to its end, on one scale of time.

A bar shows what its request was in when it was in it, like the request's lane of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.analyzers.latency.causes import CAUSES, GROUPS
from stepscope.app.palette import (
    ATTENTION,
    COMMUNICATION,
    COPY,
    DECODE,
    FRONT_END,
    GEMM,
    HELD,
    IDLE,
    KERNEL,
    PREEMPTED,
    PREFILL,
    RECOMPUTE,
    STATES,
    UNKNOWN,
    WAITING,
    State,
)

if TYPE_CHECKING:
    from stepscope.analyzers.latency.blame import Blame

Ints = npt.NDArray[np.int64]


def _as(group: str, state: int, glyph: str = "") -> State:
    look = STATES[state]
    return State(group, look.colour, glyph or look.glyph, look.cue)


LOOKS: dict[str, State] = {
    look.name: look
    for look in (
        _as("front-end", FRONT_END),
        _as("queue", WAITING),
        _as("parked", HELD, "z"),
        _as("preempted", PREEMPTED),
        _as("recompute", RECOMPUTE),
        _as("prefill", PREFILL),
        _as("decode", DECODE),
        _as("delivery", FRONT_END, "«"),
        _as("gemm", GEMM, "M"),
        _as("attention", ATTENTION, "A"),
        _as("kernel", KERNEL, "K"),
        _as("communication", COMMUNICATION, "C"),
        _as("copy", COPY, "="),
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


def of_which(blamed: Blame, number: int) -> str:
    """Of what `number` bars are, where those are drawn that took longest."""
    every = f"{number:,} of {len(blamed.requests):,}"
    if blamed.names_requests:
        return f"{every} requests, the slowest"
    return "the whole run" if len(blamed.requests) == 1 else f"{every} ranks, each whole"


class Bars:
    """The bars of a `Blame`: what each request was in, when it was."""

    def __init__(self, blamed: Blame) -> None:
        names = {cause.name: GROUPS.index(cause.group) for cause in CAUSES}
        group = pl.col("cause").cast(pl.String).replace_strict(names, return_dtype=pl.Int64)
        parts = blamed.intervals.select("rank", "request", "ns", group=group)
        # The parts of a request are its whole time in order, so they lie where those before end.
        placed = parts.with_columns(end=pl.col("ns").cum_sum().over("rank", "request"))
        keys = placed.select("rank", "request").with_row_index("place")
        spans = keys.group_by("rank", "request").agg(first=pl.min("place"), num=pl.len())
        self._places = {(rank, name): slice(at, at + n) for rank, name, at, n in spans.rows()}
        self._groups = placed["group"].to_numpy()
        self._ends = placed["end"].to_numpy()

    def pieces(self, row: Mapping[str, Any]) -> list[Piece]:
        """The pieces of a request's bar, in nanoseconds from its arrival on, in order of time.

        Of an interval that went to several causes, a batch that was in a collective for a while,
        they lie side by side: which of them was when is not known.
        """
        groups, ends = self._of(row)
        if not len(ends):
            return []
        lasts = np.flatnonzero(np.append(groups[1:] != groups[:-1], True))
        until = ends[lasts].tolist()
        since = [0, *until[:-1]]
        return [
            Piece(GROUPS[groups[at]], start, end - start)
            for at, start, end in zip(lasts.tolist(), since, until, strict=True)
        ]

    def cells(self, row: Mapping[str, Any], first_ns: int, last_ns: int, width: int) -> list[Piece]:
        """The bar on `width` cells from `first_ns` to `last_ns`: each shows something of its time.

        Where several groups of causes share a cell, the one has it that the cells before owe most:
        over a few cells each has its share, and what never takes most of a cell is seen too. A cell
        belongs to the bar if half of it does; a request that was there for any time has at least
        one, which its largest group of causes gets.
        """
        groups, ends = self._of(row)
        if not len(ends) or not ends[-1]:
            return []
        span, began = max(last_ns - first_ns, 1), row["arrive_ns"] - first_ns
        edges = np.array([span * cell // width - began for cell in range(width + 1)])
        took = np.array([_took(groups == group, ends, edges) for group in range(len(GROUPS))])
        is_own = (2 * took.sum(axis=0) >= np.diff(edges)) & (np.diff(edges) > 0)
        shown = np.where(is_own, took.argmax(axis=0), -1)
        mixed = np.flatnonzero(is_own & ((took > 0).sum(axis=0) > 1))
        shown[mixed] = _shared(took[:, mixed].T.tolist())
        if (shown < 0).all():
            largest = max(by_group(row).items(), key=lambda each: each[1])[0]
            return [Piece(largest, min(began * width // span, width - 1), 1)]
        starts = [0, *(np.flatnonzero(np.diff(shown)) + 1).tolist(), width]
        return [
            Piece(GROUPS[shown[start]], start, end - start)
            for start, end in pairwise(starts)
            if shown[start] >= 0
        ]

    def _of(self, row: Mapping[str, Any]) -> tuple[Ints, Ints]:
        """The group and the end of each part of a request, in nanoseconds from its arrival."""
        own = self._places.get((row["rank"], row["request"]), slice(0, 0))
        return self._groups[own], self._ends[own]


def _shared(cells: list[list[int]]) -> list[int]:
    """Who of those in each cell has it: whom those before owe most, by how long each was in it."""
    owed = [0] * len(GROUPS)
    shown = []
    for took in cells:
        own = [group for group, ns in enumerate(took) if ns]
        for group in own:
            owed[group] += took[group]
        first = max(own, key=owed.__getitem__)
        owed[first] -= sum(took)
        shown.append(first)
    return shown


def _took(is_own: npt.NDArray[np.bool_], ends: Ints, edges: Ints) -> Ints:
    """How long the parts that are `is_own` were, between each two edges."""
    starts = np.concatenate(([0], ends[:-1]))
    before = np.concatenate(([0], np.cumsum(np.where(is_own, ends - starts, 0))))
    last = np.searchsorted(starts, edges, "right")
    at = np.maximum(last - 1, 0)
    inside = np.clip(edges - starts[at], 0, ends[at] - starts[at])
    until = before[at] + np.where(is_own[at], inside, 0)
    return np.diff(np.where(last > 0, until, 0))
