"""The lanes of segments: the parts of a mixed step, within its time."""

from __future__ import annotations

from stepscope.app.timeline import Timeline
from tests.app.timeline.drawn_lanes import drawn
from tests.traces import trace_of

STEP = {"step": 1, "ts_ns": 0, "dur_ns": 100, "kind": "mixed"}
PREFILL = {
    "step": 1, "ts_ns": 0, "segment": 0, "phase": "prefill", "num_rows": 2, "num_tokens": 3_000,
    "executed_path": "prefill",
}  # fmt: skip
DECODE = PREFILL | {"segment": 1, "phase": "decode", "num_tokens": 1_000, "executed_path": "mla"}


def test_a_mixed_step_shows_its_parts_with_their_rows_tokens_and_path() -> None:
    timeline = Timeline.of(trace_of(steps=[STEP], segments=[PREFILL, DECODE]))

    assert drawn(timeline, "segments") == {
        "segments": [
            (0, 75, "prefill", "prefill · 2 rows · 3,000 tokens"),
            (75, 100, "decode", "decode · 2 rows · 1,000 tokens · mla"),
        ]
    }


def test_halves_that_overlap_have_a_lane_each() -> None:
    step = STEP | {"kind": "prefill", "executed_path": "prefill+tbo"}
    halves = [PREFILL, PREFILL | {"segment": 1}]

    lanes = drawn(Timeline.of(trace_of(steps=[step], segments=halves)), "segments")

    assert {name: spans[0][:2] for name, spans in lanes.items()} == {
        "half 0": (0, 100),
        "half 1": (0, 100),
    }


def test_a_segment_that_has_not_ended_reaches_the_end_and_one_of_no_phase_is_unknown() -> None:
    segment = PREFILL | {"phase": None, "num_rows": None, "num_tokens": None}
    trace = trace_of(segments=[segment], counters=[{"ts_ns": 49, "name": "n", "value": 1.0}])

    assert drawn(Timeline.of(trace), "segments") == {
        "segments": [(0, 50, "span 1", "segment · prefill")]
    }


def test_a_trace_without_segments_has_no_lane_of_them() -> None:
    assert drawn(Timeline.of(trace_of(steps=[STEP])), "segments") == {}
