"""A `.trace` directory as plain rows, to count by hand what rules say of it.

Polars is used to decode Parquet, and for nothing else; neither the readers nor the views are used.
Events are walked one by one, where rules sort, join and add up: the two can only agree by being
right.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import polars as pl

Row = dict[str, Any]
Span = tuple[int, int]
ENTERS, LEAVES = ("arrive", "preempt"), ("admit", "resume")
ENDS = ("finish", "reject", "abort", "error")
_DIFFERENCE = " - "
"""A column `a - b` holds how much more `a` is than `b`."""


@dataclass(frozen=True)
class RawTrace:
    """The rows of a recording of one rank."""

    folder: Path

    @cached_property
    def manifest(self) -> Row:
        """The manifest, as JSON."""
        return dict(json.loads((self.folder / "manifest.json").read_text(encoding="utf-8")))

    def table(self, name: str) -> list[Row]:
        """The rows of a table, in order of time."""
        files = sorted((self.folder / name).rglob("*.parquet"))
        rows = [_plain(row) for file in files for row in _decoded(file)]
        return sorted(rows, key=lambda row: row["ts_ns"])

    @cached_property
    def events(self) -> list[Row]:
        """What happened to requests."""
        return self.table("lifecycle")

    @cached_property
    def steps(self) -> list[Row]:
        """The steps."""
        return self.table("steps")

    @cached_property
    def tokens(self) -> list[Row]:
        """What was sampled, but for placeholders."""
        return [row for row in self.table("outputs") if not row["is_placeholder"]]

    @cached_property
    def decisions(self) -> list[Row]:
        """What was decided about requests."""
        return [row for row in self.table("decisions") if row["subject_kind"] == "request"]

    @cached_property
    def changes(self) -> list[Row]:
        """Claims, shares and releases of KV blocks."""
        taken = ("claim", "share", "release")
        return [row for row in self.table("allocations") if row["op"] in taken]

    @cached_property
    def batches(self) -> dict[int, list[Row]]:
        """The rows of each step's batch."""
        batches: dict[int, list[Row]] = defaultdict(list)
        for row in self.table("batch_rows"):
            batches[row["step"]].append(row)
        return batches

    @cached_property
    def arrivals(self) -> dict[str, Row]:
        """The arrival of each request, the oldest first."""
        rows = [row for row in self.events if row["event"] == "arrive"]
        rows.sort(key=lambda row: (row["priority"] or 0, row["ts_ns"], row["queue_index"] or 0))
        return {row["request"]: row for row in rows}

    @cached_property
    def ends(self) -> dict[str, Row]:
        """The first event that ended each request."""
        return self.first(*ENDS)

    def first(self, *events: str) -> dict[str, Row]:
        """The first of these events of each request."""
        rows = reversed([row for row in self.events if row["event"] in events])
        return {row["request"]: row for row in rows}

    def history(self, request: str) -> list[Row]:
        """The events of a request."""
        return [row for row in self.events if row["request"] == request]

    @cached_property
    def queued(self) -> dict[str, list[Span]]:
        """When each request waited in the queue."""
        return {request: list(self._queued(request)) for request in self.arrivals}

    def _queued(self, request: str) -> Iterator[Span]:
        since = None
        for row in self.history(request):
            if row["event"] in ENTERS:
                since = row["ts_ns"]
            elif row["event"] in (*LEAVES, *ENDS) and since is not None:
                yield since, row["ts_ns"]
                since = None

    def waits_at(self, request: str, at_ns: int) -> bool:
        """Whether a request was in the queue and stayed there."""
        return any(since <= at_ns < until for since, until in self.queued[request])

    def runs_at(self, request: str, at_ns: int) -> bool:
        """Whether a request ran, all that happened at that time counted."""
        before = [row for row in self.history(request) if row["ts_ns"] <= at_ns]
        moves = [row["event"] for row in before if row["event"] in (*ENTERS, *LEAVES, *ENDS)]
        return bool(moves) and moves[-1] in LEAVES

    def served_ns(self, request: str) -> int:
        """How long steps ran that a request was in, once where two did."""
        steps = {row["step"]: row for row in self.steps}
        own = [n for n, rows in self.batches.items() if any(r["request"] == request for r in rows)]
        spans = sorted((steps[n]["ts_ns"], steps[n]["ts_ns"] + steps[n]["dur_ns"]) for n in own)
        total, reached = 0, -inf
        for began, ended in spans:
            total += max(0, ended - max(began, int(max(reached, began))))
            reached = max(reached, ended)
        return total

    def told(self, request: str) -> list[tuple[Row, float]]:
        """Each deferral of a request that waits, and until when it held."""
        turns = [row for row in self.history(request) if row["event"] in (*ENTERS, *LEAVES, *ENDS)]
        rows = [row for row in self.decisions if row["subject"] == request]
        rows = [row for row in rows if row["verdict"] == "deferred"]
        moments = [row["ts_ns"] for row in (*turns, *rows)]
        return [
            (row, min((at for at in moments if at > row["ts_ns"]), default=inf))
            for row in rows
            if self.waits_at(request, row["ts_ns"])
        ]


def runs_of(steps: list[Row], numbers: set[int]) -> list[list[Row]]:
    """Steps of these numbers, those that follow one another together."""
    found: list[list[Row]] = []
    for row in steps:
        if row["step"] not in numbers:
            continue
        if found and steps.index(found[-1][-1]) + 1 == steps.index(row):
            found[-1].append(row)
        else:
            found.append([row])
    return found


def backwards(times: list[int]) -> list[int]:
    """By how much each time is before the one before it, where it is."""
    return [one - other for one, other in pairwise(times) if other < one]


def _decoded(file: Path) -> list[Row]:
    return pl.read_parquet(file, hive_partitioning=False).rows(named=True)


def _plain(row: Row) -> Row:
    """A row with the columns that are stored as a difference to another."""
    plain = {name: value for name, value in row.items() if _DIFFERENCE not in name}
    for name, value in row.items():
        column, is_stored, base = name.partition(_DIFFERENCE)
        if is_stored:
            known = value is not None and plain[base] is not None
            plain[column] = value + plain[base] if known else None
    return plain
