"""What both fronts say of a finding or a span."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.debug.blocked import BLOCKED_BY
from stepscope.app.present.facts import (
    arguments,
    before_and_after,
    decision,
    reasons,
    row_facts,
)
from stepscope.app.timeline import Timeline
from stepscope.ingest.schema import WHAT_BLOCKS
from tests.looped import looped
from tests.traces import trace_of

UNSAID = dict.fromkeys(("reason", "resource", "needed", "available", "holder", "instead"))


def said(**columns: Any) -> str:
    return decision({"verdict": "deferred", **UNSAID, **columns})


def test_a_decision_is_a_line_of_what_was_recorded() -> None:
    line = said(reason="first", resource="kv-block", needed=4, available=2, holder="r9")

    assert line == "deferred: first, kv-block needs 4, 2 available, held by r9"


def test_a_decision_without_a_reason_is_its_verdict() -> None:
    assert said() == "deferred"


@looped("word", WHAT_BLOCKS)
def test_whatever_blocks_a_request_is_said_in_a_sentence(word: str) -> None:
    assert said(resource=word) == f"deferred: {BLOCKED_BY[word]}"


def test_what_blocks_is_said_beside_an_engines_own_reason_that_counts_nothing() -> None:
    line = said(reason="WAITING_FOR_FSM", resource="grammar")

    assert line == "deferred: WAITING_FOR_FSM (its grammar was being compiled)"


def test_what_an_engine_says_of_a_preemption_is_not_said_twice() -> None:
    why = "somebody was preempted in this step: nobody is admitted"

    assert said(reason=why, resource="preemption") == f"deferred: {why}"


@looped(
    ("args", "shown"),
    [
        ('{"grid": [1, 2], "kernel": "qk"}', [("grid", "[1, 2]"), ("kernel", "qk")]),
        ("[1]", [("args", "[1]")]),
        ("{torn", [("args", "{torn")]),
        ("[" * 100_000, [("args", "[" * 100_000)]),
        (None, []),
        (
            '{"Task Type": "MIX_AIV", "Task Id": 7}',
            [("Task Type", "MIX_AIV"), ("Task Id", "7"), ("cores", "MIX")],
        ),
        ('{"Task Type": "EVENT_WAIT"}', [("Task Type", "EVENT_WAIT")]),
    ],
    ids=["an object", "a list", "torn", "absurdly deep", "none", "on cores of an NPU", "on none"],
)
def test_arguments_are_shown_as_they_can_be(args: str | None, shown: list[tuple[str, str]]) -> None:
    spans = [{"track": "t", "name": "n", "ts_ns": 0, "dur_ns": 9, "args": args}]
    timeline = Timeline.of(trace_of(spans=spans))
    (lane,) = [lane.id for lane in timeline.lanes if lane.kind == "spans"]
    span = timeline.at(lane, 4)
    assert span

    assert arguments(span, timeline) == shown


def test_lengths_of_a_step_are_no_moments() -> None:
    step = {"step": 1, "ts_ns": 0, "dur_ns": 90, "kind": "decode", "cpu_dur_ns": 20,
            "gpu_ts_ns": 30, "gpu_dur_ns": 60, "gpu_busy_ns": 50}  # fmt: skip
    timeline = Timeline.of(trace_of(steps=[step]))
    span = timeline.at(0, 4)
    assert span

    told = dict(row_facts(span, timeline))

    assert (told["cpu dur"], told["gpu dur"], told["gpu busy"]) == ("20 ns", "60 ns", "50 ns")


def found_at(ts_ns: int, **where: Any) -> Finding:
    return Finding("ABC001", "fault", Severity.ERROR, "wrong", "fix", rank=0, ts_ns=ts_ns, **where)


def test_a_request_is_not_told_the_reasons_of_a_task_of_the_same_name() -> None:
    both = [
        {"ts_ns": 1, "subject_kind": kind, "subject": "7", "verdict": "deferred", "reason": why}
        for kind, why in (("request", "no slot"), ("task", "group busy"))
    ]
    trace = trace_of(decisions=both)

    assert reasons(found_at(2, request="7"), trace, 3) == ["deferred: no slot"]
    assert reasons(found_at(2, task=7), trace, 3) == ["deferred: group busy"]


def test_who_holds_a_core_is_told_by_the_number_of_its_task_and_the_core() -> None:
    about = {"ts_ns": 1, "subject_kind": "task", "subject": "7", "verdict": "deferred"}
    held: list[dict[str, Any]] = [
        {"holder": "12", "core": 3},
        {"holder": "12"},
        {"holder": "push 0/2"},
    ]

    told = [
        reasons(found_at(2, task=7), trace_of(decisions=[{**about, **each}]), 1) for each in held
    ]

    assert told == [
        ["deferred: held by task 12 on core 3"], ["deferred: held by task 12"],
        ["deferred: held by push 0/2"],
    ]  # fmt: skip


def test_a_reason_says_in_which_functions_of_the_policy_it_was_decided() -> None:
    site = "engine/schedulers/queued.py: schedule+12 > _admit+4 [0123abcd]"
    about = {"ts_ns": 1, "subject_kind": "request", "subject": "7", "verdict": "deferred"}
    trace = trace_of(decisions=[{**about, "site": site}])

    told = reasons(found_at(2, request="7"), trace, 3)
    assert told == ["deferred; decided in schedule > _admit"]


def test_a_counter_before_its_first_sample_is_unknown_and_a_request_before_it_came_not_there() -> (
    None
):
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 100, "kind": "prefill", "dur_ns": 50, "num_waiting": 3}],
        lifecycle=[{"ts_ns": 100, "request": "r", "event": "arrive"}],
    )

    around = before_and_after(found_at(100, request="r"), Timeline.of(trace))

    assert around == [("request r", "not there", "waiting"), ("waiting", "unknown", "3")]
