"""What both fronts say of a finding or a span, in plain words: each lays it out in its own way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

import polars as pl

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.views.requests import external_ids
from stepscope.app.debug import LeftOut
from stepscope.app.debug.blocked import because
from stepscope.app.debug.shown.site_source import in_short
from stepscope.app.palette import STATES
from stepscope.app.present.where import lane_name, lane_of, when, where_parts
from stepscope.app.timeline import Lane, SpanView, Timeline
from stepscope.app.timeline.lanes.slots import SLOTS
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.app.units import count, duration
from stepscope.ingest.derive.npu import TASK_TYPE, core_shape
from stepscope.ingest.trace import Trace

MAX_ARGUMENTS = 60
LENGTHS = ("cpu_dur_ns", "gpu_dur_ns", "gpu_busy_ns")
"""Columns in nanoseconds that are not moments."""
SHOWS_NOTHING = {"counters": "unknown", "requests": "not there", "steps": "no step",
                 SLOTS: "empty", WAITING_QUEUE: "no request",
                 "collective calls": "in no collective", "KV blocks": "free"}  # fmt: skip
"""What a lane is said to show where it shows nothing; whatever runs something is idle."""


def whereabouts(found: Finding, timeline: Timeline) -> Iterator[str]:
    """Where a finding is, a part at a time, for how long, and how often it occurs."""
    *parts, last = where_parts(found, timeline.bounds[0], lane_of(found, timeline))
    lasted = 0 if found.ts_ns is None else (found.end_ns or found.ts_ns) - found.ts_ns
    yield from parts
    yield f"{last} for {duration(lasted)}" if lasted > 0 else last
    if found.count > 1:
        yield f"{count(found.count)} times, this is the worst or the first"


def reasons(found: Finding, trace: Trace, most: int) -> list[str]:
    """The `most` last decisions on a finding's request or task up to its time, latest first."""
    about = [
        (pl.col("subject_kind") == kind) & (pl.col("subject") == str(subject))
        for kind, subject in (("request", found.request), ("task", found.task))
        if subject is not None
    ]
    if not about or not trace.has("decisions"):
        return []
    wanted = pl.any_horizontal(about)
    if found.rank is not None:
        wanted &= pl.col("rank") == found.rank
    if found.ts_ns is not None:
        wanted &= pl.col("ts_ns") <= found.ts_ns
    rows = trace.decisions.filter(wanted).sort("ts_ns", maintain_order=True)
    return [
        decision(row) + (f"; decided in {in_short(row['site'])}" if row["site"] else "")
        for row in rows.tail(most).reverse().collect().to_dicts()
    ]


def decision(row: Mapping[str, Any]) -> str:
    """A decision in a line: `deferred: no free slot, slot needs 1, 0 available, held by 17`."""
    parts = [because(row["reason"], row["resource"])]
    if row["needed"] is not None:
        parts.append(f"{row['resource'] or ''} needs {count(row['needed'])}".lstrip())
    if row["available"] is not None:
        parts.append(f"{count(row['available'])} available")
    if row["holder"]:
        parts.append(f"held by {_holder(row)}")
    if row["instead"]:
        parts.append(f"{row['instead']} instead")
    said = ", ".join(part for part in parts if part)
    return f"{row['verdict']}: {said}" if said else str(row["verdict"])


def _holder(row: Mapping[str, Any]) -> str:
    """Who held it: of a decision about a task another task by its number, and on which core."""
    holder, core = str(row["holder"]), row.get("core")
    if row.get("subject_kind") != "task" or not holder.isdecimal():
        return holder
    return f"task {holder}" if core is None else f"task {holder} on core {core}"


def decided(left: LeftOut) -> str:
    """The last decision about who was left out; says so when none was recorded."""
    return decision(asdict(left)) if left.verdict else "no reason recorded"


def before_and_after(found: Finding, timeline: Timeline) -> list[tuple[str, str, str]]:
    """What the lanes around a finding show just before it and at it; counters if they changed."""
    lane = timeline.lane_of(found)
    if lane is None or found.ts_ns is None:
        return []
    rows = []
    for name, lanes in groupby(_around(timeline, timeline.lanes[lane]), _name_near):
        near = list(lanes)
        before, after = (_shown(timeline, near, ts) for ts in (found.ts_ns - 1, found.ts_ns))
        if before != after or near[0].section != "counters":
            rows.append((name, before, after))
    return rows


def row_facts(span: SpanView, timeline: Timeline) -> Iterator[tuple[str, str]]:
    """The recorded row that a span stands for, column by column, without nulls and arguments."""
    for name, value in timeline.row(span.ref).items():
        if value is None or name in ("ts_ns", "dur_ns", "args"):
            continue
        label = name.removesuffix("_ns").replace("_", " ")
        if name in LENGTHS:
            yield label, duration(value)
        elif name.endswith("_ns"):
            yield label, when(value, timeline, 1)
        elif isinstance(value, bool):
            yield label, "yes" if value else "no"
        else:
            yield label, count(value) if isinstance(value, float) else str(value)


def client_ids(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[tuple[str, str]]:
    """What the client calls the request whose span it is, where that was recorded."""
    row = timeline.row(span.ref)
    request = row.get("request")
    if request is None:
        return
    of_it = (pl.col("rank") == row["rank"]) & (pl.col("request") == request)
    for client in external_ids(trace).filter(of_it).collect()["external_id"]:
        yield "client's id", client


def arguments(span: SpanView, timeline: Timeline) -> list[tuple[str, str]]:
    """A span's arguments, which are JSON text; as they stand where they are not an object."""
    text = timeline.row(span.ref).get("args")
    if not text:
        return []
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        return [("args", str(text))]
    shown = list(decoded.items())[:MAX_ARGUMENTS]
    told = [(str(n), v if isinstance(v, str) else json.dumps(v)) for n, v in shown]
    cores = pl.select(core_shape(pl.lit(text).str.extract(TASK_TYPE))).item()
    return told + ([("cores", cores)] if cores else [])


def _around(timeline: Timeline, own: Lane) -> Iterator[Lane]:
    for lane in timeline.lanes:
        same_section = lane.section == own.section and lane.rank == own.rank
        in_group = own.section == "core groups" and same_section and lane.group == own.group
        is_own = same_section and (lane.group, lane.label) == (own.group, own.label)
        if in_group or is_own or (lane.section == "counters" and not lane.group):
            yield lane


def _name_near(lane: Lane) -> str:
    return lane_name(lane) if lane.section == "requests" else lane.label


def _shown(timeline: Timeline, lanes: list[Lane], ts_ns: int) -> str:
    """What sub-lanes of one lane show together."""
    spans = (timeline.at(lane.id, ts_ns) for lane in lanes)
    labels = [span.label or STATES[span.state].name for span in spans if span]
    return " + ".join(labels) or SHOWS_NOTHING.get(lanes[0].section, "idle")
