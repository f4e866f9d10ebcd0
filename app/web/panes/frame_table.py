"""A frame as an HTML table: numbers to the right, what is not known as a dash, text as text."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from dash import html
from dash.development.base_component import Component

from stepscope.app.printable import plain
from stepscope.app.web.view import View

LONGEST_CELL = 400
LONGEST_NOTE = 4000

Head = Callable[[str], str | Component]
Moment = Callable[[int], str]


def frame_table(frame: pl.DataFrame, head: Head = plain, moment: Moment | None = None) -> Component:
    """The rows under heads that `head` makes of names; `moment` gives each `ts_ns` its link.

    A `request` leads to its page, where the row has its `rank` as well.
    """
    kinds = ["number" if dtype.is_numeric() else "" for dtype in frame.dtypes]
    names = frame.columns
    heads = [html.Th(head(name), className=kind) for name, kind in zip(names, kinds, strict=True)]
    links = [moment if name == "ts_ns" else None for name in names]
    rank, asked = (names.index(each) if each in names else -1 for each in ("rank", "request"))
    body = []
    for row in frame.iter_rows():
        cells = [_cell(*cell) for cell in zip(row, kinds, links, strict=True)]
        if min(rank, asked) >= 0 and isinstance(row[asked], str) and isinstance(row[rank], int):
            cells[asked] = _request(row[rank], row[asked])
        body.append(html.Tr(cells))
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(body)])


def _request(rank: int, request: str) -> Component:
    text = plain(request)
    href = View().link(tab="request", rank=rank, request=request)
    return html.Td(html.A(text[:LONGEST_CELL], href=href), title=text[:LONGEST_NOTE])


def _cell(value: object, kind: str, moment: Moment | None) -> Component:
    if value is None:
        return html.Td("—", className=f"{kind} null")
    if isinstance(value, int) and moment:
        return html.Td(html.A(f"{value:,}", href=moment(value)), className=kind)
    if kind:
        return html.Td(f"{value:,}" if isinstance(value, int) else f"{value:,.6g}", className=kind)
    text = plain(str(value))
    return html.Td(text[:LONGEST_CELL], title=text[:LONGEST_NOTE])
