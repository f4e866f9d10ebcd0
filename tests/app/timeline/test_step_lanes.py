"""The lanes of steps: kinds, shares of prefill, and steps that never ended."""

from __future__ import annotations

import pytest

from stepscope.app.palette import DECODE, MIXED
from stepscope.app.timeline import Timeline
from tests.app.timeline.drawn_lanes import drawn, spans_of
from tests.traces import trace_of


def test_steps_show_their_kind_and_a_mixed_step_is_one_span() -> None:
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
            (10, 110, "mixed", "1P 5D"),
            (110, 120, "decode", "D 6"),
            (120, 130, "idle", "idle"),
        ]
    }


@pytest.mark.parametrize(
    ("tokens", "states"),
    [((5, 0), ["prefill"]), ((0, 5), ["decode"]), ((None, None), ["mixed"])],
)
def test_a_mixed_step_of_one_phase_alone_shows_that_phase(
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


def test_a_step_that_is_known_by_its_batch_alone_is_mixed_by_the_phases_of_its_rows() -> None:
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

    timeline = Timeline.of(trace)

    assert spans_of(timeline, 0)[1].parts == (0.2, 0.3, 0.5)
    assert drawn(timeline, "steps")["engine"] == [
        (0, 60, "decode", "D 1"),
        (100, 200, "mixed", "M"),
        (200, 300, "span 1", "step 3"),
    ]


def test_a_mixed_step_tells_its_share_of_tokens_and_counts_once_in_sums() -> None:
    step = {
        "step": 1, "dur_ns": 2048, "kind": "mixed", "num_prefill_tokens": 2047,
        "num_decode_tokens": 1,
    }  # fmt: skip
    timeline = Timeline.of(trace_of(steps=[step]))

    (span,) = spans_of(timeline, 0)
    sums = timeline.area(0, 2048, [0]).by_state

    assert span.parts == (0.0, 2047 / 2048, 1 / 2048)
    assert sums.select("state", "num_spans", "ns").rows() == [("mixed", 1, 2048)]


def test_a_mixed_step_whose_tokens_are_not_recorded_has_no_parts() -> None:
    timeline = Timeline.of(trace_of(steps=[{"step": 1, "dur_ns": 10, "kind": "mixed"}]))

    assert [span.parts for span in spans_of(timeline, 0)] == [()]


def test_a_prefill_step_that_recomputes_is_cut_by_its_tokens() -> None:
    row = {"step": 1, "ts_ns": 0, "request": "a", "phase": "prefill"}
    trace = trace_of(
        steps=[{"step": 1, "dur_ns": 100, "kind": "prefill", "num_prefill_tokens": 100}],
        batch_rows=[row | {"num_tokens": 20, "is_recompute": True}, row | {"num_tokens": 80}],
    )

    assert drawn(Timeline.of(trace), "steps")["engine"] == [
        (0, 20, "recompute", "R"), (20, 100, "prefill", "P"),
    ]  # fmt: skip


def test_one_mixed_step_of_thousands_marks_its_pixel_though_decodes_fill_it() -> None:
    steps = [{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(2000)]
    steps[1234]["kind"] = "mixed"
    timeline = Timeline.of(trace_of(steps=steps))

    picture = timeline.query(*timeline.bounds, 100, [0])
    without = timeline.query(*timeline.bounds, 100, [0], hidden=[MIXED])
    load = timeline.load(100)

    assert set(picture.state[0].tolist()) == {DECODE}
    assert picture.mark[0].tolist() == [MIXED if at == 61 else 0 for at in range(100)]
    assert not without.mark.any()
    assert load.mixed_runs() == [61]


def test_a_step_that_never_ended_reaches_the_end_of_the_trace() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 5, "kind": "decode"}],
        lifecycle=[{"ts_ns": 50, "request": "a", "event": "arrive"}],
    )

    assert drawn(Timeline.of(trace), "steps")["engine"] == [(5, 51, "decode", "D")]
