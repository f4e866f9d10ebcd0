"""Search: requests, steps, cores, groups, tasks, buffers and spans by what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Protocol

import polars as pl

from stepscope.analyzers.views.requests import external_ids
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.buffers import BUFFERS, is_buffer
from stepscope.app.timeline.lanes.lane import Lane, end_of, placeable
from stepscope.app.timeline.lanes.steps import known_steps
from stepscope.app.timeline.lanes.subjects import STEPS, Places
from stepscope.app.timeline.lanes.tracks import PYTHON_FUNCTION
from stepscope.app.timeline.picture import Ref, SpanView
from stepscope.ingest.derive.kv_blocks import KV_BLOCK, block_spans
from stepscope.ingest.trace import Trace

KINDS = (
    "step", "request", "core", "group", "slot", "position", "block", "task", "collective", "buffer",
    "stream", "span",
)  # fmt: skip
MAX_NAMES = 200
CALL = re.compile(r"(?:collective|operation|#)\s*#?([0-9]{1,18})")
NUMBERED = re.compile(r"(?:(step|core|group|slot|position|block)\s*)?([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found: its kind (one of KINDS), what it is called, and where to go.

    `count` is how often the name occurs; lane and times are those of the first.
    """

    kind: str
    label: str
    lane: int | None
    ts_ns: int
    end_ns: int
    count: int = 1


class Searched(Protocol):
    """What a search asks of a timeline."""

    bounds: tuple[int, int]

    @property
    def lanes(self) -> Sequence[Lane]:
        """All lanes, in order."""

    def spans(self, lane: int, t0: int, t1: int, limit: int) -> Sequence[SpanView]:
        """The first `limit` spans of a lane that touch [t0, t1), by time."""

    def sublane_of(self, lane: int | None, ref: Ref, ts_ns: int) -> int | None:
        """The sub-lane, from `lane` down, on which the span of a row begins at a time."""


class Finder:
    """Searches a timeline's lanes and the names in its trace."""

    def __init__(self, trace: Trace, timeline: Searched, places: Places) -> None:
        self._trace = trace
        self._timeline = timeline
        self._places = places

    def find(self, text: str, limit: int) -> list[Hit]:
        """What `text` names, the closest first; a bare number is a step, or part of a name."""
        wanted = text.strip().casefold()
        if not wanted:
            return []
        hits = [
            *self._numbered(wanted),
            *self._requests(wanted, limit),
            *self._clients(wanted),
            *self._blocks(wanted),
            *self._calls(wanted),
            *self._tasks(wanted),
            *self._buffers(wanted, limit),
            *self._spans(wanted),
        ]
        return sorted(hits, key=lambda hit: _distance(hit, wanted))[:limit]

    def _numbered(self, wanted: str) -> Iterator[Hit]:
        match = NUMBERED.fullmatch(wanted)
        if match is None:
            return
        kind, number = match[1] or "step", int(match[2])
        if kind == "step":
            yield from self._steps(number)
            return
        for rank in self._places.ranks:
            lane = self._places.lane(rank, (kind, number))
            if lane is not None:
                yield self._lane_hit(kind, f"{kind} {number}", lane)

    def _steps(self, number: int) -> Iterator[Hit]:
        found = known_steps(self._trace).filter(pl.col("step") == number)
        last_ns = self._timeline.bounds[1]
        end = end_of(pl.col("ts_ns"), pl.col("lasts_ns"), last_ns)
        for rank, ts_ns, end_ns in found.select("rank", "ts_ns", end=end).collect().iter_rows():
            lane = self._places.lane(rank, STEPS)
            yield Hit("step", f"step {number}", lane, ts_ns, end_ns)

    def _requests(self, wanted: str, limit: int) -> Iterator[Hit]:
        """The closest of them: when one began is asked of its lane, and there may be very many."""
        bare = wanted.removeprefix("request ").strip()
        named = (
            (_closeness("request", label, wanted), lane.id, label)
            for lane in self._timeline.lanes
            if lane.section == "requests" and not lane.depth and bare in lane.label.casefold()
            for label in (f"request {lane.label}",)
        )
        for _, lane_id, label in nsmallest(limit, named):
            yield self._lane_hit("request", label, lane_id)

    def _buffers(self, wanted: str, limit: int) -> Iterator[Hit]:
        """Buffers, and streams of those who use them, by their names."""
        named = (
            (_closeness(kind, lane.label, wanted), lane.id, kind, lane.label)
            for lane in self._timeline.lanes
            if lane.section == BUFFERS and not lane.depth
            for kind in ("buffer" if is_buffer(lane) else "stream",)
            if wanted.removeprefix(f"{kind} ").strip() in lane.label.casefold()
        )
        for _, lane_id, kind, label in nsmallest(limit, named):
            yield self._lane_hit(kind, label, lane_id)

    def _clients(self, wanted: str) -> Iterator[Hit]:
        """Requests by the ids that their clients know them by."""
        contains = pl.col("external_id").str.to_lowercase().str.contains(wanted, literal=True)
        told = external_ids(self._trace).filter(contains).head(MAX_NAMES).collect()
        for rank, request, client in told.iter_rows():
            lane = self._places.lane(rank, ("request", request))
            if lane is not None and client != request:
                label = plain(f"{client}: {self._timeline.lanes[lane].label}")
                yield self._lane_hit("request", label, lane)

    def _lane_hit(self, kind: str, label: str, lane: int) -> Hit:
        bounds = self._timeline.bounds
        first = self._timeline.spans(lane, *bounds, 1)
        start, end = (first[0].start_ns, first[0].end_ns) if first else bounds
        return Hit(kind, label, lane, start, end)

    def _blocks(self, wanted: str) -> Iterator[Hit]:
        """The KV blocks of a request: the first that it owned, and how often it owned one."""
        named = pl.col("owner").str.to_lowercase().str.contains(wanted, literal=True)
        owners = self._trace.allocations.filter(pl.col("resource") == KV_BLOCK, named)
        if owners.head(1).collect().is_empty():
            return
        spans = block_spans(self._trace).filter(named)
        firsts = spans.group_by("rank", "owner").agg(
            pl.col("id", "from_ns", "to_ns").sort_by("from_ns", "id").first(), count=pl.len()
        )
        firsts = firsts.sort("from_ns", "rank", "owner").head(MAX_NAMES)
        for rank, owner, block, from_ns, to_ns, count in firsts.iter_rows():
            lane = self._places.lane(rank, ("block", block))
            end_ns = self._timeline.bounds[1] if to_ns is None else to_ns
            yield Hit("block", plain(f"{owner}: its KV blocks"), lane, from_ns, end_ns, count)

    def _calls(self, wanted: str) -> Iterator[Hit]:
        """The recorded collectives of an operation, or at a place: `broadcast`, `collective 34`."""
        rows = placeable(self._trace, "collectives").filter(pl.col("inferred").is_null())
        at = CALL.fullmatch(wanted)
        is_it = (
            pl.col("ordinal") == int(at[1])
            if at
            else pl.col("op").str.to_lowercase().str.contains(wanted, literal=True)
        )
        name = pl.format("collective #{}", "ordinal") if at else pl.col("op")
        named = rows.filter(is_it).select(
            "ref", "rank", "ts_ns", name=name, end=pl.col("ts_ns") + pl.col("dur_ns"),
            calls=pl.format(
                "{} of {}",
                pl.coalesce("group", "stream", pl.lit("")),
                pl.col("expected_ranks").fill_null(""),
            ),
        )  # fmt: skip
        yield from self._firsts("collective", "collectives", "calls", named)

    def _tasks(self, wanted: str) -> Iterator[Hit]:
        blocks = placeable(self._trace, "core_spans").select(
            "ref", "rank", "task", "core", "ts_ns", end="end_ns"
        )
        tasks = self._trace.tasks.select("rank", "task", "name")
        named = _named(tasks, wanted).join(blocks, on=["rank", "task"])
        yield from self._firsts("task", "core_spans", "core", named)

    def _spans(self, wanted: str) -> Iterator[Hit]:
        spans = placeable(self._trace, "spans", "track").select(
            "ref", "rank", "track", "name", "category", "ts_ns",
            end=pl.col("ts_ns") + pl.col("dur_ns"),
        )  # fmt: skip
        named = _named(spans, wanted)
        is_python = pl.col("category").eq_missing(PYTHON_FUNCTION)
        yield from self._firsts("span", "spans", "track", named.filter(~is_python))
        functions = named.filter(is_python).rename({"track": "python"})
        yield from self._firsts("span", "spans", "python", functions)

    def _firsts(self, kind: str, table: str, subject: str, named: pl.LazyFrame) -> Iterator[Hit]:
        """One hit for each name: its first occurrence."""
        firsts = (
            named.sort("ts_ns", "ref")
            .group_by("name", maintain_order=True)
            .agg(pl.col("ref", "rank", subject, "ts_ns", "end").first(), count=pl.len())
            .head(MAX_NAMES)
            .collect()
        )
        for name, ref, rank, whose, ts_ns, end_ns, count in firsts.iter_rows():
            first_lane = self._places.lane(rank, (subject, whose))
            lane = self._timeline.sublane_of(first_lane, (table, ref), ts_ns)
            yield Hit(kind, plain(name), lane, ts_ns, ts_ns if end_ns is None else end_ns, count)


def _named(frame: pl.LazyFrame, wanted: str) -> pl.LazyFrame:
    """The rows whose name contains `wanted`; each distinct name is looked at once."""
    names = frame.select("name").unique()
    contains = pl.col("name").str.to_lowercase().str.contains(wanted, literal=True)
    return frame.join(names.filter(contains), on="name", how="semi")


def _distance(hit: Hit, wanted: str) -> tuple[int, int, int, int]:
    """Whole name first, then its beginning, then any part; then by kind, length and time."""
    return *_closeness(hit.kind, hit.label, wanted), hit.ts_ns


def _closeness(kind: str, label: str, wanted: str) -> tuple[int, int, int]:
    """The same of a name, whenever what it names began."""
    name = label.casefold()
    bare = name.removeprefix(f"{kind} ")
    if wanted in (name, bare):
        closeness = 0
    elif name.startswith(wanted) or bare.startswith(wanted):
        closeness = 1
    else:
        closeness = 2
    return closeness, KINDS.index(kind), len(name)
