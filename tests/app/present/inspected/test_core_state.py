"""A core is told in full at the cursor, with or without steps; a finding shows its whole group."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.present.details import finding_blocks, selection_blocks
from stepscope.app.present.plain_text import lines
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.navigator import Navigator
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import decision, part, task
from tests.traces import trace_of


def two_cores() -> Trace:
    """Group 0 without steps: an AIC that runs, with a block pending, and an AIV0 that is held."""
    return trace_of(
        core_spans=[
            part(1, 0, 10, 40, dispatch_ns=8), part(2, 0, 50, 60, dispatch_ns=20),
            part(3, 1, 30, 35, dispatch_ns=22),
        ],
        tasks=[task(1, "qk"), task(2, "pv"), task(3, "push"), task(4, "late")],
        decisions=[decision("task", "4", "deferred", 15, core=0, holder="1", resource="core")],
    )  # fmt: skip


def told_at(trace: Trace, kind: str, ts_ns: int) -> str:
    timeline = Timeline.of(trace)
    navigator = Navigator(timeline)
    (lane,) = (each.id for each in timeline.lanes if each.label == kind)
    navigator.select(lane, ts_ns)
    return "\n".join(lines(selection_blocks(navigator.selection, timeline, trace), 14))


def test_what_runs_and_waits_on_a_core_is_told_without_any_step() -> None:
    said = told_at(two_cores(), "AIC", 25)

    assert "runs           qk, since 0.000002 ms until 0.000032 ms" in said
    assert "pending        pv, dispatched 0.000012 ms" in said
    assert "late (task 4)" in said
    assert "held by task 1 on core 0" in said


def test_a_core_that_is_held_says_for_whom_and_how_long() -> None:
    said = told_at(two_cores(), "AIV0", 25)

    assert "held for       push, since 0.000014 ms; it begins 5 ns later" in said


def test_a_core_on_which_nothing_is_says_since_when() -> None:
    said = told_at(two_cores(), "AIV0", 45)

    assert "group 0 · AIV0" in said
    assert "runs           nothing since 0.000027 ms" in said


def test_before_the_cursor_is_put_anywhere_nothing_is_selected() -> None:
    timeline = Timeline.of(two_cores())

    assert selection_blocks(Navigator(timeline).selection, timeline, two_cores()) == []


def test_a_finding_shows_every_core_of_its_group() -> None:
    trace = two_cores()
    found = Finding("COR001", "n", Severity.ERROR, "m", "f", ts_ns=25, group=0, core=1, rank=0)

    said = "\n".join(lines(finding_blocks(found, Timeline.of(trace), trace), 8))

    assert "group 0 and all of its cores at 0.000017 ms" in said
    assert "AIC      qk, since" in said
    assert "AIV0     held for push" in said
    assert "AIV1     never ran a block" in said


def test_a_core_tells_who_is_ready_and_what_its_thread_does() -> None:
    trace = two_cores()
    trace.manifest.config["device"] = {"groups": [{"thread": 1, "AIC": 0, "AIV0": 1, "AIV1": 2}]}
    ready = trace_of(
        tasks=[task(4, "late", queue="AIC", queued_ns=15)],
        thread_phases=[{"step": 1, "ts_ns": 20, "thread": 1, "phase": "sleep"}],
    )
    trace.tasks = pl.concat([trace.tasks.filter(pl.col("task") != 4), ready.tasks])
    unknown = told_at(two_cores(), "AIC", 25)
    trace.thread_phases = ready.thread_phases
    said = told_at(trace, "AIC", 25)

    assert "ready          AIC 4" in said
    assert "its thread     thread 1 sleeps, since 0.000012 ms" in said
    assert "ready          not recorded" in unknown
    assert "its thread     not recorded" in unknown
