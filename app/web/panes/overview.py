"""The drawer's overview: batches over the whole trace."""

from __future__ import annotations

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.web import figures
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View


def overview_pane(loaded: LoadedTrace, view: View) -> Component:
    """Batch composition over time, with the view's step marked."""
    if not loaded.steps:
        return html.P("This trace has no steps.", className="controls muted")
    return dcc.Graph(
        id="composition",
        figure=figures.overview(loaded.composition, loaded.step_index(view.step)),
        config=figures.LIVE,
        responsive=True,
    )
