"""Figures for a notebook, by Plotly: what a trace's lanes show, and where its time went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from plotly import graph_objects as go

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.latency.blame import blame
from stepscope.app.palette import BACKGROUND, NOTHING, SEVERITY_MARKS, STATES, TEXT
from stepscope.app.present.blame_bars import Bars
from stepscope.app.present.where import lane_name
from stepscope.app.printable import plain
from stepscope.app.timeline import Lane, Timeline, Viewport
from stepscope.app.timeline.drawing import drawing_of
from stepscope.app.units import POSITION, UNITS, duration, of_one_trace
from stepscope.app.web.figures import layout
from stepscope.app.web.panes.blame import THICK, waterfall
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import POSITION_NS
from stepscope.ingest.trace import Trace

MOST_LANES, MOST_SPANS, PIXELS = 60, 1_000, 1_000
"""Lanes that a figure shows; spans of a lane that it shows one by one, and pixels of a fuller."""
MOST_REQUESTS = 40
LONGEST = 120
"""Letters of a name in a figure."""
ROW_PX, FRAME_PX = 20, 70


class _Bar(NamedTuple):
    """A part of a row: when it is, in ns of the trace's clock, and what is said of it."""

    row: int
    start_ns: int
    end_ns: int
    state: int
    said: str


def timeline_figure(
    trace: Trace, finding: Finding | None, window: tuple[int, int] | None
) -> go.Figure:
    """Lanes of a trace over [t0, t1) ns from its beginning, or those around a finding."""
    timeline = Timeline.of(trace)
    lanes, view = _looked_at(timeline, finding, window)
    has_times = trace.manifest.clock.has_times
    with of_one_trace(has_times=has_times):
        bars = [bar for row, lane in enumerate(lanes) for bar in _bars(timeline, row, lane, view)]
    figure = go.Figure(layout=_layout(_title(timeline, lanes, trace), len(lanes)))
    scale, unit = next((each for each in UNITS if view.span_ns >= each[0]), UNITS[-1])
    if not has_times:
        scale, unit = POSITION_NS, f"{POSITION}s"
    origin_ns = timeline.bounds[0]
    for state in sorted({bar.state for bar in bars}):
        own = [bar for bar in bars if bar.state == state]
        figure.add_bar(
            orientation="h",
            y=[bar.row for bar in own],
            base=[(bar.start_ns - origin_ns) / scale for bar in own],
            x=[(bar.end_ns - bar.start_ns) / scale for bar in own],
            name=_text(timeline.called(state)),
            width=THICK,  # else a state that is in every third row is drawn as high as three
            marker={"color": STATES[state].colour, "line": {"width": 0}, **_cue(state)},
            customdata=[bar.said for bar in own],
            hovertemplate="%{customdata}<extra></extra>",
        )
    names = [_text(lane_name(lane)) for lane in lanes]
    figure.update_yaxes(tickvals=[*range(len(lanes))], ticktext=names, autorange="reversed")
    shown = [(end - origin_ns) / scale for end in (view.t0, view.t1)]
    figure.update_xaxes(ticksuffix=f" {unit}", range=shown, showgrid=True)
    if finding is not None and finding.ts_ns is not None:
        ends = [(ns - origin_ns) / scale for ns in (finding.ts_ns, finding.end_ns or finding.ts_ns)]
        colour = SEVERITY_MARKS[finding.severity].colour
        figure.add_vrect(*ends, line={"color": colour, "width": 1}, fillcolor=colour, opacity=0.15)
    return figure


def blame_figure(trace: Trace, most: int = MOST_REQUESTS) -> go.Figure:
    """A bar for each of the slowest requests: what it was in when."""
    blamed = blame(trace)
    if blamed.requests.is_empty():
        raise ConfigError("there is nothing to blame: the trace has neither requests nor steps")
    rows = blamed.requests.top_k(most, by="latency_ns").to_dicts()
    figure = waterfall(Bars(blamed), rows)
    of = f"{len(rows):,} of {len(blamed.requests):,}"
    told = f"{of} requests, the slowest" if blamed.names_requests else f"{of} ranks"
    figure.update_layout(**_layout(f"{_text(trace.name)}: {told}", len(rows)))
    figure.update_layout(margin={"l": None})
    return figure


def _looked_at(
    timeline: Timeline, finding: Finding | None, window: tuple[int, int] | None
) -> tuple[Sequence[Lane], Viewport]:
    """Which lanes, and from when to when; raises ConfigError where there is nothing to see."""
    lanes: Sequence[Lane] = [
        lane
        for lane in timeline.lanes
        if lane.kind != "counter" and lane.section not in timeline.collapsed_at_first
    ][:MOST_LANES]
    view = Viewport(*timeline.bounds)
    if finding is not None:
        drawn = drawing_of(timeline, finding)
        lanes, view = [lane for lane in drawn.lanes if lane.kind != "counter"], drawn.view
    if window is not None:
        t0, t1 = (int(end) + timeline.bounds[0] for end in window)
        if t0 >= t1:
            raise ConfigError(f"{window} is no window", todo="give (t0, t1) in ns with t0 < t1")
        view = Viewport(t0, t1)
    if not lanes:
        raise ConfigError("this trace has nothing that lies on a timeline")
    return lanes, view


def _bars(timeline: Timeline, row: int, lane: Lane, view: Viewport) -> Iterator[_Bar]:
    """What a lane shows: its spans, or where there are many, pixels that show the same."""
    spans = timeline.spans(lane.id, view.t0, view.t1, MOST_SPANS + 1)
    if len(spans) <= MOST_SPANS:
        for span in spans:
            state, took = timeline.called(span.state), duration(span.end_ns - span.start_ns)
            said = f"{_text(span.label or state)}<br>{_text(state)} · {took}"
            yield _Bar(row, span.start_ns, span.end_ns, span.state, said)
        return
    states = timeline.query(view.t0, view.t1, PIXELS, [lane.id]).state[0].tolist()
    at = 0
    for state, run in groupby(states):
        first, at = at, at + len(list(run))
        if state != NOTHING:
            start, end = (view.t0 + view.span_ns * edge // PIXELS for edge in (first, at))
            yield _Bar(row, start, end, state, f"mostly {_text(timeline.called(state))}")


def _title(timeline: Timeline, lanes: Sequence[Lane], trace: Trace) -> str:
    of = len(timeline.lanes)
    less = "" if len(lanes) == of else f" · {len(lanes):,} of {of:,} lanes"
    return f"{_text(trace.name)}{less}"


def _layout(title: str, num_rows: int) -> dict[str, Any]:
    return layout(
        title={"text": title, "font": {"size": 12, "color": TEXT}},
        barmode="overlay", height=ROW_PX * num_rows + FRAME_PX + 30,
        margin={"l": 10, "r": 14, "t": 34, "b": 36},
        yaxis={"automargin": True}, showlegend=True,
        paper_bgcolor=BACKGROUND, plot_bgcolor=BACKGROUND, dragmode="zoom",
    )  # fmt: skip


def _cue(state: int) -> dict[str, Any]:
    """What tells a state apart where colours do not."""
    shapes = {"hatch": "/", "ticks": "|", "hollow": ".", "mark": "x", "split": "-"}
    shape = shapes.get(STATES[state].cue)
    stroke = {"fillmode": "overlay", "fgcolor": BACKGROUND, "size": 5}
    return {"pattern": {"shape": shape, **stroke}} if shape else {}


def _text(said: str) -> str:
    """Text of a trace as Plotly takes it, which reads some markup."""
    whole = plain(said)
    return escape(whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}…")
