"""Tables of the trace in the drawer: a page of rows at a time, sorted, and answers to SQL."""

from __future__ import annotations

import re

import polars as pl
from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.plain import plain
from stepscope.app.tui.units import count
from stepscope.app.web.scene import Scene
from stepscope.app.web.view import View
from stepscope.ingest.errors import QueryError, StepscopeError
from stepscope.ingest.schema import BY_NAME

PAGE_ROWS = 100
LONGEST_CELL = 400
EXAMPLE = "SELECT kind, count(*) AS steps, avg(dur_ns) AS dur_ns FROM steps GROUP BY kind"
_READS_FILES = re.compile(r"\b(?:read|scan)_\w+\s*\(", re.IGNORECASE)


def table_pane(scene: Scene, view: View) -> Component:
    """A page of a table's rows; the first table that has any when none is named."""
    present = [name for name in BY_NAME if scene.trace.has(name)]
    if not present:
        return html.P("This trace has no rows.", className="controls muted")
    name = view.table if view.table in present else present[0]
    total = scene.trace.num_rows(name)
    last = -(-total // PAGE_ROWS)
    page = min(view.page, last)
    frame = _page(scene.trace.table(name), view.sort, page)
    return html.Div(
        [_choice(view, present, name), _pager(view, page, last, total), _table(frame, view)]
    )


def _page(rows: pl.LazyFrame, sort: str | None, page: int) -> pl.DataFrame:
    """One page; sorted by a column if there is one of that name."""
    column = (sort or "").removeprefix("-")
    if column in rows.collect_schema():
        descending = (sort or "").startswith("-")
        rows = rows.sort(column, descending=descending, nulls_last=True, maintain_order=True)
    return rows.slice((page - 1) * PAGE_ROWS, PAGE_ROWS).collect()


def _choice(view: View, present: list[str], chosen: str) -> Component:
    return html.Div(
        [
            html.A(
                name,
                href=view.link(tab="table", table=name, sort=None, page=1),
                className="on" if name == chosen else "",
            )
            for name in present
        ],
        className="controls",
    )


def _pager(view: View, page: int, last: int, total: int) -> Component:
    def to(label: str, target: int) -> Component:
        if 1 <= target <= last and target != page:
            return html.A(label, href=view.link(page=target), className="button")
        return html.Span(label, className="gone")

    first_row = (page - 1) * PAGE_ROWS + 1
    shown = f"rows {first_row:,} to {min(total, page * PAGE_ROWS):,} of {total:,}"
    links = [to("first", 1), to("◀", page - 1), html.B(shown), to("▶", page + 1), to("last", last)]
    return html.Div(links, className="controls")


def _table(frame: pl.DataFrame, view: View | None = None) -> Component:
    """A frame as a table; with a view, its heads sort."""
    numeric = [dtype.is_numeric() for dtype in frame.dtypes]
    heads = [_head(name, n, view) for name, n in zip(frame.columns, numeric, strict=True)]
    body = [
        html.Tr([_cell(value, n) for value, n in zip(row, numeric, strict=True)])
        for row in frame.iter_rows()
    ]
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(body)])


def _head(name: str, numeric: bool, view: View | None) -> Component:
    kind = "number" if numeric else ""
    if view is None:
        return html.Th(plain(name), className=kind)
    ascending, descending = view.sort == name, view.sort == f"-{name}"
    arrow = " ▴" if ascending else " ▾" if descending else ""
    href = view.link(sort=f"-{name}" if ascending else name, page=1)
    return html.Th(html.A(f"{name}{arrow}", href=href), className=f"{kind} on" if arrow else kind)


def _cell(value: object, numeric: bool) -> Component:
    if value is None:
        return html.Td("—", className="number null" if numeric else "null")
    if numeric:
        return html.Td(
            f"{value:,}" if isinstance(value, int) else f"{value:,.6g}", className="number"
        )
    text = plain(str(value))
    return html.Td(text[:LONGEST_CELL], title=text[:4000])


def sql_pane(scene: Scene, view: View) -> Component:
    """A query over the trace's tables and its answer, or what is wrong with it."""
    query = view.sql or EXAMPLE
    form = html.Div(
        [
            dcc.Textarea(id="sql", value=query, spellCheck=False),
            html.Button("run  ctrl ⏎", id="run", type="button", className="icon"),
        ],
        className="controls",
    )
    return html.Div([form, _answer(scene, view.sql)])


def _answer(scene: Scene, query: str | None) -> Component:
    if query is None:
        names = ", ".join(name for name in BY_NAME if scene.trace.has(name))
        return html.P(f"tables: {names}", className="controls muted")
    try:
        if _READS_FILES.search(query):
            raise QueryError("a query reads the tables of the trace, not files")
        frame = scene.trace.sql(query)
    except StepscopeError as error:
        return html.P(plain(str(error)), className="failure")
    shown = frame.head(PAGE_ROWS)
    more = f", the first {PAGE_ROWS}" if len(frame) > PAGE_ROWS else ""
    return html.Div(
        [html.P(f"{count(len(frame))} rows{more}", className="controls muted"), _table(shown)]
    )
