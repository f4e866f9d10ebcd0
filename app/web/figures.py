"""The charts, by Plotly: load of the whole trace, tokens of steps near by, batches over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from dash import dcc
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from stepscope.app.palette import (
    ACCENT,
    BACKGROUND,
    BORDER,
    COUNTER,
    DECODE,
    MIXED,
    MUTED,
    PREFILL,
    RAISED,
    RECOMPUTE,
    STATES,
    TEXT,
)
from stepscope.app.timeline import Composition, LoadOverTime

Floats = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

COLOURS = {
    "prefill": STATES[PREFILL].colour,
    "decode": STATES[DECODE].colour,
    "recompute": STATES[RECOMPUTE].colour,
    "running": STATES[DECODE].colour,
    "waiting": MUTED,
    "KV blocks free": STATES[COUNTER].colour,
}
STILL: dcc.Graph.Config = {"staticPlot": True, "displayModeBar": False}
LIVE: dcc.Graph.Config = {"displayModeBar": False, "doubleClick": False, "showTips": False}
NEAR = 32
"""Steps that are shown on either side of the one in question."""
FLAT = 6
"""Times the most tokens from which on a budget is said and not drawn."""
ANY_DISTANCE = -1
"""However far the next point is from the mouse, Plotly takes it for what is pointed at."""
FEW_STEPS = 12
"""Fewer steps than this have a tick each."""
FEW_BARS = 32
"""Between more bars than this a gap is less than a pixel, and seen between some of them alone."""
LEAST_ROOM = 4
"""An axis has room for so many steps, so that one alone is not as wide as the chart."""
MIDDLE = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
POINTS = 1200
"""Steps or means of steps that a chart over a whole trace shows at most."""
FONT = 'system-ui, -apple-system, "Segoe UI", "Cantarell", "DejaVu Sans", sans-serif'


def load(of: LoadOverTime) -> go.Figure:
    """How busy the engine was over the whole trace, stacked by state."""
    figure = go.Figure(layout=layout(margin={"l": 0, "r": 0, "t": 4, "b": 14}))
    for state, shares in zip(of.states, of.shares, strict=True):
        colour = STATES[state].colour
        figure.add_scatter(
            y=shares,
            stackgroup="load",
            mode="none",
            fillcolor=colour,
            line={"shape": "hvh"},
        )
    width, most = of.shares.shape[1], float(of.shares.sum(axis=0).max(initial=0.01))
    if runs := of.mixed_runs(apart=width // 60):
        mixed = STATES[MIXED].colour
        figure.add_scatter(
            x=[max(run, width / 150) for run in runs],  # whole at the left edge too
            y=[0.8 * most] * len(runs), mode="markers+text", hoverinfo="skip",
            text=[STATES[MIXED].glyph] * len(runs), textfont={"size": 9, "color": mixed},
            marker={"symbol": "square", "size": 12, "color": BACKGROUND,
                    "line": {"color": mixed, "width": 1}},
        )  # fmt: skip
    figure.update_xaxes(visible=False, range=[0, max(1, width - 1)])
    figure.update_yaxes(visible=False, range=[0, most])
    return figure


def loads(of: Sequence[LoadOverTime]) -> go.Figure:
    """The load of a trace, or of several below each other."""
    if len(of) == 1:
        return load(of[0])
    figure = make_subplots(rows=len(of), vertical_spacing=0.06)
    figure.update_layout(layout(margin={"l": 0, "r": 0, "t": 2, "b": 14}))
    for row, each in enumerate(of, 1):
        own = load(each)
        own.update_traces(stackgroup=f"load {row}", selector={"stackgroup": "load"})
        figure.add_traces(own.data, row, 1)
        figure.update_xaxes(visible=False, range=own.layout.xaxis.range, row=row)
        figure.update_yaxes(visible=False, range=own.layout.yaxis.range, row=row)
    return figure


def blank() -> go.Figure:
    """A chart of which nothing is known yet; what Plotly draws by itself is a white sheet."""
    figure = go.Figure(layout=layout())
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def tokens_near(of: Composition, index: int | None) -> go.Figure:
    """Tokens of the steps around one, prefill on decode, under the budget."""
    middle = min(max(index or 0, NEAR), max(NEAR, len(of) - NEAR - 1))
    near = slice(max(0, middle - NEAR), middle + NEAR + 1)
    step = of.step[near]
    place = np.arange(len(step))
    margin, gap = {"l": 34, "r": 9, "t": 6, "b": 34}, 0 if len(step) > FEW_BARS else 0.12
    figure = go.Figure(layout=layout(barmode="stack", bargap=gap, margin=margin, hovermode="x"))
    layers = ((DECODE, of.decode_tokens), (PREFILL, of.prefill_tokens))
    for state, values in (*layers, (RECOMPUTE, of.recompute_tokens)):
        figure.add_bar(
            x=place,
            y=values[near],
            customdata=step,
            name=STATES[state].name,
            marker_color=STATES[state].colour,
            hovertemplate="step %{customdata} · %{y:,} " + STATES[state].name + "<extra></extra>",
        )
    figure.add_traces(_budget(place, of.budget[near]))
    if index is not None:
        here = index - near.start
        figure.add_vrect(here - 0.5, here + 0.5, fillcolor=ACCENT, opacity=0.25, line_width=0)
    shown = np.linspace(0, max(0, len(step) - 1), min(4, len(step))).astype(int)
    labels = [f"{step[at]:,}" for at in shown]
    figure.update_xaxes(tickvals=shown, ticktext=labels, fixedrange=True)
    if 0 < len(step) < LEAST_ROOM:
        figure.update_xaxes(range=[-0.5, LEAST_ROOM - 0.5])
    of_all = f" of {len(of):,}" if len(step) < len(of) else ""
    _name_axis(figure, text=f"{_ends(step)}{of_all}")
    if len(step) and not any(np.nan_to_num(each[near]).any() for each in _layers(of)):
        figure.add_annotation(text="no tokens in these steps", showarrow=False, **MIDDLE)
    figure.update_yaxes(rangemode="tozero", nticks=4, fixedrange=True)
    _keep_low(figure, [each[near] for each in _layers(of)], of.budget[near])
    return figure


def _layers(of: Composition) -> tuple[Floats, ...]:
    """What lies on each other in a chart of tokens."""
    return of.prefill_tokens, of.decode_tokens, of.recompute_tokens


def _keep_low(
    figure: go.Figure, layers: Sequence[Floats], budget: Floats, row: int | None = None
) -> None:
    """Say how high the budget is, where drawing it would press the tokens flat.

    `row` is that of the chart, where a figure has several; the first is that of tokens.
    """
    tokens = np.sum([np.nan_to_num(each) for each in layers], axis=0)
    most, limit = tokens.max(initial=0), np.nanmax(budget, initial=0)
    if limit <= FLAT * most or not most:
        return
    figure.update_yaxes(range=[0, 1.25 * most], row=row)
    place = {"xref": "paper", "yref": "paper", "x": 1, "y": 1, "xanchor": "right"}
    text = f"budget {limit:,.0f} ↑"
    figure.add_annotation(text=text, showarrow=False, yanchor="top", **place)


def _budget(x: Steps, budget: Floats) -> list[go.Scatter]:
    """A dotted line where the budget is known, else nothing."""
    line = {"color": MUTED, "width": 1, "dash": "dot"}
    named = {"mode": "lines", "name": "budget", "hoverinfo": "skip"}
    return [go.Scatter(x=x, y=budget, line=line, **named)] if np.isfinite(budget).any() else []


def overview(of: Composition, index: int | None) -> go.Figure:
    """Batches over time: tokens under the budget, requests waiting and running, free KV blocks.

    What the trace does not tell is left out; of many steps, the means of neighbours are shown.
    """
    edges = np.linspace(0, len(of), min(POINTS, len(of)) + 1).astype(int)
    step, places = of.step[edges[:-1]], _places(of.step, edges)
    rows = [
        (
            "tokens a step",
            (
                ("decode", of.decode_tokens),
                ("prefill", of.prefill_tokens),
                ("recompute", of.recompute_tokens),
            ),
        ),
        ("requests", (("running", of.running), ("waiting", of.waiting))),
        ("KV blocks free", (("KV blocks free", of.kv_free),)),
    ]
    known = [row for row in rows if any(np.isfinite(values).any() for _, values in row[1])]
    is_each = 0 < len(of) <= POINTS
    figure = make_subplots(max(1, len(known)), 1, shared_xaxes=True, vertical_spacing=0.13)
    for row, (title, lines) in enumerate(known, 1):
        for name, values in lines:
            trace = _area if title == "tokens a step" else _line
            line = trace(step, places, _means(values, edges), name)
            figure.add_trace(_around(line) if is_each else line, row, 1)
        how = "" if title != "requests" else " running, and waiting (dashed)"
        figure.add_annotation(_title(f"{title}{how} · {_ends(of.step)}", row))
    margin = {"l": 52, "r": 14, "t": 18, "b": 34}
    figure.update_layout(layout(margin=margin, hovermode="x", hoverdistance=ANY_DISTANCE))
    figure.update_xaxes(fixedrange=True, **_few(of.step))
    _name_axis(figure, len(known) or 1)
    figure.update_yaxes(rangemode="tozero", nticks=3, fixedrange=True)
    if known and known[0][0] == "tokens a step":
        budget = _means(of.budget, edges)
        drawn = _budget(step, budget)
        figure.add_traces([_around(line) if is_each else line for line in drawn], 1, 1)
        _keep_low(figure, [_means(each, edges) for each in _layers(of)], budget, 1)
    if index is not None:
        figure.add_vline(of.step[index], line={"color": ACCENT, "width": 1})
    return figure


def _few(step: Steps) -> dict[str, Any]:
    """How few steps lie along an axis: each with a tick, and none as wide as the whole chart."""
    if not 0 < len(step) < FEW_STEPS:
        return {}
    end = max(step[-1] + 0.5, step[0] + LEAST_ROOM - 0.5)
    return {"tickvals": step.tolist(), "range": [step[0] - 0.5, end]}


def _around(trace: go.Scatter) -> go.Scatter:
    """The same with each step's value around its number, half of the way to the next on both sides.

    What is nearest to the mouse is then the step that it is over, and a click leads there.
    """
    x, y = np.asarray(trace.x, float), np.asarray(trace.y)
    first, last = np.diff(x)[[0, -1]] / 2 if len(x) > 1 else (0.5, 0.5)
    text = () if trace.text is None else (trace.text[0], *trace.text, trace.text[-1])
    return trace.update(
        x=np.r_[x[0] - first, x, x[-1] + last],
        y=np.r_[y[0], y, y[-1]],
        text=text or None,
        customdata=[int(step) for step in np.r_[x[0], x, x[-1]]],
        line={"shape": "hvh"},
    )


def _ends(step: Steps) -> str:
    """Which steps lie along the axis; the timeline's is of times."""
    return f"steps {step[0]:,} to {step[-1]:,}" if len(step) else "no steps"


def _name_axis(figure: go.Figure, row: int | None = None, text: str = "step") -> None:
    """Say below a chart that steps lie along its axis."""
    rows = {} if row is None else {"row": row, "col": 1}
    named = {"text": text, "standoff": 2, "font": {"color": MUTED, "size": 10}}
    figure.update_xaxes(title=named, **rows)


def _title(text: str, row: int) -> dict[str, Any]:
    """A title over the left end of a row's plot."""
    axis = str(row) if row > 1 else ""
    place = {"xref": f"x{axis} domain", "yref": f"y{axis} domain", "x": 0, "y": 1}
    anchor = {"xanchor": "left", "yanchor": "bottom", "showarrow": False}
    return {"text": text, "font": {"color": MUTED, "size": 10}, **place, **anchor}


def _means(values: Floats, edges: npt.NDArray[np.int64]) -> Floats:
    """Mean of the known values between neighbouring edges, NaN where none is known."""
    known = np.isfinite(values)
    if not len(values):
        return np.empty(0)
    sums = np.add.reduceat(np.where(known, values, 0.0), edges[:-1])
    counts = np.add.reduceat(known.astype(np.int64), edges[:-1])
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _places(step: Steps, edges: npt.NDArray[np.int64]) -> list[str]:
    """The step of each point, or which steps its value is the mean of."""
    return [
        f"step {step[first]:,}"
        if last == first
        else f"mean of steps {step[first]:,} to {step[last]:,}"
        for first, last in zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), strict=True)
    ]


def _area(step: Steps, places: list[str], values: Floats, name: str) -> go.Scatter:
    return go.Scatter(
        x=step,
        text=places,
        y=np.nan_to_num(values),
        stackgroup="tokens",
        mode="none",
        line={"shape": "hv"},
        fillcolor=COLOURS[name],
        name=name,
        hovertemplate="%{text} · %{y:,.1~f} " + name + "<extra></extra>",
    )


def _line(step: Steps, places: list[str], values: Floats, name: str) -> go.Scatter:
    dash = "dash" if name == "waiting" else "solid"
    return go.Scatter(
        x=step,
        text=places,
        y=values,
        mode="lines",
        name=name,
        line={"color": COLOURS[name], "width": 1.5, "shape": "hv", "dash": dash},
        hovertemplate="%{text} · %{y:,.1~f} " + name + "<extra></extra>",
    )


def layout(**more: Any) -> dict[str, Any]:
    """What every chart of the page has in common."""
    axis = {"gridcolor": BORDER, "zeroline": False, "linecolor": BORDER}
    return {
        "template": {"layout": {"xaxis": {**axis, "showgrid": False}, "yaxis": axis}},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 10, "color": MUTED},
        "hoverlabel": {"bgcolor": RAISED, "bordercolor": BORDER, "font": {"color": TEXT}},
        "showlegend": False,
        "dragmode": False,
        **more,
    }
