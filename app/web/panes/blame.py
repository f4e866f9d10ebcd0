"""The drawer's blame: what took how much of all latencies, and a waterfall of the slowest."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from dash import dcc, html
from dash.development.base_component import Component
from plotly import graph_objects as go

from stepscope.app.palette import BACKGROUND
from stepscope.app.present.blame_bars import LOOKS, Bars, Piece, by_group, of_which
from stepscope.app.present.blame_tables import WIDEST_NAME, row_name, swatch_of, totals_table
from stepscope.app.printable import plain
from stepscope.app.units import UNITS, stated
from stepscope.app.web import figures
from stepscope.app.web.components import components, swatch
from stepscope.app.widths import width_of

if TYPE_CHECKING:
    from stepscope.app.web.loaded import LoadedTrace
    from stepscope.app.web.view import View

MOST_BARS = 40
BAR_PX, FRAME_PX = 18, 46
FINE, WIDE, WIDEST = 5, 10, 16
MOST_PIECES, CELLS = 100, 1000
"""A bar of more pieces is drawn on so many cells of the axis."""
PATTERNS = {
    "front-end": ("/", WIDEST), "delivery": ("\\", WIDEST), "queue": (".", FINE),
    "parked": ("+", WIDE), "preempted": ("x", FINE),
    "recompute": ("/", FINE), "prefill": ("", FINE),
    "decode": ("|", FINE), "gemm": ("/", WIDE), "attention": ("|", WIDE), "kernel": ("", FINE),
    "communication": ("+", FINE), "copy": (".", WIDE), "gpu-wait": ("x", WIDE),
    "launch": ("-", WIDE), "dispatch": ("\\", FINE), "idle": ("", FINE), "unknown": ("-", FINE),
}  # fmt: skip
"""What tells a group of causes from the others where colours do not.

What there is most of is plain, else a bar of many pieces is a clutter: prompts, or a GPU's kernels.
"""


def blame_pane(loaded: LoadedTrace, view: View) -> Component:
    """Totals by cause, a bar for each of the slowest requests, and what the trace left unsaid."""
    blamed = loaded.blamed
    notes = html.Ul([html.Li(plain(note)) for note in blamed.notes], className="notes muted")
    if blamed.requests.is_empty():
        return html.Div(notes)
    rows = blamed.requests.top_k(MOST_BARS, by="latency_ns").to_dicts()
    chart = dcc.Graph(
        id="waterfall",
        figure=waterfall(loaded.bars, rows),
        config=figures.LIVE,
        style={"height": f"{BAR_PX * len(rows) + FRAME_PX}px"},
    )
    named = _requests(rows, view) if blamed.names_requests else []
    bars = html.Div([_legend(rows, of_which(blamed, len(rows))), chart, *named], className="bars")
    # Of one row, every percentile would be its total.
    totals = components([totals_table(blamed, is_brief=len(blamed.requests) == 1)])
    told = html.Div([bars, html.Div(totals, className="totals")], className="blame")
    return html.Div([told, notes])


def _requests(rows: list[dict[str, Any]], view: View) -> list[Component]:
    """Links to the pages of the requests that have bars, in the order of these."""
    links = [
        html.A(
            plain(row_name(row, WIDEST_NAME)),
            href=view.link(tab="request", rank=row["rank"], request=row["request"]),
            className="tag",
        )
        for row in rows
    ]
    return [html.Div([html.Span("in full:", className="muted"), *links], className="tags wide")]


def waterfall(bars: Bars, rows: list[dict[str, Any]]) -> go.Figure:
    """A bar for each row of `Blame.requests` on one axis of time: what it was in when."""
    first = min(row["arrive_ns"] for row in rows)
    last = max(row["ended_ns"] for row in rows)
    scale, unit = next((each for each in UNITS if last - first >= each[0]), UNITS[-1])
    names = [_name(row) for row in rows]
    margin = {**MARGIN, "l": LETTER_PX * max(map(width_of, names)) + MARGIN["r"]}
    figure = go.Figure(layout=figures.layout(barmode="overlay", bargap=0, margin=margin))
    drawn = [(at, each) for at, row in enumerate(rows) for each in _placed(bars, row, first, last)]
    spent = [by_group(row) for row in rows]
    for group, look in LOOKS.items():
        own = [(at, each) for at, each in drawn if each.group == group]
        if not own:
            continue
        shape, size = PATTERNS[group]
        figure.add_bar(
            orientation="h",
            y=[at for at, _ in own],
            base=[each.start / scale for _, each in own],
            x=[each.length / scale for _, each in own],
            name=group,
            width=THICK,  # else a group that is in every third row is drawn as high as three
            marker={
                "color": look.colour,
                "line": ROUNDED,
                "pattern": {"shape": shape, "size": size, **STROKES},
            },
            customdata=[stated(spent[at][group]) for at, _ in own],
            hovertemplate=f"{group}, %{{customdata}} in all<extra></extra>",
        )
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=[*map(escape, names)],
                        autorange="reversed", fixedrange=True, showgrid=False)  # fmt: skip
    figure.update_xaxes(ticksuffix=f" {unit}", fixedrange=True, showgrid=True)
    return figure


def _placed(bars: Bars, row: dict[str, Any], first: int, last: int) -> Iterator[Piece]:
    """The pieces of a row's bar, from `first` on; the shortest give way to what is beside them."""
    pieces = bars.pieces(row)
    if len(pieces) <= MOST_PIECES:
        began = row["arrive_ns"] - first
        yield from (Piece(each.group, began + each.start, each.length) for each in pieces)
        return
    span = last - first
    for each in bars.cells(row, first, last, CELLS):
        start, end = each.start * span // CELLS, (each.start + each.length) * span // CELLS
        yield Piece(each.group, start, end - start)


ROUNDED = {"width": 0.02, "color": "rgba(0,0,0,0)"}
"""Has the ends of bars rounded to pixels, so that all pixels of a row are shared out.

Plotly draws a bar without a line, of less than two pixels, on every pixel that it touches, over
what is beside it: of a batch that idles for a moment after each step nothing but idle was seen.
"""
STROKES = {"fillmode": "overlay", "fgcolor": BACKGROUND}
THICK = 0.85
"""Height of a bar, as a share of its row."""
MARGIN = {"r": 14, "t": 4, "b": 26}
LETTER_PX = 6
"""Width of a letter of a request's name, which stands left of its bar."""


def _name(row: dict[str, Any]) -> str:
    return f"{plain(row_name(row, WIDEST_NAME))}  {stated(row['latency_ns'])}"


def _legend(rows: list[dict[str, Any]], of: str) -> Component:
    shown = {group for row in rows for group in by_group(row)}
    chips = [
        html.Span([swatch(swatch_of(group)), f" {group}"], className="chip")
        for group in LOOKS
        if group in shown
    ]
    return html.Div([html.B(of), *chips], className="controls")
