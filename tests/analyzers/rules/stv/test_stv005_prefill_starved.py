"""STV005: the reserve leaves no budget for prompts while they wait."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv005_prefill_starved import PrefillStarved
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import decode, prefill
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

STARVED = {"reserved_tokens": 100, "num_waiting": 3}


def starved(*steps: Row, max_steps: int = 2) -> list[Finding]:
    return PrefillStarved(max_steps=max_steps).check(trace_of(steps=steps))


def test_a_reserve_of_the_whole_budget_is_found() -> None:
    (found,) = starved(*(decode(n, 40, **STARVED) for n in range(1, 6)))

    assert found.message == (
        "5 steps running (1 to 5) reserved 100 of 100 tokens for decodes, "
        "with up to 3 requests waiting"
    )
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (1, 10, 60, 1)
    assert found.evidence["steps"] == 5


def test_a_step_that_works_on_a_prompt_ends_the_run() -> None:
    steps = [decode(n, 40, **STARVED) for n in (1, 2, 4, 5)]

    assert starved(*steps, prefill(3, 10, 40, **STARVED)) == []


@looped(("num_steps", "num_found"), [(8, 0), (9, 1)])
def test_more_than_eight_steps_running_are_too_many(num_steps: int, num_found: int) -> None:
    steps = [decode(n, 40, **STARVED) for n in range(num_steps)]

    assert len(PrefillStarved().check(trace_of(steps=steps))) == num_found


@looped("sound", [{"reserved_tokens": 99}, {"num_waiting": 0}])
def test_a_reserve_that_leaves_something_or_starves_nobody_is_clean(sound: Row) -> None:
    assert starved(*(decode(n, 40, **{**STARVED, **sound}) for n in range(1, 9))) == []


def test_without_a_recorded_reserve_nothing_is_said() -> None:
    assert starved(*(decode(n, 40, num_waiting=3) for n in range(1, 9))) == []


@slow
@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert PrefillStarved().check(record(scenario)) == []
