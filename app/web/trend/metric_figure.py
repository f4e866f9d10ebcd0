"""A figure of a metric over runs: every point, the levels, and where one gives way to another."""

from __future__ import annotations

from html import escape
from typing import Any

from plotly import graph_objects as go

from stepscope.analyzers.many_runs.trend import Group, MetricTrend, Trend
from stepscope.app.palette import COUNTER, HIT, MUTED, STATES, TEXT
from stepscope.app.present.trend.changes_said import (
    chance_said,
    point_name,
    shown_change,
    shown_value,
)
from stepscope.app.printable import plain
from stepscope.app.units import UNITS
from stepscope.app.web.figures import layout

LONGEST, MOST_NAMES, MOST_TICKS = 80, 5, 6
"""Letters of a name in a figure, runs of a point that it names, names along an axis."""
HIGH_PX = 240


def trend_figure(of: Trend, group: Group, metric: MetricTrend) -> go.Figure:
    """Points in their order, those of runs that tell the metric, and a line for each change."""
    scale, unit = _unit(metric)
    places = [place for place, value in enumerate(metric.values) if value is not None]
    figure = go.Figure(layout=layout(margin={"l": 64, "r": 60, "t": 44, "b": 40}, height=HIGH_PX))
    figure.add_scatter(
        x=places,
        y=[value / scale for value in metric.known],
        customdata=[_said(group, metric, place) for place in places],
        mode="lines+markers",
        line={"color": STATES[COUNTER].colour, "width": 1},
        marker={"color": MUTED, "size": 6},
        hovertemplate="%{customdata}<extra></extra>",
    )
    for first, last, level in metric.levels():
        figure.add_scatter(
            x=[first - 0.5, last - 0.5], y=[level / scale] * 2, mode="lines", hoverinfo="skip",
            line={"color": TEXT, "width": 1.5, "dash": "dot"},
        )  # fmt: skip
    for number, change in enumerate(metric.changes):
        by = shown_change(metric.metric, change.before, change.after)
        figure.add_vline(change.place - 0.5, line={"color": HIT, "width": 1.5})
        figure.add_annotation(
            x=change.place - 0.5, y=1, xref="x", yref="paper", yanchor="bottom", showarrow=False,
            xanchor=_anchor(change.place / len(metric.values)), yshift=12 * (number % 2),
            text=f"◆ {by} at {_text(group.points[change.place].key, 30)}, "
                 f"chance {chance_said(of, change)}",
            font={"color": TEXT, "size": 10},
        )  # fmt: skip
    ticks = _ticks(len(metric.values))
    figure.update_xaxes(
        range=[-0.5, len(metric.values) - 0.5], fixedrange=True, tickvals=ticks,
        ticktext=[_text(_end(group.points[place].key), 20) for place in ticks],
    )  # fmt: skip
    figure.update_yaxes(fixedrange=True, nticks=5, title={"text": unit, "standoff": 4})
    return figure


def _anchor(share: float) -> str:
    """Which end of what is said stands where it is, so that it ends within the figure."""
    return "left" if share < 0.25 else "right" if share > 0.75 else "center"


def _unit(metric: MetricTrend) -> tuple[int, str]:
    """What values are divided by, and the unit that they have then."""
    if not metric.metric.endswith("_ns"):
        return 1, ""
    most = max(map(abs, metric.known))
    return next((each for each in UNITS if most >= each[0]), UNITS[-1])


def _said(group: Group, metric: MetricTrend, place: int) -> str:
    point = group.points[place]
    lines = [_text(point_name(point), LONGEST), shown_value(metric.metric, metric.values[place])]
    others = [run for run in point.runs if run != point.key]
    lines += [_text(run, LONGEST) for run in others[:MOST_NAMES]]
    if len(others) > MOST_NAMES:
        lines.append(f"and {len(others) - MOST_NAMES:,} more")
    return "<br>".join(lines)


def _ticks(num: int) -> list[int]:
    if num <= MOST_TICKS:
        return [*range(num)]
    return [round(at * (num - 1) / (MOST_TICKS - 1)) for at in range(MOST_TICKS)]


def _end(key: str) -> str:
    """The end of a path, which tells runs apart where their folder does not."""
    return key.rstrip("/").rpartition("/")[2] or key


def _text(said: Any, most: int) -> str:
    """Text of a trace as Plotly takes it, which reads some markup."""
    whole = plain(str(said))
    return escape(whole if len(whole) <= most else f"{whole[: most - 1]}…")
