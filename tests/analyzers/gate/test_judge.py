"""Which conditions fail a build."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.gate.conditions import conditions_of
from stepscope.analyzers.gate.judge import Judged, Run, judge
from stepscope.ingest.errors import ConfigError
from tests.looped import looped


def run(name: str = "run", loud: dict[str, int] | None = None, **totals: Any) -> Run:
    found = loud or {}
    first = {code: f"the first of {code}" for code in found}
    return Run(name, {"steps": 100, **totals}, found, first)


def judged(text: str, a: list[Run], b: list[Run], diverged: str | None = None) -> Judged:
    (condition,) = conditions_of([text])
    return judge(condition, a, b, diverged)


@looped(
    ("text", "was", "now", "failed"),
    [
        ("makespan+2%", 100, 102, False),
        ("makespan+2%", 100, 103, True),
        ("makespan+0%", 100, 100, False),
        ("makespan+2%", 100, 50, False),
        ("makespan-2%", 100, 97, True),
        ("makespan+5%", 0, 1, True),
    ],
)
def test_a_total_fails_where_it_is_beyond_its_limit(
    text: str, was: int, now: int, failed: bool
) -> None:
    assert judged(text, [run(makespan_ns=was)], [run(makespan_ns=now)]).failed is failed


def test_a_total_that_a_trace_does_not_tell_fails_and_says_so() -> None:
    told = judged("ttft_p99+5%", [run(ttft_p99_ns=None)], [run(ttft_p99_ns=3)])

    assert (told.failed, told.fails) == (None, True)
    assert told.said == "not recorded in A"


def test_a_median_that_rose_fails_where_chance_does_not_make_it_so() -> None:
    a = [run(makespan_ns=each) for each in (100, 101, 102, 103)]
    b = [run(makespan_ns=each) for each in (110, 111, 112, 113)]

    told = judged("makespan+2%", a, b)

    assert told.failed is True
    assert told.said == (
        "medians of 4 and 4 runs: 102 ns became 112 ns, +9.85%, by chance in 1.4% of such runs"
    )


def test_a_median_that_rose_among_scattered_runs_is_chance() -> None:
    a = [run(makespan_ns=each) for each in (60, 100, 140, 180)]
    b = [run(makespan_ns=each) for each in (70, 110, 150, 190)]

    assert judged("makespan+2%", a, b).failed is False


def test_too_few_runs_are_judged_by_their_medians_and_it_is_said() -> None:
    a = [run(makespan_ns=each) for each in (100, 101)]
    b = [run(makespan_ns=each) for each in (110, 111)]

    told = judged("makespan+2%", a, b)

    assert told.failed is True
    assert "too few runs to tell it from chance" in told.said


def test_a_finding_that_there_never_was_before_is_new() -> None:
    told = judged("new-findings", [run(loud={"STV001": 0})], [run(loud={"STV001": 1})])

    assert told.failed is True
    assert told.said == "STV001 1 time, never in A: the first of STV001"


def test_a_few_more_of_what_there_was_before_are_not_new() -> None:
    told = judged("new-findings", [run(loud={"STV001": 20})], [run(loud={"STV001": 24})])

    assert (told.failed, told.said) == (False, "no rule finds more in B")


def test_many_more_of_what_there_was_before_are_new() -> None:
    told = judged("new-findings", [run(loud={"STV001": 20})], [run(loud={"STV001": 60})])

    assert told.failed is True
    assert told.said.startswith("STV001 60 times in 100 steps, 20 in 100 of A, by chance in 0.0%")


def test_as_many_in_half_the_steps_are_new() -> None:
    half = run(loud={"STV001": 40}, steps=50)

    assert judged("new-findings", [run(loud={"STV001": 40})], [half]).failed is True


def test_what_the_first_side_could_not_judge_is_not_taken_for_known() -> None:
    told = judged("new-findings", [run()], [run(loud={"STV001": 2})])

    assert told.failed is True
    assert "which A does not tell of" in told.said


@looped(("diverged", "failed"), [("they diverge in step 3", True), ("", False), (None, None)])
def test_a_divergence_fails_and_is_named(diverged: str | None, failed: bool | None) -> None:
    told = judged("divergence", [run()], [run()], diverged)

    assert told.failed is failed
    assert (diverged or "") in told.said


@looped(
    "text", ["makespan", "makespan+2", "speed+2%", "makespan*2%", "+2%", "\x1b[31m", "makespan+-1%"]
)
def test_what_is_no_condition_is_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(ConfigError, match="is no condition"):
        conditions_of([text])


def test_conditions_may_have_commas_between_them() -> None:
    read = conditions_of(["divergence, makespan+2%", "makespan+2%"])

    assert [each.text for each in read] == ["divergence", "makespan+2%"]
