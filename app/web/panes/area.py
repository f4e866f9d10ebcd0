"""The sums of the marked range in the drawer: by name, state, lane, or lanes by names; as CSV."""

from __future__ import annotations

from typing import Any

from dash import html
from dash.development.base_component import Component

from stepscope.app.present.spans.area_table import (
    NO_AREA,
    SAYS,
    AreaTable,
    area_csv,
    area_file,
    area_lines,
    area_table,
)
from stepscope.app.timeline.area.sums import AreaSums
from stepscope.app.timeline.area.which_lanes import area_lanes
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.resolve import resolve
from stepscope.app.web.view import View


def area_pane(loaded: LoadedTrace, view: View) -> Component:
    """What the address's mark adds up to; a click on a row outlines its spans."""
    sums = _sums(loaded, view)
    if sums is None:
        return html.P(NO_AREA, className="controls muted")
    by = view.by or "name"
    said = [html.P(line, className="muted") for line in area_lines(sums, loaded.timeline)]
    choices = [
        html.A(says, href=view.link(by=each), className="on" * (each == by))
        for each, says in SAYS.items()
    ]
    button = html.Button("CSV", id="export-area", className="icon", type="button")
    table = area_table(sums, loaded.timeline, by)
    shown = [_table(view, table)]
    if table.num_more:
        shown.append(html.P(f"and {table.num_more:,} more, which the CSV has", className="muted"))
    return html.Div(
        [html.Div(said, id="area"), html.Div([*choices, button], className="controls"), *shown]
    )


def _sums(loaded: LoadedTrace, view: View) -> AreaSums | None:
    if view.mark is None:
        return None
    point = view.sel or view.at
    lane = point[0] if point else (0 if loaded.timeline.lanes else None)
    lanes = area_lanes(loaded.timeline, lane, view.lanes)
    first, last = (end + loaded.origin for end in view.mark)
    return loaded.timeline.area(first, last, lanes)


def _table(view: View, table: AreaTable) -> Component:
    kinds = ["", *["number"] * (len(table.columns) - 1)]
    head = [html.Th(each, className=kind) for each, kind in zip(table.columns, kinds, strict=True)]
    body = []
    for row, pick in zip(table.rows, table.picks, strict=True):
        is_picked = view.pick == pick
        link = html.A(row[0], href=view.link(pick=None if is_picked else pick), title=row[0])
        cells = [html.Td(link), *(html.Td(each, className="number") for each in row[1:])]
        body.append(html.Tr(cells, className="current" if is_picked else ""))
    return html.Table([html.Thead(html.Tr(head)), html.Tbody(body)], className="sums")


def exported(loaded: LoadedTrace, query: str) -> dict[str, Any] | None:
    """The sums that an address shows as a file to download; None where it marks nothing."""
    view = resolve(loaded, query).view
    sums = _sums(loaded, view)
    if sums is None:
        return None
    by = view.by or "name"
    name = area_file(loaded.trace.name, by)
    return {"content": area_csv(sums, loaded.timeline, by), "filename": name, "type": "text/csv"}
