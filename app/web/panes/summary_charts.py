"""The charts of a summary, by Plotly: histograms of times, and numbers over time."""

from __future__ import annotations

from html import escape

import numpy as np
from plotly import graph_objects as go

from stepscope.analyzers.summary.load_over_time import OverTime
from stepscope.app.palette import ACCENT, COUNTER, PREEMPTED, STATES, TEXT
from stepscope.app.present.summary.parts import Chart, Histogram, TimeLines
from stepscope.app.units import UNITS, count, duration
from stepscope.app.web import figures

MARGIN = {"l": 44, "r": 12, "t": 22, "b": 22}
MOST_POINTS = 2_000
DASHES = ("solid", "dash", "dot", "dashdot")
WITHIN, BEYOND = STATES[COUNTER].colour, STATES[PREEMPTED].colour


def figure_of(chart: Chart, origin_ns: int) -> go.Figure:
    """A chart of a summary; `origin_ns` is when the trace began."""
    match chart:
        case Histogram():
            return _histogram(chart)
        case TimeLines():
            return _lines(chart, origin_ns)


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


def _lines(chart: TimeLines, origin_ns: int) -> go.Figure:
    """Numbers over the time of the trace, a line for each rank."""
    last_ns = max(int(line.ts_ns[-1]) for line in chart.lines) - origin_ns
    scale, unit = next((each for each in UNITS if last_ns >= each[0]), UNITS[-1])
    several = len(chart.lines) > 1
    ranks = " by rank" if several else ""
    figure = _titled(f"{chart.title}{ranks}")
    for at, line in enumerate(chart.lines):
        ts_ns, values = _thinned(line)
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
    figure.update_xaxes(ticksuffix=f" {unit}", nticks=5, fixedrange=True)
    tickformat = ".0%" if chart.are_shares else ",~g"
    figure.update_yaxes(rangemode="tozero", nticks=4, fixedrange=True, tickformat=tickformat)
    return figure


def _thinned(line: OverTime) -> tuple[np.ndarray, np.ndarray]:
    """The line, or of a long one the most of each of as many parts as are drawn."""
    number = len(line.ts_ns)
    if number <= MOST_POINTS:
        return line.ts_ns, line.values
    edges = np.linspace(0, number, MOST_POINTS + 1).astype(int)[:-1]
    return line.ts_ns[edges], np.maximum.reduceat(line.values, edges)


def _titled(title: str) -> go.Figure:
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "yshift": 4}
    figure = go.Figure(layout=figures.layout(margin=MARGIN, bargap=0))
    figure.add_annotation(
        text=escape(title), showarrow=False, xanchor="left", yanchor="bottom", **place
    )
    return figure
