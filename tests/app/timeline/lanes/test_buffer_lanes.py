"""The lanes of buffers: accesses by stream, contents by buffer, and what was overwritten."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app import palette
from stepscope.app.present.details import span_blocks
from stepscope.app.present.plain_text import lines
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.section_states import states_in
from stepscope.ingest.trace import Trace
from tests.analyzers.rank_rows import access, ordered, sync
from tests.app.timeline.drawn_lanes import drawn, spans_of
from tests.traces import trace_of

STEP = {"step": 1, "ts_ns": 0, "dur_ns": 100, "kind": "mixed"}
SEGMENTS = [
    {"step": 1, "ts_ns": 0, "segment": 0, "phase": "prefill", "num_rows": 1, "num_tokens": 1},
    {"step": 1, "ts_ns": 0, "segment": 1, "phase": "decode", "num_rows": 1, "num_tokens": 1},
]
WRITE = access("host", "write", 10, segment=0, epoch=1)
COPY = access("copy", "copy", 20, segment=0, epoch=1)
AGAIN = access("host", "write", 50, segment=1, epoch=2)


def a_trace(*more: dict[str, object]) -> Trace:
    return trace_of(steps=[STEP], segments=SEGMENTS, accesses=[WRITE, COPY, *more, AGAIN])


def overwritten(timeline: Timeline) -> list[SpanView]:
    return [
        span
        for lane in timeline.lanes
        for span in spans_of(timeline, lane.id)
        if span.state == palette.OVERWRITTEN
    ]


def test_streams_show_accesses_as_moments_and_buffers_show_their_contents() -> None:
    timeline = Timeline.of(a_trace(*ordered("copy", "host", 30)))

    assert drawn(timeline, "buffers") == {
        "streams copy": [(20, 20, "prefill", "copy b"), (30, 30, "waiting", "record e")],
        "streams host": [
            (10, 10, "prefill", "write b"),
            (31, 31, "waiting", "wait e"),
            (50, 50, "decode", "write b"),
        ],
        "buffers b": [
            (10, 20, "prefill", "segment 0 · epoch 1"),
            (50, 50, "decode", "segment 1 · epoch 2"),
        ],
    }


def test_contents_that_were_overwritten_in_flight_have_a_mark_that_every_legend_knows() -> None:
    timeline = Timeline.of(a_trace())

    assert [(each.start_ns, each.end_ns, each.label) for each in overwritten(timeline)] == [
        (20, 20, "late copy of b"),
        (50, 50, "overwrites b"),
        (20, 50, "overwritten"),
    ]
    shown = {state.name for state, _ in states_in("buffers", timeline)}
    assert shown == {"prefill", "decode", "overwritten"}
    assert palette.OVERWRITTEN in palette.IN_LEGEND


def test_a_mark_is_seen_however_short_it_is_and_is_hidden_when_asked() -> None:
    late = {"step": 1, "ts_ns": 10**9, "kind": "idle"}
    trace = trace_of(steps=[STEP, late], accesses=[WRITE, COPY | {"ts_ns": 49}, AGAIN])
    timeline = Timeline.of(trace)
    (lane,) = (lane.id for lane in timeline.lanes if lane.label == "b")

    seen = timeline.query(*timeline.bounds, 10, [lane]).state[0, 0]
    hidden = timeline.query(*timeline.bounds, 10, [lane], {palette.OVERWRITTEN}).state[0, 0]

    assert (seen, hidden) == (palette.OVERWRITTEN, palette.UNKNOWN)


def test_buffers_are_collapsed_at_first_unless_something_was_overwritten() -> None:
    assert Timeline.of(a_trace(*ordered("copy", "host", 30))).collapsed_at_first == {"buffers"}
    assert Timeline.of(a_trace()).collapsed_at_first == set()


def test_a_finding_about_a_buffer_and_a_search_lead_to_its_lane() -> None:
    timeline = Timeline.of(a_trace())
    found = Finding(
        "BUF001", "n", Severity.ERROR, "m", "f", rank=0, step=1, evidence={"buffer": "b"}
    )

    lane = timeline.lane_of(found)

    assert lane is not None
    assert timeline.lanes[lane].label == "b"
    assert [(hit.kind, hit.lane) for hit in timeline.find("b")] == [("buffer", lane)]
    assert [hit.kind for hit in timeline.find("stream copy")] == ["stream"]


def test_the_side_pane_says_who_wrote_who_read_when_and_what_overwrote_it() -> None:
    trace = a_trace()
    timeline = Timeline.of(trace)

    said = lines([*span_blocks(overwritten(timeline)[-1], timeline, trace)])

    text = "\n".join(said)
    assert "host wrote for segment 1, 30 ns after the copy for segment 0 was issued" in text
    for label, who in (
        ("written by", "host for segment 0, epoch 1, at 0.000010 ms"),
        ("read by", "copy for segment 0, epoch 1, at 0.000020 ms"),
        ("overwritten by", "host for segment 1, epoch 2, at 0.000050 ms"),
    ):
        assert any(line.startswith(label) and line.endswith(who) for line in said), label


def test_what_a_write_went_over_is_an_arrow_to_the_late_read() -> None:
    timeline = Timeline.of(a_trace())
    late = overwritten(timeline)[0]

    before = {tied.span.label for tied in timeline.flows.preceding(late, 8)}

    assert before == {"write b", "overwrites b"}


def test_accesses_of_no_buffer_stream_or_segment_break_nothing() -> None:
    rows = [
        sync("host", "record", 5),
        access("copy", "read", 7, "b"),
        {"ts_ns": 9, "op": "read", "stream": None},
    ]

    assert drawn(Timeline.of(trace_of(accesses=rows)), "buffers") == {
        "streams copy": [(7, 7, "span 1", "read b")],
        "streams host": [(5, 5, "waiting", "record")],
    }
