"""The lanes of steps: kinds, shares of prefill, and steps that never ended."""

from __future__ import annotations

import pytest

from stepscope.app.timeline import Timeline
from tests.app.timeline.drawn_lanes import drawn
from tests.traces import trace_of


def test_steps_show_their_kind_and_a_mixed_step_its_share_of_prefill() -> None:
    trace = trace_of(
        steps=[
            {"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "prefill", "num_prefill_reqs": 2},
            {
                "step": 2, "ts_ns": 10, "dur_ns": 100, "kind": "mixed",
                "num_prefill_reqs": 1, "num_decode_reqs": 5,
                "num_prefill_tokens": 30, "num_decode_tokens": 10,
            },
            {"step": 3, "ts_ns": 110, "dur_ns": 10, "kind": "decode", "num_decode_reqs": 6},
            {"step": 4, "ts_ns": 120, "dur_ns": 10, "kind": "idle"},
        ]
    )  # fmt: skip

    assert drawn(Timeline.of(trace), "steps") == {
        "engine": [
            (0, 10, "prefill", "P 2"),
            (10, 85, "prefill", "1P"),
            (85, 110, "decode", "5D"),
            (110, 120, "decode", "D 6"),
            (120, 130, "idle", "idle"),
        ]
    }


@pytest.mark.parametrize(
    ("tokens", "states"),
    [((5, 0), ["prefill"]), ((0, 5), ["decode"]), ((None, None), ["prefill", "decode"])],
)
def test_a_mixed_step_shows_only_the_parts_that_it_has(
    tokens: tuple[int | None, int | None], states: list[str]
) -> None:
    step = {"step": 1, "dur_ns": 10, "kind": "mixed"}
    trace = trace_of(
        steps=[step | {"num_prefill_tokens": tokens[0], "num_decode_tokens": tokens[1]}]
    )

    timeline = Timeline.of(trace)

    assert [state for _, _, state, _ in drawn(timeline, "steps")["engine"]] == states
    assert len(timeline.lanes) == 1


def test_a_step_whose_kind_nobody_knows_is_named_by_its_number() -> None:
    trace = trace_of(steps=[{"step": 6, "ts_ns": 0, "dur_ns": 10, "kind": None}])

    assert drawn(Timeline.of(trace), "steps")["engine"] == [(0, 10, "span 1", "step 6")]


def test_a_step_that_is_known_by_its_batch_alone_is_split_by_the_tokens_of_its_rows() -> None:
    row = {"step": 2, "ts_ns": 100}
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 60, "kind": "decode", "num_decode_reqs": 1}],
        batch_rows=[
            {**row, "request": "a", "phase": "prefill", "num_tokens": 30},
            {**row, "request": "b", "phase": "prefill", "num_tokens": 20, "is_recompute": True},
            {**row, "request": "c", "phase": "decode", "num_tokens": 50},
            {"step": 3, "ts_ns": 200, "request": "c", "phase": None, "num_tokens": 1},
        ],
        counters=[{"name": "c", "ts_ns": 299, "value": 1.0}],
    )

    assert drawn(Timeline.of(trace), "steps")["engine"] == [
        (0, 60, "decode", "D 1"),
        (100, 120, "recompute", "R"),
        (120, 150, "prefill", "P"),
        (150, 200, "decode", "D"),
        (200, 300, "span 1", "step 3"),
    ]


def test_a_step_that_never_ended_reaches_the_end_of_the_trace() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 5, "kind": "decode"}],
        lifecycle=[{"ts_ns": 50, "request": "a", "event": "arrive"}],
    )

    assert drawn(Timeline.of(trace), "steps")["engine"] == [(5, 51, "decode", "D")]
