"""A frame as an HTML table: numbers to the right, what is not known as a dash, text as text."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from dash import html
from dash.development.base_component import Component

from stepscope.app.printable import plain

LONGEST_CELL = 400
LONGEST_NOTE = 4000

Head = Callable[[str], str | Component]
Moment = Callable[[int], str]


def frame_table(frame: pl.DataFrame, head: Head = plain, moment: Moment | None = None) -> Component:
    """The rows under heads that `head` makes of names; `moment` gives each `ts_ns` its link."""
    kinds = ["number" if dtype.is_numeric() else "" for dtype in frame.dtypes]
    names = frame.columns
    heads = [html.Th(head(name), className=kind) for name, kind in zip(names, kinds, strict=True)]
    links = [moment if name == "ts_ns" else None for name in names]
    body = [
        html.Tr([_cell(*cell) for cell in zip(row, kinds, links, strict=True)])
        for row in frame.iter_rows()
    ]
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(body)])


def _cell(value: object, kind: str, moment: Moment | None) -> Component:
    if value is None:
        return html.Td("—", className=f"{kind} null")
    if isinstance(value, int) and moment:
        return html.Td(html.A(f"{value:,}", href=moment(value)), className=kind)
    if kind:
        return html.Td(f"{value:,}" if isinstance(value, int) else f"{value:,.6g}", className=kind)
    text = plain(str(value))
    return html.Td(text[:LONGEST_CELL], title=text[:LONGEST_NOTE])
