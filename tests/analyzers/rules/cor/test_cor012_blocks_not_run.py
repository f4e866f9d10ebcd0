"""COR012: a task is told to have run, and not all of its blocks ran on any core."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.cor.cor012_blocks_not_run import BlocksNotRun
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, part, task
from tests.looped import looped
from tests.traces import trace_of

STEP = {"step": 1, "ts_ns": 0, "dur_ns": 100, "kind": "decode"}
SEEN = part(1, 4, 20, 90)


def not_run(*tasks: Row, steps: list[Row] | None = None, **more: Any) -> list[Finding]:
    given: dict[str, Any] = {"steps": [STEP] if steps is None else steps, "core_spans": [SEEN]}
    return BlocksNotRun().check(trace_of(tasks=tasks, **(given | more)))


def test_a_task_without_a_block_in_a_graph_that_ended_is_found() -> None:
    (found,) = not_run(task(1, "qk L0"), task(2, "qk L1", 4, ts_ns=10, outcome="run"))

    assert found.message == (
        "qk L*: 1 of 2 tasks is over and not all of its blocks ran, first qk L1 with 0 of 4"
    )
    assert (found.task, found.step, found.count) == (2, 1, 1)


def test_a_task_of_which_some_blocks_ran_is_found() -> None:
    (found,) = not_run(task(1, "qk", 2, outcome="run"))

    assert (found.evidence["blocks that ran"], found.evidence["blocks"]) == (1, 2)


@looped(
    "steps", [pytest.param([STEP], id="its step ended"), pytest.param([], id="no steps at all")]
)
def test_a_task_without_an_outcome_is_over_when_its_graph_is(steps: list[Row]) -> None:
    assert len(not_run(task(2, "qk"), steps=steps)) == 1


@looped(
    "sound",
    [
        task(1, "qk", outcome="run"),
        task(2, "qk", outcome="skipped"),
        task(2, "qk", outcome="pending"),
        task(2, "barrier", shape="DUMMY"),
    ],
    ids=["it ran", "skipped", "pending", "a dummy"],
)
def test_what_ran_or_was_not_to_run_is_clean(sound: Row) -> None:
    assert not_run(sound) == []


def test_a_task_of_a_step_that_has_not_ended_may_yet_run() -> None:
    assert not_run(task(2, "qk"), steps=[STEP | {"dur_ns": None}]) == []


@looped(
    "missing",
    [{"closed": False}, {"tables": {"tasks": "complete", "core_spans": "partial"}}],
    ids=["cut off", "some blocks are missing"],
)
def test_a_recording_that_may_lack_blocks_cannot_be_judged(missing: dict[str, Any]) -> None:
    trace = trace_of(tasks=[task(2, "qk")], core_spans=[SEEN], **missing)

    assert check(trace, (BlocksNotRun(),)).not_applicable == ("COR012",)


def test_an_engine_that_reads_the_predicate_of_another_task_is_found(record: Record) -> None:
    found = BlocksNotRun().check(record("mix-admission", fault="predicate-of-the-one-before"))

    assert sum(each.count for each in found) == 197
    assert {each.evidence["blocks that ran"] for each in found} == {0}


@looped("variant", ["before", "after", "barrier"])
def test_sound_engines_are_clean(record: Record, variant: str) -> None:
    assert BlocksNotRun().check(record("mix-admission", variant)) == []
