"""SQL over the tables of the trace in the drawer, and its answer or what is wrong with it."""

from __future__ import annotations

import base64
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.kept.queries import asked_before
from stepscope.app.printable import plain
from stepscope.app.queries.asked_query import EXAMPLE, Answer
from stepscope.app.queries.exporting import TYPES, answer_file, too_large, written
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.rows.frame_table import frame_table
from stepscope.app.web.rows.row_links import row_links
from stepscope.app.web.view import View
from stepscope.ingest.errors import QueryError, StepscopeError

MOST_ROWS = 200


def sql_pane(loaded: LoadedTrace, view: View) -> Component:
    """The query of the address, or an example that waits to be run."""
    told: dict[str, Any] = {"aria-label": "completions"}
    form = html.Div(
        [
            dcc.Textarea(id="sql", value=view.sql or EXAMPLE, spellCheck=False),
            html.Button("run  ctrl ⏎", id="run", type="button", className="icon"),
            html.Ul(id="suggested", role="listbox", hidden=True, **told),
        ],
        className="controls query",
    )
    answered = _answer(loaded, view)  # what is asked now is the first of those asked before
    return html.Div([form, *_asked_before(loaded), answered])


def _asked_before(loaded: LoadedTrace) -> list[Component]:
    """Queries that were asked, as links; a query that a page for others keeps is nobody's."""
    kept = asked_before() if loaded.keeps_queries else []
    if not kept:
        return []
    items = [html.Li(html.A(text, href=View().link(tab="sql", sql=text))) for text in kept]
    said = html.Summary("asked before (↑ and ↓ in the query)")
    return [html.Details([said, html.Ul(items)], id="asked", className="controls muted")]


def _answer(loaded: LoadedTrace, view: View) -> Component:
    if view.sql is None:
        names = ", ".join(loaded.names)
        return html.P(f"tables: {names}", className="controls muted")
    try:
        answer = loaded.answer(view.sql)
    except StepscopeError as error:
        return html.P(plain(str(error)), className="failure")
    shown = answer.frame.head(MOST_ROWS)
    more = f", the first {MOST_ROWS}" if len(answer.frame) > MOST_ROWS else ""
    said = html.Span(f"{answer.told}{more}", className="muted")
    table = frame_table(shown, links=row_links(loaded, view))
    return html.Div([html.Div([said, *_exports(answer)], className="controls"), table])


def _exports(answer: Answer) -> list[Component]:
    """What writes the answer to a file, or why nothing does."""
    if told := too_large(answer.frame):
        return [html.Span(told, className="muted")]
    buttons = [
        html.Button(form, id=f"export-{form}", className="icon export", type="button")
        for form in TYPES
    ]
    cut = "the file has the rows up to there" if answer.is_cut else ""
    return [*buttons, html.Span(cut, className="muted")]


def exported_answer(loaded: LoadedTrace, view: View, form: str) -> dict[str, Any] | None:
    """The answer that an address asks for as a file to download; None where it gives none."""
    if view.sql is None or form not in TYPES:
        return None
    try:
        answer = loaded.answer(view.sql)
        content = base64.b64encode(written(answer.frame, form)).decode()
    except QueryError:
        return None
    name = answer_file(loaded.trace.name, form, is_cut=answer.is_cut)
    return {"content": content, "base64": True, "filename": name, "type": TYPES[form]}
