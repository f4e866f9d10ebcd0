"""TRC002: time runs backwards on a track, or ranks' clocks disagree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepscope.analyzers.rules.trc.trc002_clock_backwards import ClockBackwards
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, event, part, task
from tests.looped import looped
from tests.traces import trace_of


def step(number: int, ts_ns: int) -> Row:
    return {"step": number, "ts_ns": ts_ns, "dur_ns": 5, "kind": "decode"}


def all_reduce(rank: int, ordinal: int | None, entered: int, left: int, **more: object) -> Row:
    return {
        "rank": rank, "ts_ns": entered, "dur_ns": left - entered, "op": "all_reduce",
        "ordinal": ordinal, "group": "tp", "stream": "7",
    } | more  # fmt: skip


def test_a_step_that_began_before_the_step_before_it_is_found() -> None:
    steps = [step(1, 10_000), step(2, 90_000), step(3, 50_000), step(4, 60_000), step(5, 95_000)]

    (found,) = ClockBackwards().check(trace_of(steps=steps))

    assert (found.step, found.ts_ns, found.count) == (3, 50_000, 2)
    assert found.message == "step 3 began before the step before it, by 40.0 µs at worst, 2 times"


@looped(
    ("tables", "what"),
    [
        ({"core_spans": [part(7, 4, 9_000, 2_000)]}, "task 7 ended before it began"),
        (
            {"core_spans": [part(7, 4, 1_000, 9_000, dispatch_ns=8_000)]},
            "task 7 began before it was dispatched",
        ),
        (
            {"tasks": [task(7, "qk", ts_ns=9_000, retired_ns=100)]},
            "task 7 retired before it was submitted",
        ),
        (
            {"lifecycle": [event("r1", "arrive", 9_000), event("r1", "finish", 100)]},
            "request r1 left before it arrived",
        ),
        (
            {"collectives": [all_reduce(0, 1, 90_000, 91_000), all_reduce(0, 2, 5_000, 6_000)]},
            "all_reduce 2 was entered before the one before it",
        ),
    ],
)
def test_times_that_contradict_what_came_first_are_found(tables: dict[str, Any], what: str) -> None:
    (found,) = ClockBackwards().check(trace_of(**tables))

    assert what in found.message


def test_a_rank_that_left_a_collective_before_another_entered_it_has_another_clock() -> None:
    rows = [
        all_reduce(0, 1, 100_000, 200_000), all_reduce(1, 1, 350_000, 400_000),
        all_reduce(0, 2, 500_000, 600_000), all_reduce(1, 2, 650_000, 800_000),
    ]  # fmt: skip

    (found,) = ClockBackwards().check(trace_of(collectives=rows, ranks=(0, 1)))

    assert (found.rank, found.count) == (0, 2)
    assert found.message == (
        "rank 0 left all_reduce 1 before rank 1 entered it, by 150.0 µs at worst, 2 times: "
        "their clocks are apart by at least that much"
    )


def test_clocks_of_profiles_are_a_warning_that_says_how_sure_their_alignment_is() -> None:
    rows = [
        all_reduce(0, 1, 100_000, 200_000, inferred="calls"),
        all_reduce(1, 1, 350_000, 400_000, inferred="calls"),
    ]
    clock = {"moved_ns": -2_000, "residual_ns": 900, "collectives": 7, "paired_by": "clocks",
             "unless_apart_ns": 4_200_000, "why_not": None}  # fmt: skip

    (found,) = ClockBackwards().check(
        trace_of(collectives=rows, ranks=(0, 1), config={"clocks": {"1": clock}})
    )

    assert found.severity == "warning"
    assert found.evidence["clock of rank 1"] == (
        "moved by -2.0 µs: 7 collectives end within 900 ns, paired by clocks, unless these are "
        "4.2 ms or more apart"
    )


def test_a_clock_that_was_not_aligned_says_why() -> None:
    rows = [all_reduce(0, 1, 100_000, 200_000), all_reduce(1, 1, 350_000, 400_000)]
    config = {"clocks": {"1": {"why_not": "too few"}}}

    (found,) = ClockBackwards().check(trace_of(collectives=rows, ranks=(0, 1), config=config))

    assert found.evidence["clock of rank 1"] == "left as it is: too few"


def test_calls_without_an_end_and_all_to_alls_of_several_sizes_say_nothing_of_clocks() -> None:
    ends = [all_reduce(rank, 1, at, at) | {"dur_ns": None} for rank, at in ((0, 0), (1, 350_000))]
    uneven = [
        all_reduce(rank, 1, at, at + 5, op="all_to_all", num_elements=size)
        for rank, at, size in ((0, 0, 5), (1, 350_000, 7))
    ]

    for rows in (ends, uneven):
        assert ClockBackwards().check(trace_of(collectives=rows, ranks=(0, 1))) == []


@looped(
    "rows",
    [
        [all_reduce(0, 1, 100_000, 400_000), all_reduce(1, 1, 350_000, 400_000)],
        [
            all_reduce(0, 1, 100_000, 200_000, op="broadcast"),
            all_reduce(1, 1, 350_000, 400_000, op="broadcast"),
        ],
        [
            all_reduce(0, 1, 100_000, 200_000, group="dp0"),
            all_reduce(1, 1, 350_000, 400_000, group="dp1"),
        ],
        [
            all_reduce(0, 0, 900_000, 990_000),
            *(all_reduce(0, None, at, at + 1_000) for at in (100_000, 500_000)),
            all_reduce(1, None, 950_000, 990_000),
        ],
        [
            all_reduce(0, 1, 100_000, 200_000, num_elements=64),
            all_reduce(1, 1, 350_000, 400_000, num_elements=128),
        ],
    ],
    ids=[
        "they meet", "the root of a broadcast may leave", "they are of different groups",
        "which they are is not known", "ranks diverge there",
    ],
)  # fmt: skip
def test_collectives_that_need_no_other_clock_are_clean(rows: list[Row]) -> None:
    assert ClockBackwards().check(trace_of(collectives=rows)) == []


def test_rounding_is_no_contradiction() -> None:
    assert ClockBackwards().check(trace_of(steps=[step(1, 1_000), step(2, 0)])) == []


@looped("name", ["hta_nccl_data", "vllm_cpu_tiny_llama_preemptions"])
def test_a_real_profile_has_one_clock(shared_data: Path, name: str) -> None:
    assert ClockBackwards().check(Trace.open(shared_data / "kineto" / f"{name}.json.gz")) == []


@looped("case", ["TestMixedExample_case1", "TestQwen2L_StressBatch16Seq3500"])
def test_cores_and_scheduler_of_a_real_device_share_a_clock(shared_data: Path, case: str) -> None:
    assert ClockBackwards().check(Trace.open(shared_data / "swimlane" / case)) == []


def test_of_contradictions_of_one_size_and_moment_the_same_is_named_in_any_order() -> None:
    steps = [step(1, 90_000), step(2, 50_000), step(3, 50_000)]

    told = [
        ClockBackwards().check(trace_of(steps=rows))[0].message for rows in (steps, steps[::-1])
    ]

    assert told[0] == told[1]
