"""A core at a moment, with or without steps: what runs, who holds it, which task waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analyzers.summary.core_moment import CoreMoment, core_at
from stepscope.app.debug.held.device_cores import device_threads
from stepscope.app.debug.held.ready_queues import ready_at
from stepscope.app.debug.held.thread_phases import phases_at
from stepscope.app.debug.shown.scheduler_lines import NOT_RECORDED, doing, ready_text
from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.app.present.blocks import Block, Fact, Heading, Table
from stepscope.app.present.facts import decision
from stepscope.app.present.where import when
from stepscope.app.timeline import Lane, Timeline
from stepscope.app.timeline.listed.labels import block_name
from stepscope.app.units import duration
from stepscope.ingest.trace import Trace

MOST_WAITING = 8
Row = Mapping[str, Any]


def core_blocks(lane: int, ts_ns: int, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """What a core's lane is at a time, in full; nothing of a lane that is of no core."""
    who = timeline.core_of(lane)
    if who is None:
        return
    told = core_at(trace, *who, ts_ns)
    names = _Names(trace, who[0], (told,))
    yield Heading("the core at", when(ts_ns, timeline, 1))
    for label, text in _state(told, names, timeline):
        yield Fact(label, (text,))
    if waiting := [*_waiting(told, names, timeline)]:
        yield Table(
            ("task", "waits"), tuple(waiting[:MOST_WAITING]), "who waits for it",
            num_more=max(len(waiting) - MOST_WAITING, 0), is_ruled=False,
        )  # fmt: skip
    else:
        yield Fact("waits for it", (f"nobody {'else ' if told.given else ''}that is recorded",))
    yield Fact("ready", (ready_text(ready_at(trace, who[0], ts_ns)),))
    yield Fact("its thread", (_thread(trace, *who, ts_ns, timeline),))


def group_blocks(lane: int, ts_ns: int, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """Every core of the group that a lane is of, at a time; nothing of a lane of no group."""
    lanes = timeline.group_of(lane)
    if not lanes:
        return
    told = [(each, _told(trace, timeline, each, ts_ns)) for each in lanes]
    names = _Names(trace, lanes[0].rank, [moment for _, moment in told if moment])
    yield Heading(lanes[0].group, f"and all of its cores at {when(ts_ns, timeline, 1)}")
    for each, moment in told:
        if moment is None:
            yield Fact(each.label, ("never ran a block",))
            continue
        said = "; ".join(
            f"{label} {text}" if label != "runs" else text
            for label, text in _state(moment, names, timeline)
        )
        yield Fact(each.label, (said,))


def _told(trace: Trace, timeline: Timeline, lane: Lane, ts_ns: int) -> CoreMoment | None:
    who = timeline.core_of(lane.id)
    return None if who is None else core_at(trace, *who, ts_ns)


def _state(told: CoreMoment, names: _Names, timeline: Timeline) -> Iterator[tuple[str, str]]:
    for row in told.running:
        end = (
            "and has no end"
            if row["end_ns"] is None
            else f"until {when(row['end_ns'], timeline, 1)}"
        )
        yield "runs", f"{names.block(row)}, since {when(row['ts_ns'], timeline, 1)} {end}"
    if not told.running:
        since = told.held_since_ns
        if since is not None:
            first = told.given[0]
            begins = f"it begins {duration(first['ts_ns'] - told.ts_ns)} later"
            yield "held for", f"{names.block(first)}, since {when(since, timeline, 1)}; {begins}"
        elif told.free_since_ns is None:
            yield "runs", "nothing yet"
        else:
            yield "runs", f"nothing since {when(told.free_since_ns, timeline, 1)}"
    for row in told.given[0 if told.running else 1 :]:
        yield "pending", f"{names.block(row)}, dispatched {when(row['given_ns'], timeline, 1)}"


def _thread(trace: Trace, rank: int, core: int, ts_ns: int, timeline: Timeline) -> str:
    """What the thread that dispatches to a core does, where the trace tells whose it is."""
    threads = phases_at(trace, rank, ts_ns)
    number = device_threads(trace.manifest).get(core)
    if threads is None or number is None:
        return NOT_RECORDED
    name = f"thread {number}"
    if (phase := threads.get(name)) is None:
        return f"{name} does nothing yet"
    return f"{name} {doing(phase.phase)}, since {when(phase.since_ns, timeline, 1)}"


def _waiting(told: CoreMoment, names: _Names, timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Tasks that were left out for what is on the core, and blocks that came to it later."""
    for row in told.decided:
        yield names.task(row["subject"]), f"{decision(row)}, {when(row['ts_ns'], timeline, 1)}"
    for row in told.later:
        ready, given = when(row["ready_ns"], timeline, 1), when(row["given_ns"], timeline, 1)
        yield names.block(row), f"ready since {ready}, dispatched here {given}"


class _Names:
    """What the blocks and tasks of some moments are called."""

    def __init__(self, trace: Trace, rank: int, moments: Sequence[CoreMoment]) -> None:
        rows = [r for m in moments for r in (*m.running, *m.given, *m.later)]
        decided = [row["subject"] for m in moments for row in m.decided]
        tasks = {row["task"] for row in rows} | {whole_number(task) for task in decided}
        own = (pl.col("rank") == rank) & pl.col("task").is_in(sorted(tasks - {None}))
        found = trace.tasks.filter(own).select("task", "name", "num_blocks").collect()
        self._known = {task: (name, number) for task, name, number in found.iter_rows()}

    def block(self, row: Row) -> str:
        name, number = self._known.get(row["task"], (None, None))
        return block_name(name, row["task"], row["block"], number)

    def task(self, subject: str) -> str:
        known = self._known.get(whole_number(subject))
        return f"{known[0]} (task {subject})" if known and known[0] else f"task {subject}"
