"""The drawer's overview: what the trace comes to in short, and batches over the whole of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.live.words import blocks
from stepscope.app.present.summary.parts import Part
from stepscope.app.web import figures
from stepscope.app.web.components import components
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.summary_charts import figure_of
from stepscope.app.web.view import Range, View


def overview_pane(loaded: LoadedTrace, view: View) -> Component:
    """The summary, and batches over time where they are told, with the view's step marked.

    Charts along time show what the timeline shows.
    """
    if loaded.live:
        told = components([*blocks(*loaded.live, loaded.origin)])
        return html.Div([html.Div(told, className="summary"), *_composition(loaded, view)])
    is_part = view.t is not None and view.t != (0, loaded.length)
    window = view.t if is_part else None
    parts = [_part(part, loaded.origin, window) for part in loaded.summary.parts]
    return html.Div([*_composition(loaded, view), html.Div(parts, className="summary")])


def _composition(loaded: LoadedTrace, view: View) -> Iterator[Component]:
    of = loaded.composition
    told = (of.prefill_tokens, of.decode_tokens, of.running, of.waiting, of.kv_free)
    # One step has no course over time; what it comes to is said below.
    if len(of) > 1 and any(np.isfinite(values).any() for values in told):
        yield dcc.Graph(
            id="composition",
            figure=figures.overview(of, loaded.step_index(view.step)),
            config=figures.LIVE,
            responsive=True,
            style={"height": "var(--batches)"},
        )


def _part(part: Part, origin_ns: int, window: Range | None) -> Component:
    charts = [
        dcc.Graph(
            figure=figure_of(chart, origin_ns, window),
            config=figures.LIVE,
            responsive=True,
            style={"height": "138px", "width": "370px", "flex": "none"},
        )
        for chart in part.charts
    ]
    shown = [html.Div(charts, className="small-charts")] if charts else []
    return html.Section([*components(part.blocks), *shown])
