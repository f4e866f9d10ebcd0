"""The time of a request in the front end is drawn in its lane, before the engine and after it."""

from __future__ import annotations

from stepscope.app import palette
from stepscope.app.timeline import Timeline
from tests.traces import trace_of

LIFE = [
    {"ts_ns": at, "request": "r", "event": what}
    for at, what in (
        (0, "receive"), (40, "arrive"), (100, "admit"), (300, "finish"), (360, "deliver"),
    )
]  # fmt: skip


def test_the_front_end_and_the_delivery_are_spans_of_their_own() -> None:
    timeline = Timeline(trace_of(lifecycle=LIFE))

    (lane,) = (each.id for each in timeline.lanes if each.section == "requests")
    spans = timeline.spans(lane, 0, 1_000, 10)

    drawn = [(each.start_ns, each.end_ns, each.state, each.label) for each in spans]
    assert drawn == [
        (0, 40, palette.FRONT_END, "front end"),
        (40, 100, palette.WAITING, "waiting"),
        (100, 300, palette.UNKNOWN, "running"),
        (300, 360, palette.FRONT_END, "delivery"),
    ]


def test_who_was_let_in_is_in_no_batch_where_batches_are_recorded_and_else_runs() -> None:
    batch = {"step": 1, "ts_ns": 500, "row": 0, "request": "q", "phase": "decode", "num_tokens": 1}

    timeline = Timeline(trace_of(lifecycle=LIFE, batch_rows=[batch]))

    (lane,) = (each.id for each in timeline.lanes if each.label == "r")
    told = {span.label for span in timeline.spans(lane, 100, 300, 10)}

    assert "in no batch" in told
    assert "running" not in told
