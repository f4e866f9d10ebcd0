"""Tables of the trace in the drawer: a page of rows at a time, sorted by any column."""

from __future__ import annotations

import polars as pl
from dash import html
from dash.development.base_component import Component

from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.rows.frame_table import frame_table
from stepscope.app.web.rows.row_links import row_links
from stepscope.app.web.view import View
from stepscope.ingest.schema import BY_NAME

PAGE_ROWS = 100


def table_pane(loaded: LoadedTrace, view: View) -> Component:
    """A page of a table's rows; the first table that has any when none is named."""
    present = [name for name in BY_NAME if loaded.trace.has(name)]
    if not present:
        return html.P("This trace has no rows.", className="controls muted")
    name = view.table if view.table in present else present[0]
    total = loaded.trace.num_rows(name)
    last = -(-total // PAGE_ROWS)
    page = min(view.page, last)
    frame = _page(loaded.trace.table(name), view.sort, page)
    rows = frame_table(frame, lambda column: _head(view, column), row_links(loaded, view))
    return html.Div([_choice(view, present, name), _pager(view, page, last, total), rows])


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


def _head(view: View, column: str) -> Component:
    """A link that sorts by the column, the other way round the second time."""
    ascending, descending = view.sort == column, view.sort == f"-{column}"
    arrow = " ▴" if ascending else " ▾" if descending else ""
    href = view.link(sort=f"-{column}" if ascending else column, page=1)
    return html.A(f"{column}{arrow}", href=href, className="on" if arrow else "")
