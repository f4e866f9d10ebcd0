"""A frame as an HTML table: numbers to the right, what is not known as a dash, text as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
from dash import html
from dash.development.base_component import Component

from stepscope.app.printable import plain

LONGEST_CELL = 400
LONGEST_NOTE = 4000

Head = Callable[[str], str | Component]
Links = Callable[[Mapping[str, Any]], Mapping[str, str]]


def frame_table(frame: pl.DataFrame, head: Head = plain, links: Links | None = None) -> Component:
    """The rows under heads that `head` makes of names; `links` gives a row's, by their columns."""
    kinds = ["number" if dtype.is_numeric() else "" for dtype in frame.dtypes]
    names = frame.columns
    heads = [html.Th(head(name), className=kind) for name, kind in zip(names, kinds, strict=True)]
    body = []
    for row in frame.iter_rows():
        leads = links(dict(zip(names, row, strict=True))) if links else {}
        hrefs = (leads.get(name, "") for name in names)
        body.append(html.Tr([_cell(*cell) for cell in zip(row, kinds, hrefs, strict=True)]))
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(body)])


def _cell(value: object, kind: str, href: str) -> Component:
    if value is None:
        return html.Td("—", className=f"{kind} null")
    if kind:
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
        return html.Td(html.A(text, href=href) if href else text, className=kind)
    text = plain(str(value))
    shown = text[:LONGEST_CELL]
    return html.Td(html.A(shown, href=href) if href else shown, title=text[:LONGEST_NOTE])
