"""Steps as the GPU executed them, and how busy it was, against a count by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepscope.app.timeline import Timeline
from stepscope.ingest.trace import Trace
from tests.app.timeline.drawn_lanes import drawn, spans_of
from tests.app.timeline.profiles import kernel
from tests.tiers import slow
from tests.traces import trace_of


def test_a_step_is_drawn_when_the_gpu_executed_it_too() -> None:
    step = {"kind": "decode", "num_decode_reqs": 2, "dur_ns": 90}
    timeline = Timeline.of(
        trace_of(
            steps=[
                {**step, "step": 1, "ts_ns": 0, "gpu_ts_ns": 30, "gpu_dur_ns": 60},
                {**step, "step": 2, "ts_ns": 100},
            ]
        )
    )

    assert drawn(timeline, "steps") == {
        "engine": [(0, 90, "decode", "D 2"), (100, 190, "decode", "D 2")],
        "on the GPU": [(30, 90, "decode", "D 2")],
    }


def test_a_moment_counts_once_however_many_streams_are_busy_in_it() -> None:
    spans = [kernel("a", 0, 40), kernel("b", 20, 30, stream=8), kernel("c", 80, 20)]

    load = Timeline.of(trace_of(spans=spans)).load(10)

    assert load.what == "GPU busy"
    assert load.shares[0].tolist() == [1, 1, 1, 1, 1, 0, 0, 0, 1, 1]


def test_the_load_of_two_gpus_is_their_average() -> None:
    spans = [kernel("a", 0, 100), kernel("b", 0, 50, gpu=1)]

    assert Timeline.of(trace_of(spans=spans)).load(2).shares[0].tolist() == [1, 0.5]


@slow
@pytest.mark.parametrize("name", ["h100_qwen15_05b_chat", "hta_nccl_data", "hta_sampled_rank-1"])
def test_load_and_steps_of_a_real_profile_are_those_of_its_kernels(
    shared_data: Path, name: str
) -> None:
    trace = Trace.open(shared_data / "kineto" / f"{name}.json.gz")
    timeline = Timeline.of(trace)
    first, last = timeline.bounds
    rows = trace.spans.select("category", "step", "ts_ns", "dur_ns").collect().to_dicts()
    ran = [row for row in rows if row["category"] in ("kernel", "gpu_memcpy", "gpu_memset")]

    busy, reached = 0, first
    for row in sorted(ran, key=lambda row: row["ts_ns"]):
        end = row["ts_ns"] + row["dur_ns"]
        busy += max(0, end - max(row["ts_ns"], reached))
        reached = max(reached, end)
    assert float(timeline.load(1).shares[0, 0]) == pytest.approx(busy / (last - first), rel=1e-6)
    assert np.all(timeline.load(500).shares <= 1 + 1e-6)

    lanes = [lane for lane in timeline.lanes if lane.label == "on the GPU"]
    shown = {(span.start_ns, span.end_ns) for lane in lanes for span in spans_of(timeline, lane.id)}
    of_steps: dict[int, list[tuple[int, int]]] = {}
    for row in ran:
        if row["step"] is not None:
            of_steps.setdefault(row["step"], []).append(
                (row["ts_ns"], row["ts_ns"] + row["dur_ns"])
            )
    assert shown == {
        (min(start for start, _ in spans), max(end for _, end in spans))
        for spans in of_steps.values()
    }
