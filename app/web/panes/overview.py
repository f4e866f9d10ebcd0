"""The drawer's overview: batches over the whole trace."""

from __future__ import annotations

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.web import figures
from stepscope.app.web.scene import Scene
from stepscope.app.web.view import View


def overview_pane(scene: Scene, view: View) -> Component:
    """Batch composition over time, with the view's step marked."""
    if not scene.steps:
        return html.P("This trace has no steps.", className="controls muted")
    return dcc.Graph(
        id="composition",
        figure=figures.overview(scene.composition, scene.step_index(view.step)),
        config=figures.LIVE,
        responsive=True,
    )
