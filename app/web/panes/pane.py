"""What every pane is: a view of a trace, drawn below the timeline."""

from __future__ import annotations

import importlib
from typing import Protocol

from dash.development.base_component import Component

from stepscope.app.web import panes
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View


class Pane(Protocol):
    """Draws what it is for; whatever it links to lays changes over the view (`View.link`)."""

    def __call__(self, loaded: LoadedTrace, view: View) -> Component:
        """The pane of a trace as an address says that it is looked at."""
        ...


def pane_of(name: str) -> Pane:
    """The pane of a tab."""
    assert any(name == tab.name for tab in panes.PANES)
    module = importlib.import_module(f"stepscope.app.web.panes.{name}")
    pane: Pane = getattr(module, f"{name}_pane")
    return pane
