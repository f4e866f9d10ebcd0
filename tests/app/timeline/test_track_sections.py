"""The tracks of a profile stand by what they are of: streams, collectives, threads, Python."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes.tracks import PYTHON, SAYS
from stepscope.app.timeline.navigator import Navigator
from stepscope.ingest.trace import Trace
from tests.app.timeline.drawn_lanes import drawn
from tests.app.timeline.profiles import call, kernel
from tests.tiers import slow
from tests.traces import trace_of

FUNCTION = {"track": "python CPU / thread 1", "category": "python_function", "form": "slice"}
PROFILE = trace_of(
    steps=[{"step": 1, "kind": "decode", "dur_ns": 5}],
    lifecycle=[{"request": "a", "event": "arrive"}],
    spans=[
        {**FUNCTION, "name": "main", "ts_ns": 0, "dur_ns": 100},
        {**FUNCTION, "name": "alone", "track": "python CPU / thread 2", "ts_ns": 0, "dur_ns": 9},
        call("cudaLaunchKernel", 10, 5),
        kernel("gemm", 20, 30, stream=7, gpu=1),
        kernel("gemm", 20, 30, stream=10),
        kernel("gemm", 20, 30, stream=9),
        kernel("ncclDevKernel_AllReduce", 20, 30, stream=20),
        {"track": "PyTorch Profiler", "name": "window", "ts_ns": 0, "dur_ns": 100},
    ],
    counters=[{"name": "memory", "value": 1.0}],
)


def rows_of(timeline: Timeline) -> list[tuple[str, str, str]]:
    return [(lane.section, lane.group, lane.label) for lane in timeline.lanes]


@slow
def test_a_profile_reads_from_steps_over_streams_and_threads_to_python() -> None:
    lanes = rows_of(Timeline.of(PROFILE))

    assert lanes == [
        ("steps", "", "engine"),
        ("GPU streams", "python GPU 0", "stream 9"),
        ("GPU streams", "python GPU 0", "stream 10"),
        ("GPU streams", "python GPU 1", "stream 7"),
        ("collectives", "python GPU 0", "stream 20"),
        ("requests", "", "a"),
        ("CPU threads", "python CPU", "thread 1"),
        ("tracks", "", "PyTorch Profiler"),
        ("Python", "python CPU", "thread 1"),
        ("Python", "python CPU", "thread 2"),
        ("counters", "", "memory"),
    ]


def test_the_order_does_not_hang_on_that_of_the_rows() -> None:
    backward = PROFILE.table("spans").collect().reverse()

    turned = trace_of(spans=backward.to_dicts())

    others = ("steps", "requests", "counters")
    of_spans = [row for row in rows_of(Timeline.of(PROFILE)) if row[0] not in others]
    assert rows_of(Timeline.of(turned)) == of_spans


def test_a_stream_with_collectives_and_other_kernels_is_a_stream() -> None:
    both = trace_of(spans=[kernel("gemm", 0, 5), kernel("ncclDevKernel_AllReduce", 5, 5)])

    assert rows_of(Timeline.of(both)) == [("GPU streams", "python GPU 0", "stream 7")]


def test_python_is_collapsed_until_it_is_asked_for_and_found_there() -> None:
    timeline = Timeline.of(PROFILE)
    view = Navigator(timeline, collapsed=set(timeline.collapsed_at_first))
    python = [lane.id for lane in timeline.lanes if lane.section == PYTHON]
    (found,) = timeline.find("main")

    assert view.row_of(python[0]) is None
    view.visit(found)

    assert view.lane == found.lane == python[0]
    assert view.row_of(python[0]) is not None
    assert view.span is not None
    assert view.span.label == "main"


def test_python_alone_is_not_collapsed() -> None:
    alone = trace_of(spans=[{**FUNCTION, "name": "main", "dur_ns": 5}])

    assert Timeline.of(alone).collapsed_at_first == frozenset()
    assert drawn(Timeline.of(alone), PYTHON).keys() == {"python CPU thread 1"}


@slow
@pytest.mark.parametrize(
    "name",
    [
        "h100_qwen15_05b_chat",
        "hta_nccl_data",
        "sglang_qwen3_8b_prefilldecode",
        "hta_sampled_rank-0",
    ],
)
def test_each_section_of_a_real_profile_has_the_spans_that_a_count_of_rows_has(
    shared_data: Path, name: str
) -> None:
    trace = Trace.open(shared_data / "kineto" / f"{name}.json.gz")
    _check_sections(trace)


def test_each_section_of_the_sample_has_the_spans_that_a_count_of_rows_has() -> None:
    _check_sections(Trace.open(Path("sample_traces/torch_executor_cpu.json.gz")))


def _check_sections(trace: Trace) -> None:
    """Count by hand what each section has, and see that sections are not torn apart."""
    timeline = Timeline.of(trace)
    sections = [section for section, _ in groupby(timeline.lanes, key=lambda lane: lane.section)]
    assert len(sections) == len(set(sections))
    shown = dict.fromkeys(SAYS, 0)
    for lane in timeline.lanes:
        if lane.section in SAYS:
            shown[lane.section] += len(timeline.spans(lane.id, *timeline.bounds, 10**7))
    rows = trace.spans.select("category").collect()["category"].to_list()
    assert shown["Python"] == rows.count("python_function")
    on_device = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
    assert shown["GPU streams"] + shown["collectives"] == sum(map(rows.count, on_device))
    assert sum(shown.values()) == len(rows)
