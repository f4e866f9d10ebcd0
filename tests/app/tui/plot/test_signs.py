"""Every sign that stands for a state on a trace's lanes is told by the legend over them."""

from __future__ import annotations

import pytest

from stepscope.app.present.spans.legend import states_of
from stepscope.app.timeline import SpanView, Timeline, Viewport
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import BACKGROUND, TEXT, ink
from stepscope.app.tui.plot.lane_painter import LanePainter, Painting, Shown, section_legend
from stepscope.app.tui.plot.span_bars import FILLS, GROWING, RISING, Plot, paint_spans
from stepscope.app.tui.widgets.state_legend import legend
from stepscope.ingest.trace import Trace
from tests.app.timeline.drawn_lanes import spans_of
from tests.app.timeline.test_front_end_lanes import LIFE
from tests.conftest import ROOT
from tests.tiers import sampled
from tests.traces import trace_of

SAMPLES = (
    "vllm_crowd.trace", "fcfs-preemption-before.trace", "mix-admission-before.trace",
    "torch_profiler_cpu.json.gz",
)  # fmt: skip


def signs_of(span: SpanView) -> set[str]:
    """What a bar of a few cells shows, in which no label has room."""
    line = Line(3, ink(TEXT, BACKGROUND))
    plot = Plot(0, 3, Viewport(span.start_ns, max(span.end_ns, span.start_ns + 1)))
    paint_spans(line, plot, [span._replace(label="without room")], (), BACKGROUND)
    shares = set(RISING) if span.parts else set()
    return {line.glyph(x) for x in range(3)} - set(GROWING) - shares


def told_of(sign: str, section: str, timeline: Timeline) -> bool:
    """Whether the header tells a sign; what fills bars is told beside the tabs."""
    beside = " ".join(each.text for each in legend(Navigator(timeline)))
    over = " ".join(section_legend(section, timeline))
    return sign in over or (sign in FILLS.values() and sign in beside)


@pytest.mark.parametrize("sample", sampled(SAMPLES, ["mix-admission-before.trace"]))
def test_every_sign_that_is_drawn_on_a_lane_stands_in_its_legend(sample: str) -> None:
    timeline = Timeline.of(Trace.open(ROOT / "sample_traces" / sample))
    seen: dict[str, dict[int, SpanView]] = {}
    for lane in timeline.lanes:
        for span in spans_of(timeline, lane.id):
            seen.setdefault(lane.section, {})[span.state] = span

    untold = {
        (section, sign)
        for section, spans in seen.items()
        for span in spans.values()
        for sign in signs_of(span)
        if not told_of(sign, section, timeline)
    }
    assert seen
    assert untold == set()


def test_the_header_names_the_front_end_and_being_in_no_batch_where_a_request_is_in_them() -> None:
    batch = {"step": 1, "ts_ns": 500, "row": 0, "request": "q", "phase": "decode", "num_tokens": 1}
    timeline = Timeline.of(trace_of(lifecycle=LIFE, batch_rows=[batch]))

    assert section_legend("requests", timeline) == [
        "» front end", "┄ waiting", "D decode", "· in no batch",
    ]  # fmt: skip


def test_the_header_names_running_where_no_batch_is_recorded() -> None:
    timeline = Timeline.of(trace_of(lifecycle=LIFE))

    assert section_legend("requests", timeline) == ["» front end", "┄ waiting", "█ running"]


def test_the_header_names_moments_where_something_took_no_time() -> None:
    span = {"ts_ns": 5, "dur_ns": 10, "track": "t", "name": "k", "form": "slice"}
    timed = Timeline.of(trace_of(spans=[span]))
    instant = {**span, "ts_ns": 40, "dur_ns": None, "form": "instant"}
    with_moment = Timeline.of(trace_of(spans=[span, instant]))

    assert "◆ moment" not in section_legend("tracks", timed)
    assert "◆ moment" in section_legend("tracks", with_moment)


def test_both_legends_name_a_state_as_the_lanes_do_that_alone_have_it() -> None:
    batch = {"step": 1, "ts_ns": 500, "row": 0, "request": "q", "phase": "decode", "num_tokens": 1}
    idle = {"step": 2, "ts_ns": 800, "dur_ns": 50, "kind": "idle"}
    of_requests = Timeline.of(trace_of(lifecycle=LIFE, batch_rows=[batch]))
    of_both = Timeline.of(trace_of(lifecycle=LIFE, batch_rows=[batch], steps=[idle]))

    for timeline, word in ((of_requests, "in no batch"), (of_both, "idle")):
        assert word in [each.text.strip() for each in legend(Navigator(timeline))]
        assert word in [word for _, word in states_of(timeline)]


def test_the_header_names_no_state_that_the_trace_has_not() -> None:
    arrived = {"ts_ns": 0, "request": "r", "event": "arrive"}
    timeline = Timeline.of(trace_of(lifecycle=[arrived, {**arrived, "ts_ns": 9, "event": "admit"}]))

    assert "» front end" not in section_legend("requests", timeline)


def test_a_counter_is_drawn_from_its_first_sample_on_and_what_was_before_is_not_zero() -> None:
    came = {"ts_ns": 0, "request": "r", "event": "arrive"}
    free = {"step": 1, "ts_ns": 500, "dur_ns": 499, "kind": "decode", "kv_blocks_free": 0}
    state = Navigator(Timeline.of(trace_of(lifecycle=[came], steps=[free])))
    plot = Plot(12, 10, Viewport(0, 1_000))
    shown = Shown(state.timeline, state.rows, 0, len(state.rows), plot, frozenset())
    row = next(at for at, row in enumerate(state.rows) if row.lane and row.lane.kind == "counter")

    line = LanePainter(state, Painting.of(shown)).strip(row).text

    assert line[12:] == "┊    ▁▁▁▁▁"
