"""SQL over the tables of the trace in the drawer, and its answer or what is wrong with it."""

from __future__ import annotations

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.printable import plain
from stepscope.app.units import count
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.frame_table import frame_table
from stepscope.app.web.view import View
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.query import MOST_ROWS as MOST
from stepscope.ingest.query import Bounds
from stepscope.ingest.schema import BY_NAME

MOST_ROWS = 200
BOUNDS = Bounds(rows=MOST)
EXAMPLE = "SELECT kind, count(*) AS steps, avg(dur_ns) AS dur_ns FROM steps GROUP BY kind"


def sql_pane(loaded: LoadedTrace, view: View) -> Component:
    """The query of the address, or an example that waits to be run."""
    form = html.Div(
        [
            dcc.Textarea(id="sql", value=view.sql or EXAMPLE, spellCheck=False),
            html.Button("run  ctrl ⏎", id="run", type="button", className="icon"),
        ],
        className="controls",
    )
    return html.Div([form, _answer(loaded, view.sql)])


def _answer(loaded: LoadedTrace, query: str | None) -> Component:
    if query is None:
        names = ", ".join(name for name in BY_NAME if loaded.trace.has(name))
        return html.P(f"tables: {names or 'none'}", className="controls muted")
    try:
        frame = loaded.trace.sql(query, BOUNDS)
    except StepscopeError as error:
        return html.P(plain(str(error)), className="failure")
    is_cut = len(frame) > MOST
    told = f"more than {count(MOST)}" if is_cut else count(len(frame))
    rows = f"{told} {'row' if len(frame) == 1 else 'rows'}"
    more = f", the first {MOST_ROWS}" if len(frame) > MOST_ROWS else ""
    answer = frame_table(frame.head(MOST_ROWS))
    return html.Div([html.P(rows + more, className="controls muted"), answer])
