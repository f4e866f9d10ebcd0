"""A folder of torch.profiler files: ranks, epochs, clocks, and what is in the way."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.collectives.clocks import AGREE_NS, Apart, clock_offsets
from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.readers import rank_folder
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows, slice_
from tests.ingest.log_files import report_of
from tests.ingest.real_files import GLOO
from tests.tiers import slow

ENDS_US = (1_000, 2_000, 3_000, 4_000, 5_000)


def met(number: int, end_us: float) -> list[dict[str, Any]]:
    """An all-reduce of the group's number so and so: its call, and its kernel."""
    said: dict[str, Any] = {
        "External id": number + 1,
        "Seq": number + 1,
        "In msg nelems": 64 + number,
    }
    said |= {"Collective name": "allreduce", "Process Group Name": "tp"}
    args = {"stream": 7, "External id": number + 1}
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    return [
        slice_("record_param_comms", end_us - 300, 40, cat="cpu_op", args=said),
        slice_(name, end_us - 40, 40, cat="kernel", tid=7, args=args),
    ]


def rank_file(folder: Path, name: str, rank: int | None, late_us: float = 0, **more: Any) -> None:
    """A rank that leaves all-reduces `late_us` after the others do, by its own clock."""
    events = [each for number, end in enumerate(ENDS_US) for each in met(number, end + late_us)]
    info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 2}}
    content = json.dumps({"schemaVersion": 1, **info, **more, "traceEvents": events}).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def first_ns(trace: Trace, table: str = "spans") -> dict[int, int]:
    found = trace.table(table).group_by("rank").agg(pl.col("ts_ns").min()).collect()
    return dict(found.iter_rows())


def assert_moved(trace: Trace) -> None:
    """Rank 1, which was 2.5 ms late, begins when rank 0 does, and the report says so."""
    for table in ("spans", "collectives"):
        starts = first_ns(trace, table)
        assert starts[1] == starts[0]
    assert (
        "clock of rank 1 is moved by -2.500 ms: the ends of 5 collectives then agree with rank "
        "0's within 0.000 ms"
    ) in report_of(trace).notes
    said = trace.manifest.config["clocks"]["1"]
    assert (said["least_ns"], said["most_ns"]) == (2_460_000, 2_540_000)
    assert said["paired_by"] == "sequence numbers"


def test_each_file_is_the_rank_that_it_says(tmp_path: Path) -> None:
    rank_file(tmp_path, "b.json", 0)
    rank_file(tmp_path, "a.json.gz", 3)
    rank_file(tmp_path, "trace_rank-5.json", None)

    trace = Trace.open(tmp_path)

    assert trace.manifest.ranks == (0, 3, 5)
    assert trace.manifest.config["files"] == {
        "0": "b.json", "3": "a.json.gz", "5": "trace_rank-5.json",
    }  # fmt: skip
    assert first_ns(trace).keys() == {0, 3, 5}
    assert report_of(trace).read["X"] == 30


def test_a_clock_that_is_late_by_the_ends_of_collectives_is_moved(tmp_path: Path) -> None:
    rank_file(tmp_path, "a.json", 0)
    rank_file(tmp_path, "b.json", 1, late_us=2_500)

    assert_moved(Trace.open(tmp_path))


def test_a_clock_that_agrees_is_left_as_it_is(tmp_path: Path) -> None:
    rank_file(tmp_path, "a.json", 0)
    rank_file(tmp_path, "b.json", 1)

    notes = report_of(Trace.open(tmp_path)).notes

    assert any(note.startswith("clock of rank 1 agrees with rank 0's") for note in notes)


def test_clocks_are_not_moved_by_ends_that_are_scattered(tmp_path: Path) -> None:
    rank_file(tmp_path, "a.json", 0)
    late = (900, 1, -400, 3_000, 2_200)
    ends = [end + by for end, by in zip(ENDS_US, late, strict=True)]
    events = [each for number, end in enumerate(ends) for each in met(number, end)]
    content = {"schemaVersion": 1, "distributedInfo": {"rank": 1}, "traceEvents": events}
    (tmp_path / "b.json").write_text(json.dumps(content))
    alone = first_ns(Trace.open(tmp_path / "b.json"))

    trace = Trace.open(tmp_path)

    assert first_ns(trace)[1] == alone[1]
    assert any("not those of one difference" in note for note in report_of(trace).notes)


def test_files_whose_times_count_from_different_moments_are_put_on_one(tmp_path: Path) -> None:
    base = 1_700_000_000_000_000_000
    rank_file(tmp_path, "a.json", 0, baseTimeNanoseconds=base)
    rank_file(tmp_path, "b.json", 1, late_us=-1_000_000, baseTimeNanoseconds=base + 10**9)

    trace = Trace.open(tmp_path)

    starts = first_ns(trace)
    assert starts[0] == starts[1]
    assert trace.manifest.clock.epoch_ns == base
    assert any("agrees with rank 0's" in note for note in report_of(trace).notes)


def test_two_files_of_one_rank_stay_apart(tmp_path: Path) -> None:
    rank_file(tmp_path, "a.json", 0)
    rank_file(tmp_path, "b.json", 0)
    rank_file(tmp_path, "c.json", 1)

    trace = Trace.open(tmp_path)

    assert trace.manifest.ranks == (0, 1, 2)
    assert trace.manifest.config["files"]["2"] == "b.json"
    assert "b.json is of rank 0, as is another file: shown as rank 2" in report_of(trace).notes


def test_what_cannot_be_read_is_counted_and_named(tmp_path: Path) -> None:
    rank_file(tmp_path, "a.json", 0)
    (tmp_path / "cut.json").write_text('{"traceEvents": [{"ph": "X"')
    (tmp_path / "notes.txt").write_text("remember the milk")
    (tmp_path / "below").mkdir()

    trace = Trace.open(tmp_path)

    assert report_of(trace).skipped == {
        "files of another format": 1,
        "files that cannot be read": 1,
    }
    assert any(note.startswith("cut.json: cut off after") for note in report_of(trace).notes)


def test_a_folder_in_which_no_file_can_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"traceEvents": [{"ph": "X"')

    with pytest.raises(TraceError, match=r"no file in it can be read: cut\.json: "):
        Trace.open(tmp_path)


def test_a_folder_of_other_files_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk")

    with pytest.raises(UnknownFormat, match="the directory holds no trace"):
        Trace.open(tmp_path)


def test_files_beyond_the_limit_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_folder, "LIMIT_FILES", 2)
    for rank in range(4):
        rank_file(tmp_path, f"{rank}.json", rank)

    trace = Trace.open(tmp_path)

    assert trace.manifest.ranks == (0, 1)
    assert list(report_of(trace).skipped.values()) == [2]


@given(
    st.integers(-(10**9), 10**9),
    st.lists(st.integers(-1_000, 1_000), min_size=3, max_size=30),
)
def test_the_offset_is_within_the_noise(late_ns: int, noise: list[int]) -> None:
    ends_ns = np.array([late_ns + each for each in noise])
    apart = Apart(0, 1, ends_ns, late_ns - 10**4, late_ns + 10**4, "")

    (offset,) = clock_offsets([apart], 0, [1])

    assert offset.num == len(noise)
    assert abs(offset.offset_ns - late_ns) <= 1_000
    assert offset.residual_ns <= 2_000
    assert abs(late_ns + offset.correction_ns) <= max(1_000, AGREE_NS + 1_000)


def test_a_clock_is_compared_over_the_rank_that_is_surest() -> None:
    def apart(base: int, rank: int, late_ns: int, noise_ns: int) -> Apart:
        ends_ns = late_ns + np.array([-noise_ns, 0, noise_ns])
        return Apart(base, rank, ends_ns, late_ns - 10**6, late_ns + 10**6, "")

    edges = apart(0, 1, 200_000, 10), apart(1, 2, 500_000, 10), apart(0, 2, 800_000, 9_000)

    offsets = clock_offsets(edges, 0, [1, 2])

    assert [each.offset_ns for each in offsets] == [200_000, 700_000]
    assert [each.base for each in offsets] == [0, 1]
    assert offsets[1].least_ns == 200_000 + 500_000 - 2 * 10**6


@slow
def test_a_real_pair_of_ranks_is_one_trace(shared_data: Path, tmp_path: Path) -> None:
    ranks = [shared_data / "kineto" / f"hta_sampled_rank-{rank}.json.gz" for rank in (0, 1)]
    for file in ranks:
        (tmp_path / file.name).write_bytes(file.read_bytes())

    trace = Trace.open(tmp_path)

    assert trace.manifest.ranks == (0, 1)
    each = [Trace.open(file) for file in ranks]
    for table in ("steps", "spans", "collectives"):
        assert trace.num_rows(table) == sum(one.num_rows(table) for one in each)
    assert rows(trace, "steps", "rank", "step") == [(0, 551), (0, 552), (1, 551), (1, 552)]
    assert any("clock of rank 1 is not compared" in note for note in report_of(trace).notes)


@slow
def test_two_ranks_over_gloo_are_one_trace_on_one_clock() -> None:
    """Both ran on one machine: the ends of what blocks until all have come agree."""
    files = [GLOO / f"rank{rank}.json.gz" for rank in (0, 1)]
    apart = [Trace.open(file) for file in files]
    blocking = [
        event["name"]
        for event in json.loads(gzip.decompress(files[1].read_bytes()))["traceEvents"]
        if event["name"] in ("gloo:all_reduce", "gloo:all_gather")
    ]

    trace = Trace.open(GLOO)

    for table in ("steps", "spans", "collectives"):
        assert trace.num_rows(table) == sum(one.num_rows(table) for one in apart)
    assert rows(trace, "steps", "rank", "ts_ns", "dur_ns") == [
        (rank, *row)
        for rank, one in enumerate(apart)
        for row in rows(one, "steps", "ts_ns", "dur_ns")
    ]
    clock = trace.manifest.config["clocks"]["1"]
    assert (clock["collectives"], clock["moved_ns"]) == (len(blocking), 0)
    assert abs(clock["offset_ns"]) < clock["residual_ns"] < 1_000_000
