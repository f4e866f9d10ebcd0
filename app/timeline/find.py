"""Search: requests, steps, cores, groups, tasks and spans by what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.app.plain import plain
from stepscope.app.timeline.lanes import Lane, LaneName
from stepscope.ingest.trace import Trace

if TYPE_CHECKING:
    from stepscope.analyzers.finding import Finding
    from stepscope.app.timeline.model import SpanView, Timeline


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found: what it is, what it is called, and where to go.

    `kind` is request, step, core, group, task or span. `count` is how often the name occurs; the
    times are those of the first.
    """

    kind: str
    label: str
    lane: int | None
    ts_ns: int
    end_ns: int
    count: int = 1


class Finder:
    """An index from names to lanes and times."""

    def __init__(
        self, trace: Trace, lanes: Sequence[Lane], names: Sequence[LaneName], timeline: Timeline
    ) -> None:
        self._trace = trace
        self._lanes = lanes
        self._timeline = timeline
        self._by_key: dict[tuple[str, int, Any], int] = {}
        self._by_group: dict[tuple[int, str], int] = {}
        for lane, name in zip(lanes, names, strict=True):
            if lane.depth == 0:
                self._by_key.setdefault((lane.section, lane.rank, name.key), lane.id)
                if lane.section == "core groups":
                    self._by_group.setdefault((lane.rank, lane.group), lane.id)

    def lane_of(self, finding: Finding) -> int | None:
        """The lane that a finding is about."""
        rank = finding.rank or 0
        if finding.core is not None:
            lane = self._by_key.get(("core groups", rank, finding.core))
        elif finding.group is not None:
            lane = self._group_lane(rank, finding.group)
        elif finding.request is not None:
            lane = self._by_key.get(("requests", rank, finding.request))
        else:
            lane = None
        return self._by_key.get(("steps", rank, None)) if lane is None else lane

    def find(self, text: str, limit: int) -> list[Hit]:
        """What `text` names, the closest first."""
        wanted = text.strip().casefold()
        if not wanted:
            return []
        hits = [
            *self._numbered(wanted),
            *self._requests(wanted),
            *self._tasks(wanted),
            *self._spans(wanted),
        ]
        ranked = sorted(hits, key=lambda hit: _distance(hit, wanted))
        return list(dict.fromkeys(ranked))[:limit]

    def _group_lane(self, rank: int, group: int) -> int | None:
        for name in (f"group {group}", f"rank {rank} · group {group}"):
            if (rank, name) in self._by_group:
                return self._by_group[rank, name]
        return None

    def _numbered(self, wanted: str) -> Iterator[Hit]:
        """`step 12`, `core 3`, `group 2`; a bare number is a step."""
        match = re.fullmatch(r"(?:(step|core|group)\s*)?([0-9]{1,18})", wanted)
        if match is None:
            return
        kind, number = match[1] or "step", int(match[2])
        if kind == "step":
            yield from self._steps(number)
        for rank in sorted({lane.rank for lane in self._lanes}):
            if kind == "core":
                yield from self._lane_hit(
                    "core", f"core {number}", self._by_key.get(("core groups", rank, number))
                )
            if kind == "group":
                yield from self._lane_hit(
                    "group", f"group {number}", self._group_lane(rank, number)
                )

    def _steps(self, number: int) -> Iterator[Hit]:
        found = self._trace.steps.filter(pl.col("step") == number)
        for rank, ts_ns, dur_ns in found.select("rank", "ts_ns", "dur_ns").collect().iter_rows():
            lane = self._by_key.get(("steps", rank, None))
            yield Hit("step", f"step {number}", lane, ts_ns, ts_ns + (dur_ns or 0))

    def _requests(self, wanted: str) -> Iterator[Hit]:
        bare = wanted.removeprefix("request").strip() or wanted
        for lane in self._lanes:
            if lane.section == "requests" and lane.depth == 0 and bare in lane.label.casefold():
                yield from self._lane_hit("request", f"request {lane.label}", lane.id)

    def _lane_hit(self, kind: str, label: str, lane: int | None) -> Iterator[Hit]:
        if lane is not None:
            first = self._first_span(lane)
            start, end = (first.start_ns, first.end_ns) if first else self._timeline.bounds
            yield Hit(kind, label, lane, start, end)

    def _first_span(self, lane: int) -> SpanView | None:
        found = self._timeline.spans(lane, *self._timeline.bounds, 1)
        return found[0] if found else None

    def _tasks(self, wanted: str) -> Iterator[Hit]:
        names = self._trace.tasks.filter(_contains("name", wanted)).select("rank", "task", "name")
        blocks = self._trace.core_spans.select("rank", "task", "group", "core", "ts_ns", "end_ns")
        joined = names.join(blocks, on=["rank", "task"]).sort("ts_ns", maintain_order=True)
        firsts = joined.group_by("name", maintain_order=True).agg(pl.all().first(), count=pl.len())
        for row in firsts.head(200).collect().iter_rows(named=True):
            lane = self._by_key.get(("core groups", row["rank"], row["core"]))
            end_ns = row["ts_ns"] if row["end_ns"] is None else row["end_ns"]
            yield Hit("task", plain(row["name"]), lane, row["ts_ns"], end_ns, row["count"])

    def _spans(self, wanted: str) -> Iterator[Hit]:
        named = self._trace.spans.filter(_contains("name", wanted)).sort(
            "ts_ns", maintain_order=True
        )
        firsts = named.group_by("name", maintain_order=True).agg(
            pl.col("rank", "track", "ts_ns", "dur_ns").first(), count=pl.len()
        )
        for row in firsts.head(200).collect().iter_rows(named=True):
            lane = self._by_key.get(("tracks", row["rank"], row["track"]))
            end_ns = row["ts_ns"] + (row["dur_ns"] or 0)
            yield Hit("span", plain(row["name"]), lane, row["ts_ns"], end_ns, row["count"])


def _contains(column: str, wanted: str) -> pl.Expr:
    return pl.col(column).str.to_lowercase().str.contains(wanted, literal=True)


KINDS = ("step", "request", "core", "group", "task", "span")


def _distance(hit: Hit, wanted: str) -> tuple[int, int, int, int]:
    """Whole name first, then its beginning, then any part; then by kind, length and time."""
    name = hit.label.casefold()
    bare = name.removeprefix(f"{hit.kind} ")
    if wanted in (name, bare):
        closeness = 0
    elif name.startswith(wanted) or bare.startswith(wanted):
        closeness = 1
    else:
        closeness = 2
    return closeness, KINDS.index(hit.kind), len(name), hit.ts_ns
