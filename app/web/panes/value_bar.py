"""A value over the run: a line for what the prompt's `value` takes, and its chart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
from dash import dcc, html
from dash.development.base_component import Component
from plotly import graph_objects as go

from stepscope.app.debug.shown.value_over_run import NO_STEP, ValueOverRun, value_over_run
from stepscope.app.palette import ACCENT, COUNTER, STATES
from stepscope.app.units import moment
from stepscope.app.web import figures
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.stops import answered
from stepscope.app.web.view import View
from stepscope.ingest.errors import StepscopeError

Asked = ValueOverRun | StepscopeError | str | None
"""What came of the words of a value: its line, why there is none, or nothing without words."""
HEIGHT = "84px"


def value_of(loaded: LoadedTrace, view: View) -> Asked:
    """What the view's value is, a line where it is not recorded; the caller holds the lock."""
    if not (words := view.value):
        return None
    look = partial(value_over_run, loaded.debugger, words)
    return answered(loaded.values, (loaded.debugger.rank, words), "a value", look)


def value_bar(view: View, value: Asked, here_ns: int) -> Iterator[Component]:
    """The line to type in, and beside it what it is at a time."""
    says = "V: a column of steps, a calculation with some, or TABLE: and one of its own"
    yield html.Span("value", className="muted", title=says)
    yield dcc.Input(
        id="value",
        type="text",
        value=view.value or "",
        placeholder="like num_waiting",
        autoComplete="off",
        spellCheck="false",
    )
    if isinstance(value, ValueOverRun):
        yield html.Span(value.told(here_ns), id="told-value")
    if value:
        yield html.A("clear", href=view.link(value=None), title="draw nothing")


def value_line(value: ValueOverRun, origin_ns: int, here_ns: int) -> Component:
    """The chart of a value over the run, with a line where one stands."""
    return dcc.Graph(
        id="value-line",
        figure=value_over(value, origin_ns, here_ns),
        config=figures.LIVE,
        responsive=True,
        style={"height": HEIGHT},
    )


def value_over(value: ValueOverRun, origin_ns: int, here_ns: int) -> go.Figure:
    """A value over the run, and where one stands; of many rows, the most of each part is shown.

    A point carries where a click on it leads, as a part of an address.
    """
    ts_ns, values = value.line.ts_ns, value.line.values
    edges = np.linspace(0, len(values), min(figures.POINTS, len(values)) + 1).astype(int)
    most = [a + int(np.argmax(values[a:b])) for a, b in pairwise(edges.tolist())]
    most.append(len(values) - 1)  # which holds up to the end
    first_ns, last_ns = (end - origin_ns for end in value.line.bounds_ns)
    after_ns = [*(ts_ns[most[:-1]] - origin_ns).tolist(), last_ns]
    figure = go.Figure(
        layout=figures.layout(margin={"l": 52, "r": 34, "t": 4, "b": 18}, hovermode="x")
    )
    figure.add_scatter(
        x=after_ns,
        y=values[most],
        customdata=[
            f"ts={max(ts, 0)}" if step == NO_STEP else f"step={step}"
            for ts, step in zip(after_ns, value.step[most].tolist(), strict=True)
        ],
        text=[moment(ts, 1_000) for ts in after_ns],
        mode="lines",
        line={"color": STATES[COUNTER].colour, "width": 1.5, "shape": "hv"},
        hovertemplate="%{y:,.4~g} at %{text}<extra></extra>",
    )
    ends = [first_ns, max(last_ns, first_ns + 1)]
    figure.update_xaxes(
        range=ends, fixedrange=True, tickvals=ends, showticklabels=True,
        ticktext=[moment(end, 1_000_000) for end in ends],
    )  # fmt: skip
    figure.update_yaxes(nticks=3, fixedrange=True)
    figure.add_vline(here_ns - origin_ns, line={"color": ACCENT, "width": 1})
    return figure
