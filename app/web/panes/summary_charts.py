"""The charts of a summary, by Plotly: histograms of times, and numbers over time."""

from __future__ import annotations

from html import escape

import numpy as np
from plotly import graph_objects as go

from stepscope.analyzers.summary.load_over_time import OverTime
from stepscope.app.palette import ACCENT, COUNTER, PREEMPTED, STATES, TEXT
from stepscope.app.present.summary.parts import Chart, Histogram, TimeLines
from stepscope.app.units import UNITS, count, duration, moment
from stepscope.app.web import figures
from stepscope.app.web.view import Range

MARGIN = {"l": 44, "r": 12, "t": 22, "b": 22}
MOST_POINTS = 2_000
DASHES = ("solid", "dash", "dot", "dashdot")
Points = tuple[np.ndarray, np.ndarray]
WITHIN, BEYOND = STATES[COUNTER].colour, STATES[PREEMPTED].colour


def figure_of(chart: Chart, origin_ns: int, window: Range | None = None) -> go.Figure:
    """A chart of a summary; `origin_ns` is when the trace began.

    Of what lies along time only a `window` is drawn, from and to when from the origin.
    """
    match chart:
        case Histogram():
            return _histogram(chart)
        case TimeLines():
            return _lines(chart, origin_ns, window)


def _histogram(chart: Histogram) -> go.Figure:
    """How many values lie where; those beyond the limit are hatched, and behind a line."""
    edges, counts = chart.of.edges, chart.of.counts
    scale, unit = next((each for each in UNITS if edges[-1] >= each[0]), UNITS[-1])
    is_beyond = (
        np.zeros(len(counts), bool) if chart.limit_ns is None else edges[:-1] > chart.limit_ns
    )
    figure = _titled(f"{chart.title}, of {count(chart.of.num)}")
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2 / scale,
        y=counts,
        width=np.diff(edges) / scale,
        marker={
            "color": [BEYOND if beyond else WITHIN for beyond in is_beyond],
            "pattern": {"shape": ["/" if beyond else "" for beyond in is_beyond]},
            "line": {"width": 0},
        },
        customdata=[
            f"{duration(low)} to {duration(high)}"
            for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ],
        hovertemplate="%{y:,} from %{customdata}<extra></extra>",
    )
    if chart.limit_ns is not None and edges[0] <= chart.limit_ns <= edges[-1]:
        figure.add_vline(chart.limit_ns / scale, line={"color": TEXT, "width": 1, "dash": "dash"})
    figure.update_xaxes(ticksuffix=f" {unit}", nticks=5, fixedrange=True)
    figure.update_yaxes(rangemode="tozero", nticks=4, fixedrange=True)
    return figure


def _lines(chart: TimeLines, origin_ns: int, window: Range | None) -> go.Figure:
    """Numbers over the time that is shown, a line for each rank."""
    ends = [int(line.ts_ns[at]) - origin_ns for line in chart.lines for at in (0, -1)]
    first_ns, last_ns = window or (min(ends), max(ends))
    scale, unit = next((each for each in UNITS if last_ns >= each[0]), UNITS[-1])
    several = len(chart.lines) > 1
    ranks = " by rank" if several else ""
    part = (
        ""
        if window is None
        else f", from {_moment(first_ns, window)} to {_moment(last_ns, window)}"
    )
    figure = _titled(f"{chart.title}{ranks}{part}")
    for at, line in enumerate(chart.lines):
        ts_ns, values = _thinned(*_within(line, first_ns + origin_ns, last_ns + origin_ns))
        name = f"rank {line.rank}: " if several else ""
        shape = "%{y:.1%}" if chart.are_shares else "%{y:,}"
        figure.add_scatter(
            x=(ts_ns - origin_ns) / scale,
            y=values,
            mode="lines",
            line={"color": WITHIN if at == 0 else ACCENT, "width": 1.5, "shape": "hv",
                  "dash": DASHES[at % len(DASHES)]},
            hovertemplate=f"{escape(name)}{shape} at %{{x:,.4~g}} {unit}<extra></extra>",
        )  # fmt: skip
    shown = [first_ns / scale, max(last_ns, first_ns + 1) / scale]
    figure.update_xaxes(ticksuffix=f" {unit}", nticks=5, fixedrange=True, range=shown)
    tickformat = ".0%" if chart.are_shares else ",~g"
    figure.update_yaxes(rangemode="tozero", nticks=4, fixedrange=True, tickformat=tickformat)
    return figure


def _moment(ns: int, window: Range) -> str:
    return moment(ns, max((window[1] - window[0]) // 100, 1))


def _within(line: OverTime, first_ns: int, last_ns: int) -> Points:
    """What a line is in a window: what held when it began, and what held when it ended."""
    begun = max(int(np.searchsorted(line.ts_ns, first_ns, "right")) - 1, 0)
    ended = int(np.searchsorted(line.ts_ns, last_ns, "right"))
    ts_ns, values = line.ts_ns[begun:ended], line.values[begun:ended]
    if len(ts_ns) and ts_ns[0] < first_ns:
        ts_ns = np.concatenate(([first_ns], ts_ns[1:]))
    if len(ts_ns) and ended < len(line.ts_ns):
        ts_ns, values = np.append(ts_ns, last_ns), np.append(values, values[-1])
    return ts_ns, values


def _thinned(ts_ns: np.ndarray, values: np.ndarray) -> Points:
    """The line, or of a long one the most of each of as many parts as are drawn."""
    number = len(ts_ns)
    if number <= MOST_POINTS:
        return ts_ns, values
    edges = np.linspace(0, number, MOST_POINTS + 1).astype(int)[:-1]
    return ts_ns[edges], np.maximum.reduceat(values, edges)


def _titled(title: str) -> go.Figure:
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "yshift": 4}
    figure = go.Figure(layout=figures.layout(margin=MARGIN, bargap=0))
    figure.add_annotation(
        text=escape(title), showarrow=False, xanchor="left", yanchor="bottom", **place
    )
    return figure
