"""Jobs in which what fits is not what met: what is not beyond doubt is neither paired nor moved."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stepscope.ingest.derive.collectives.clocks import AGREE_NS
from stepscope.ingest.derive.collectives.pairings import BY_CLOCK
from tests.ingest.derive.collectives.rank_jobs import (
    NOISE_US,
    Look,
    Plan,
    assert_nothing_is_wrong,
    clocks,
    job,
    open_job,
    period_us,
)
from tests.ingest.log_files import report_of
from tests.tiers import examples, slow

MISLED = {
    "times change by little": (
        Look(first_step=3, last_step=4, without=(14,)),
        Look(first_step=2, late_us=5_900),
        Plan(num_steps=8, seed=3233, sizes=(1, 1, 2, 2, 3, 3), jitter_us=3, late_rank=1,
             ops=("allreduce", "_allgather_base")),
    ),
    "times change by more": (
        Look(first_step=4, last_step=6, late_us=5e6, without=(27, 30)),
        Look(first_step=1, late_us=3, without=(23,), swapped=15),
        Plan(per_step=6, seed=8996, sizes=(1, 2, 3, 3, 2, 1), jitter_us=30),
    ),
    "many face others": (
        Look(first_step=3, last_step=6, late_us=5_900, without=(23, 27)),
        Look(first_step=1, last_step=7, late_us=5e6, without=(7,), swapped=26),
        Plan(num_steps=12, per_step=6, seed=2561, sizes=(1, 2), jitter_us=10),
    ),
    "times are all alike": (
        Look(first_step=3, last_step=4, late_us=4_000, without=(18,)),
        Look(first_step=1, last_step=4, late_us=5_900, without=(10, 18), swapped=15),
        Plan(num_steps=12, seed=334, sizes=(1, 2, 3, 4), jitter_us=0, late_rank=1,
             ops=("allreduce", "_allgather_base")),
    ),
    "gaps set the right way apart": (
        Look(first_step=2, last_step=7, late_us=5e6, without=(16, 21, 29)),
        Look(first_step=4, last_step=5),
        Plan(num_steps=8, seed=7855, sizes=(1, 1, 1, 2), jitter_us=10, late_rank=1,
             ops=("allreduce", "_allgather_base")),
    ),
}  # fmt: skip


@slow
@pytest.mark.parametrize("why", MISLED)
def test_the_one_way_that_fits_is_not_believed_where_others_are_as_even(
    tmp_path: Path, why: str
) -> None:
    *jobs_looks, plan = MISLED[why]
    looks = [replace(look, has_seq=False, tags="step[DECODE bs=32]") for look in jobs_looks]

    trace = open_job(tmp_path, replace(plan, noise_us=1).meetings(), *looks)

    assert clocks(trace)[1]["moved_ns"] == 0
    assert_nothing_is_wrong(trace, *looks)


@slow
@pytest.mark.parametrize(
    ("sizes", "jitter_us", "paired_by"),
    [
        (tuple(range(1, 33)), 0, "steps, operations and sizes"),
        ((1, 2, 2, 1, 1, 1, 2, 1, 2, 2, 2, 1) * 2 + (2, 1) * 4, 300,
         "operations, and the times between their ends"),
    ],
    ids=["by what they are", "by when they end"],
)  # fmt: skip
def test_the_one_way_that_fits_is_believed_where_something_sets_it_apart(
    tmp_path: Path, sizes: tuple[int, ...], jitter_us: float, paired_by: str
) -> None:
    alike = Look(has_seq=False, tags="step[DECODE bs=32]")
    looks = alike, replace(alike, late_us=5e6)

    meetings = job(num_steps=8, sizes=sizes, goes_on=True, jitter_us=jitter_us)
    trace = open_job(tmp_path, meetings, *looks)

    assert clocks(trace)[1]["moved_ns"] == pytest.approx(-5e9, abs=2_000)
    assert clocks(trace)[1]["paired_by"] == paired_by
    assert_nothing_is_wrong(trace, *looks)


ALIKE = [(0.0, 4, 3), (2_500, 32, 1), (-90_000, 4, 1)]
OTHERS = [case for case in product((0.0, 2_500, -90_000), (4, 32), (1, 3)) if case not in ALIKE]


@pytest.mark.parametrize(
    ("late_us", "per_step", "num_steps"),
    [*ALIKE, *(pytest.param(*case, marks=slow) for case in OTHERS)],
)
def test_steps_that_are_alike_are_not_taken_for_one_where_windows_share_none(
    tmp_path: Path, late_us: float, per_step: int, num_steps: int
) -> None:
    alike = Look(has_seq=False, tags="step[DECODE bs=32]", first_step=1, last_step=num_steps)
    late = replace(alike, first_step=4, last_step=3 + num_steps, late_us=late_us)
    sizes = tuple(range(1, per_step + 1))
    gaps_us = tuple(70.0 * size for size in sizes)
    meetings = job(num_steps=8, per_step=per_step, sizes=sizes, gaps_us=gaps_us, jitter_us=0)

    trace = open_job(tmp_path, meetings, alike, late)

    assert clocks(trace)[1]["collectives"] == 0
    assert any("are not paired between ranks 0 and 1" in note for note in report_of(trace).notes)
    assert_nothing_is_wrong(trace, alike, late)


def test_numbers_of_steps_tell_nothing_of_what_comes_behind_their_tags(tmp_path: Path) -> None:
    plan = Plan(num_steps=8, per_step=21, sizes=tuple(range(1, 22)), jitter_us=0)
    untagged = Look(has_seq=False, behind=20)
    looks = (
        replace(untagged, first_step=2, last_step=2),
        replace(untagged, first_step=4, last_step=5, skipped=1, cut=20),
    )

    trace = open_job(tmp_path, plan.meetings(), *looks)

    assert clocks(trace)[1]["collectives"] == 0
    assert_nothing_is_wrong(trace, *looks)


@slow
def test_where_clocks_tell_it_is_said_how_far_they_are_apart_if_they_do_not_agree(
    tmp_path: Path,
) -> None:
    plan = Plan(num_steps=8, jitter_us=0, noise_us=0)
    for late_us in (0.0, -period_us(plan)):
        looks = [Look(has_seq=False, tags="", late_us=late) for late in (0.0, late_us)]
        looks[1] = replace(looks[1], first_step=1)

        trace = open_job(tmp_path, plan.meetings(), *looks)

        said = clocks(trace)[1]
        assert (said["paired_by"], said["moved_ns"]) == (BY_CLOCK, 0)
        assert 0 < said["unless_apart_ns"] <= period_us(plan) * 1_000
        apart = f"unless clocks are {said['unless_apart_ns'] / 1e6:.3f} ms or more apart"
        assert any(apart in note for note in report_of(trace).notes)


LATE_US = [0, 0, 3, 20, 60, 700, -2_500, 1_000, 4_000, 5_900, 5_000_000, -5_000_000]
looks_of_ranks = st.builds(
    Look,
    late_us=st.sampled_from(LATE_US),
    first_step=st.integers(0, 4),
    last_step=st.sampled_from([4, 5, 6, 7, 99]),
    without=st.lists(st.integers(0, 31), max_size=8, unique=True).map(tuple),
    swapped=st.none() | st.integers(0, 30),
)
dialects = st.fixed_dictionaries(
    {
        "has_seq": st.booleans(),
        "has_calls": st.booleans(),
        "tags": st.sampled_from(["", "ProfilerStep#{step}", "step[DECODE bs=32]"]),
        "dialect": st.sampled_from(["nccl", "rccl"]),
    }
)
plans = st.builds(
    Plan,
    num_ranks=st.just(2),
    num_steps=st.sampled_from([6, 8, 12]),
    per_step=st.sampled_from([1, 2, 4, 6]),
    seed=st.integers(0, 9_999),
    sizes=st.sampled_from([(1,), (1, 2), (1, 2, 3, 4), (4096, 8192, 4096, 1024), (1, 1, 2, 2, 3)]),
    ops=st.sampled_from([("allreduce",), ("allreduce", "_allgather_base")]),
    jitter_us=st.sampled_from([0.0, 3.0, 30.0, 300.0, 3_000.0]),
    noise_us=st.just(NOISE_US / 2),
    late_rank=st.sampled_from([None, 0, 1]),
)


@settings(max_examples=examples(40), deadline=None)
@given(looks_of_ranks, looks_of_ranks, dialects, plans)
def test_clocks_are_right_within_their_bounds_or_left_alone_with_the_reason(
    first: Look, second: Look, dialect: dict[str, Any], plan: Plan
) -> None:
    looks = [replace(look, **dialect) for look in (first, second)]

    with TemporaryDirectory() as folder:
        trace = open_job(Path(folder), plan.meetings(), *looks)

        if (said := clocks(trace).get(1)) and said["paired_by"] == BY_CLOCK:
            assert said["moved_ns"] == 0
            # No file tells of clocks that are apart by whole periods of a run that repeats itself.
            assume(abs(second.late_us - first.late_us) * 1_000 <= AGREE_NS)
        assert_nothing_is_wrong(trace, *looks)
