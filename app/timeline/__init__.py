"""The one timeline model behind the terminal and the web."""

from __future__ import annotations

from stepscope.app.palette import State
from stepscope.app.timeline.composition import Composition
from stepscope.app.timeline.find import Hit
from stepscope.app.timeline.lanes.counters import Series
from stepscope.app.timeline.lanes.lane import Lane
from stepscope.app.timeline.load import LoadOverTime
from stepscope.app.timeline.model import Timeline
from stepscope.app.timeline.picture import Picture, SpanView
from stepscope.app.timeline.span_index import Sum
from stepscope.app.timeline.viewport import Viewport

__all__ = [
    "Composition",
    "Hit",
    "Lane",
    "LoadOverTime",
    "Picture",
    "Series",
    "SpanView",
    "State",
    "Sum",
    "Timeline",
    "Viewport",
]
