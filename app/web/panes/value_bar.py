"""A value over the run: a line for what the prompt's `value` takes, and its chart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.debug.shown.value_over_run import ValueOverRun, value_over_run
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
        placeholder="for example num_waiting",
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
        figure=figures.value_over(value, origin_ns, here_ns),
        config=figures.LIVE,
        responsive=True,
        style={"height": HEIGHT},
    )
