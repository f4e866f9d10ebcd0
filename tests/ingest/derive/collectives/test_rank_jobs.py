"""Jobs of several ranks: whatever their clocks, windows and faults, nothing is told wrongly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.ingest.derive.collectives.rank_jobs import (
    Look,
    assert_nothing_is_wrong,
    clocks,
    job,
    of_rank,
    open_job,
)
from tests.ingest.log_files import report_of
from tests.looped import looped
from tests.tiers import slow

TP_DP = {"tp0": (0, 1), "tp1": (2, 3), "dp0": (0, 2), "dp1": (1, 3)}


@slow
@looped(("late", "paired_by"), [
    (Look(late_us=5e6), "sequence numbers"),
    (Look(late_us=5e6, first_step=1), "sequence numbers"),
    (Look(late_us=2_500, first_step=1, has_seq=False), "steps, operations and sizes"),
    (Look(late_us=2_500, last_step=3, has_seq=False), "steps, operations and sizes"),
    (Look(late_us=2_500, first_step=2, has_seq=False, tags="step[DECODE bs=32]"),
     "operations, and the times between their ends"),
])  # fmt: skip
def test_a_rank_whose_window_begins_or_ends_elsewhere_is_moved_by_its_clock_alone(
    tmp_path: Path, late: Look, paired_by: str
) -> None:
    first = Look(has_seq=late.has_seq, has_calls=late.has_calls, tags=late.tags)

    trace = open_job(tmp_path, job(num_steps=8), first, late)

    said = clocks(trace)[1]
    assert said["moved_ns"] == pytest.approx(-1000 * late.late_us, abs=2_000)
    assert said["paired_by"] == paired_by
    assert_nothing_is_wrong(trace, first, late)


def test_what_fits_in_several_ways_is_not_paired_and_no_clock_is_moved(tmp_path: Path) -> None:
    looks = Look(has_seq=False, tags=""), Look(has_seq=False, tags="", late_us=2_500, first_step=1)

    trace = open_job(tmp_path, job(num_steps=8, jitter_us=0, noise_us=0), *looks)

    assert clocks(trace)[1]["moved_ns"] == 0
    assert of_rank(trace, 1, "ordinal") == [None] * 28
    assert any("ways to pair them fit alike" in note for note in report_of(trace).notes)


def test_clocks_that_agree_tell_what_fits_in_several_ways(tmp_path: Path) -> None:
    looks = Look(has_seq=False, tags=""), Look(has_seq=False, tags="", first_step=1)

    trace = open_job(tmp_path, job(num_steps=8, jitter_us=0, noise_us=0), *looks)

    assert clocks(trace)[1]["paired_by"] == "operations, on clocks that seem to agree"
    assert_nothing_is_wrong(trace, *looks)


@slow
@pytest.mark.parametrize("dialect", ["nccl", "rccl", "old"])
def test_kernels_of_every_dialect_belong_to_the_calls_that_launched_them(
    tmp_path: Path, dialect: str
) -> None:
    looks = Look(dialect=dialect, has_seq=False), Look(dialect=dialect, has_seq=False, late_us=-700)
    meetings = job(late_rank=1)

    trace = open_job(tmp_path, meetings, *looks)

    assert clocks(trace)[1]["moved_ns"] == pytest.approx(700_000, abs=2_000)
    lasted = trace.collectives.filter(pl.col("rank") == 0).select("op", "dur_ns").collect().rows()
    assert [op.replace("_", "") for op, _ in lasted] == ["allreduce"] * 24
    assert [round(dur / 1000) for _, dur in lasted] == [
        round(m.left_us[0] - m.entered_us[0]) for m in meetings
    ]


@slow
def test_calls_without_kernels_say_nothing_of_clocks(tmp_path: Path) -> None:
    looks = Look(has_kernels=False), Look(has_kernels=False, late_us=2_500)

    trace = open_job(tmp_path, job(), *looks)

    assert of_rank(trace, 0, "dur_ns") + of_rank(trace, 1, "dur_ns") == [None] * 48
    assert clocks(trace)[1]["moved_ns"] == 0
    assert "too few collectives" in clocks(trace)[1]["why_not"]


@slow
def test_ranks_that_share_no_group_with_the_first_are_aligned_by_those_between(
    tmp_path: Path,
) -> None:
    looks = Look(), Look(late_us=-700), Look(late_us=9_000), Look(late_us=77_777)

    trace = open_job(tmp_path, job(4, groups=TP_DP), *looks)

    assert {rank: said["compared_with"] for rank, said in clocks(trace).items()}[3] in {1, 2}
    assert_nothing_is_wrong(trace, *looks)
    assert clocks(trace)[3]["moved_ns"] == pytest.approx(-77_777_000, abs=6_000)


def test_a_collective_that_one_rank_lacks_does_not_shift_the_later_ones(tmp_path: Path) -> None:
    for has_seq in (True, False):
        looks = Look(has_seq=has_seq), Look(has_seq=has_seq, late_us=2_500, without=(13,))

        trace = open_job(tmp_path, job(sizes=(1, 2, 3, 4)), *looks)

        assert clocks(trace)[1]["moved_ns"] == pytest.approx(-2_500_000, abs=2_000)
        assert_nothing_is_wrong(trace, *looks)


def test_few_that_fit_at_the_edge_are_not_taken_for_those_that_met(tmp_path: Path) -> None:
    alike = Look(has_seq=False, tags="step[DECODE bs=32]", first_step=3)
    looks = alike, replace(alike, late_us=5e6, last_step=4, without=(17,))
    meetings = job(num_steps=8, sizes=(1, 2, 3, 4), jitter_us=0, noise_us=1, late_rank=1)

    trace = open_job(tmp_path, meetings, *looks)

    assert clocks(trace)[1]["moved_ns"] == 0
    assert_nothing_is_wrong(trace, *looks)


def test_where_ranks_part_is_said_and_nothing_behind_it_is_paired(tmp_path: Path) -> None:
    looks = Look(has_seq=False), Look(has_seq=False, swapped=12)

    trace = open_job(tmp_path, job(sizes=(1, 2, 3, 4)), *looks)

    assert any("ranks 0 and 1 part behind 12 of them" in note for note in report_of(trace).notes)
    assert of_rank(trace, 1, "ordinal") == [*range(13), *[None] * 11]


def test_a_step_of_another_rank_is_never_taken_for_ones_own(tmp_path: Path) -> None:
    looks = Look(has_seq=False), Look(has_seq=False, first_step=1)

    trace = open_job(tmp_path, job(num_steps=8, jitter_us=0.1), *looks)

    assert clocks(trace)[1]["moved_ns"] == 0
    assert clocks(trace)[1]["collectives"] == 28
    assert_nothing_is_wrong(trace, *looks)


def test_files_of_a_larger_job_that_name_no_group_are_not_paired(tmp_path: Path) -> None:
    info = {"distributedInfo": {"world_size": 128}}
    looks = Look(has_calls=False, top=info), Look(has_calls=False, top=info, late_us=2_500)

    trace = open_job(tmp_path, job(num_steps=8), *looks)

    assert clocks(trace)[1]["moved_ns"] == 0
    assert any("nothing says which ranks join them" in note for note in report_of(trace).notes)


@slow
def test_the_only_group_of_several_ranks_is_that_of_kernels_without_a_name(tmp_path: Path) -> None:
    groups = [{"pg_name": "0", "ranks": [0, 1, 2, 3]}, {"pg_name": "1", "ranks": [0]}]
    info = {"distributedInfo": {"world_size": 4, "pg_config": groups}}
    looks = [Look(has_calls=False, top=info, first_step=rank) for rank in range(4)]

    trace = open_job(tmp_path, job(4, num_steps=8), *looks)

    assert {*of_rank(trace, 3, "expected_ranks")} == {"0,1,2,3"}
    assert [said["collectives"] for said in clocks(trace).values()] == [28, 24, 20]
    assert_nothing_is_wrong(trace, *looks)
