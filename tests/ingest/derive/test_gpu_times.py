"""Steps on CPU and GPU, in whatever file they come."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.chrome import write_chrome
from stepscope.ingest.writers.perfetto import write_perfetto
from tests.ingest.kineto_files import Event, open_events, slice_
from tests.ingest.readers.chrome.test_folder import ENDS_US, met
from tests.tiers import slow

TIMES = ("step", "ts_ns", "dur_ns", "cpu_dur_ns", "gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns")


def profile(late_us: float = 0) -> list[Event]:
    """Two steps of 10 µs; the first launches a graph of two kernels, the second one kernel."""
    events = []
    for at, tag in enumerate(["decode[bs=2]", "decode[bs=3]"]):
        begun = 100 + 10 * at + late_us
        events += [
            slice_(tag, begun, 10, cat="user_annotation"),
            slice_("cudaGraphLaunch", begun + 2, 3, cat="cuda_runtime", args={"correlation": at}),
        ]
    for begun, correlation in ((108, 0), (110, 0), (130, 1)):
        args = {"correlation": correlation, "stream": 7, "graph id": 4}
        events.append(slice_("gemm", begun + late_us, 2, cat="kernel", tid=7, args=args))
    return events


EXPECTED = [
    (1, 100_000, 12_000, 10_000, 108_000, 4_000, 4_000),
    (2, 110_000, 22_000, 10_000, 130_000, 2_000, 2_000),
]


def times(trace: Trace) -> list[Any]:
    return trace.steps.select(TIMES).sort("step").collect().rows()


def test_a_step_of_a_profile_lasts_as_long_as_its_graph(tmp_path: Path) -> None:
    assert times(open_events(tmp_path, *profile())) == EXPECTED


def test_a_profile_without_correlations_is_tied_by_external_ids(tmp_path: Path) -> None:
    events = [
        {**event, "args": {"External id": event["args"]["correlation"]}}
        if "args" in event else event
        for event in profile()
    ]  # fmt: skip

    assert times(open_events(tmp_path, *events)) == EXPECTED


@slow
@pytest.mark.parametrize(
    ("name", "write"),
    [("out.json", write_chrome), ("out.pftrace", write_perfetto), ("out.trace", save_trace)],
    ids=["Chrome JSON", "Perfetto", "our own"],
)
def test_a_step_is_as_long_after_it_was_exported(
    tmp_path: Path, name: str, write: Callable[[Trace, Path], None]
) -> None:
    trace = open_events(tmp_path, *profile())

    write(trace, tmp_path / name)

    assert times(Trace.open(tmp_path / name)) == EXPECTED


@slow
def test_times_on_the_gpu_move_with_a_ranks_clock(tmp_path: Path) -> None:
    for rank, late_us in enumerate((0, 500)):
        ends = [each for at, end in enumerate(ENDS_US) for each in met(at, end + late_us)]
        content = {
            "schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2},
            "traceEvents": [*profile(late_us), *ends],
        }  # fmt: skip
        (tmp_path / f"{rank}.json").write_text(json.dumps(content))

    trace = Trace.open(tmp_path)

    for rank in (0, 1):
        of_rank = trace.steps.filter(rank=rank).select(TIMES).sort("step").collect()
        assert of_rank.rows() == EXPECTED


def test_what_belongs_to_no_step_is_told_by_the_report(tmp_path: Path) -> None:
    stray = slice_("gemm", 300, 2, cat="kernel", tid=7, args={"correlation": 9})

    report = open_events(tmp_path, *profile(), stray).manifest.report

    assert report
    assert report.notes == (
        "1 of 4 kernels and copies belong to no step: nothing says what launched them",
    )
