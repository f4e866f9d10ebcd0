"""Jobs of two ranks made of real files: one is changed, and it is known what must change."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.trace import Trace
from tests.metamorphic.contents import Told, blamed_sums, contents_of, findings_of, told_of
from tests.metamorphic.documents import text_of
from tests.metamorphic.real_ranks import (
    FILES,
    Top,
    begins_a_step_later,
    enters_later,
    kernels,
    lacks,
    later,
    opened,
    rank_files,
    swaps,
)
from tests.tiers import slow

pytestmark = [pytest.mark.usefixtures("shared_data"), slow]  # test_ranks has made ones
NUM_COLLECTIVES = 21
LATE_US = 1_200
each_job = pytest.mark.parametrize("job", FILES)
CHANGES: dict[str, Callable[[Top], None]] = {
    "clock": later(2_500), "window": begins_a_step_later, "device": enters_later(10),
}  # fmt: skip


@cache
def as_it_is(folder: Path, job: str) -> tuple[Trace, Told]:
    trace = opened(folder / job, job)
    return trace, told_of(trace)


def reversed_events(top: Top) -> bytes:
    """Names keep their order, as a thread may have several."""
    names = [event for event in top["traceEvents"] if event["ph"] == "M"]
    others = [event for event in top["traceEvents"] if event["ph"] != "M"]
    return text_of({**top, "traceEvents": [*others[::-1], *names]}, indent=1).encode()


def paired(trace: Trace) -> list[list[int]]:
    """When each rank left those that are known to be one, in order."""
    left_ns = (pl.col("ts_ns") + pl.col("dur_ns")).sort_by("rank")
    met = trace.collectives.drop_nulls("ordinal").group_by("ordinal").agg(left_ns=left_ns)
    of_both = met.filter(pl.col("left_ns").list.len() == 2).sort("ordinal").collect()
    return of_both["left_ns"].to_list()


def not_paired(findings: dict[str, Any]) -> bool:
    return {"COL001", "COL008"} <= set(findings["not_applicable"])


@each_job
def test_real_files_of_ranks_written_otherwise_are_the_same(
    folder: Path, tmp_path: Path, job: str
) -> None:
    again = opened(tmp_path / "job", job, written=reversed_events)

    assert told_of(again) == as_it_is(folder, job)[1]


@pytest.mark.parametrize("change", CHANGES)
def test_of_ranks_whose_events_were_sampled_nothing_is_paired_and_no_clock_is_moved(
    folder: Path, tmp_path: Path, change: str
) -> None:
    first, told = as_it_is(folder, "sampled")

    trace = opened(tmp_path / "job", "sampled", CHANGES[change])

    assert not_paired(told.findings)
    assert not_paired(findings_of(trace))
    assert trace.manifest.config["clocks"]["1"]["moved_ns"] == 0
    assert blamed_sums(trace, 0) == blamed_sums(first, 0)
    if change == "clock":
        assert blamed_sums(trace) == told.sums
        assert findings_of(trace)["counts"] == told.findings["counts"]


@pytest.mark.parametrize("late_us", [-90_000, 700, 2_500, 1_000_000])
def test_the_clock_of_a_real_file_is_moved_back_to_the_nanosecond(
    folder: Path, tmp_path: Path, late_us: int
) -> None:
    trace = opened(tmp_path / "job", "mirrored", later(late_us))

    first, told = as_it_is(folder, "mirrored")
    assert trace.manifest.config["clocks"]["1"]["moved_ns"] == -1_000 * late_us
    assert contents_of(trace) == told.tables
    assert findings_of(trace)["counts"] == told.findings["counts"]
    assert blamed_sums(trace) == told.sums
    assert len(paired(trace)) == len(paired(first)) == NUM_COLLECTIVES


@pytest.mark.parametrize("late_us", [0, 2_500])
def test_a_real_window_that_begins_a_step_later_holds_the_later_ones_of_the_same(
    folder: Path, tmp_path: Path, late_us: int
) -> None:
    def change(top: Top) -> None:
        begins_a_step_later(top)
        later(late_us)(top)

    trace = opened(tmp_path / "job", "mirrored", change)

    first, _ = as_it_is(folder, "mirrored")
    met = paired(trace)
    assert 0 < len(met) < NUM_COLLECTIVES
    assert all(one == other for one, other in met)
    assert findings_of(trace)["counts"]["COL001"] == 0
    assert blamed_sums(trace, 0) == blamed_sums(first, 0)


@pytest.mark.parametrize("place", [3, 10])
@pytest.mark.parametrize("change", [lacks, swaps])
def test_a_real_collective_that_is_lacking_or_swapped_is_where_ranks_part_or_nothing_is_paired(
    folder: Path, tmp_path: Path, change: Callable[[int], Callable[[Top], None]], place: int
) -> None:
    trace = opened(tmp_path / "job", "mirrored", change(place))

    first, _ = as_it_is(folder, "mirrored")
    findings, met = findings_of(trace), paired(trace)
    assert not_paired(findings) or findings["counts"]["COL001"] == 1
    assert all(one == other for one, other in met[:-1])
    assert findings["counts"]["TRC002"] == 0
    assert blamed_sums(trace, 0) == blamed_sums(first, 0)
    if change is swaps:
        assert blamed_sums(trace) == blamed_sums(first)


def test_a_device_that_comes_late_to_real_collectives_is_found(
    folder: Path, tmp_path: Path
) -> None:
    trace = opened(tmp_path / "job", "mirrored", enters_later(LATE_US))

    first, told = as_it_is(folder, "mirrored")
    (found,) = [each for each in findings_of(trace)["findings"] if each["code"] == "COL008"]
    assert found["rank"] == 1
    assert told.findings["counts"]["COL008"] == 0
    num_late = len(kernels(rank_files("mirrored")[1]))
    assert blamed_sums(trace, 0) == blamed_sums(first, 0)
    less_ns = _communication_ns(first) - _communication_ns(trace)
    assert 0 < less_ns <= num_late * LATE_US * 1_000


def _communication_ns(trace: Trace) -> int:
    return int(blame(trace).requests.filter(rank=1)["communication_ns"].item())
