"""What stands still on a page: minimap, timeline, drawer, details. Callbacks fill it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.palette import NOT_APPLICABLE, SEVERITY_MARKS
from stepscope.app.present.about import how_many
from stepscope.app.present.tab import Tab, numbered
from stepscope.app.web import figures, wire
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.flags import flag_form
from stepscope.app.web.skeleton.page_header import bar, called
from stepscope.app.web.view import View

MARK_PLACES = 400
"""Places along the minimap that can have a mark of a finding; each shows the worst."""


def layout(loaded: LoadedTrace, *, opens_others: bool = False) -> Component:
    """Everything that stands still on the page of a trace."""
    return html.Div(
        [
            bar(loaded, opens_others=opens_others),
            _minimap(loaded),
            _stage(loaded),
            _drawer(loaded),
            _details(loaded),
            *_edges(),
            html.Div(id="live", role="status"),
            html.Div(id="relation", role="toolbar", **called("two traces")),
            html.Div(id="tip"),
            _overlay("help", "keys", "keys"),
            _overlay("explain", "rule", "what the rule finds"),
            _overlay("flag", "flag-form", "a flag", flag_form()),
            dcc.Download(id="download"),
            *_stores(loaded),
        ],
        id="page",
    )


def _minimap(loaded: LoadedTrace) -> Component:
    chart = dcc.Graph(id="load", figure=figures.blank(), config=figures.STILL, responsive=True)
    gutter = [
        html.Span("load", id="told-load"),
        html.Span("", id="told-hits"),
        html.Span("findings"),
    ]
    links = html.Div(marks(loaded), id="marks")
    window = html.Div(html.Div(id="window"), id="clip")
    return html.Section(
        [
            html.Div(gutter, className="gutter"),
            html.Div(
                [chart, html.Div(id="stops"), html.Div(id="flag-marks"), links, window],
                id="overview",
            ),
        ],
        id="map",
    )


def marks(loaded: LoadedTrace) -> list[Component]:
    """Links to findings where they are in the trace; of those that would overlap, the first."""
    taken: set[int] = set()
    links: list[Component] = []
    for key, found in loaded.findings.items():
        ends = loaded.finding_range(found)
        place = None if ends is None else round(MARK_PLACES * ends[0] / loaded.length)
        if place is None or place in taken:
            continue
        taken.add(place)
        links.append(
            html.A(
                SEVERITY_MARKS[found.severity].glyph.replace("✖", "▲"),
                href=View().link(finding=key),
                className=str(found.severity),
                title=f"{found.code} {found.name}",
                tabIndex=-1,
                **called(f"{found.code} {found.name}"),
                style={"left": f"{100 * place / MARK_PLACES}%"},
            )
        )
    return links


def _stage(loaded: LoadedTrace) -> Component:
    empty = html.P("This trace has nothing that lies on a timeline.", id="nothing")
    return html.Main(
        [
            html.Div(
                [
                    html.Div("" if loaded.is_one else "time A\ntime B", id="corner"),
                    html.Canvas(id="canvas", role="img", **called("what ran, over time")),
                    html.Div(id="pinned"),
                ],
                id="sticky",
            ),
            html.Div(html.Div(id="names"), id="paper"),
            *([] if loaded.timeline.lanes else [empty]),
        ],
        id="stage",
        tabIndex="0",
        **called("timeline"),
    )


def _drawer(loaded: LoadedTrace) -> Component:
    counted = {"findings": num_findings(loaded)}
    tabs = [_leaf(key, tab, counted.get(tab.name, "")) for key, tab in numbered(loaded.panes)]
    lower = html.Button(
        "▾", id="lower", className="icon", title="lower or raise", type="button",
        **called("lower or raise the pane"),
    )  # fmt: skip
    # What scrolls can be reached by keys.
    pane = html.Div(id="pane", role="region", tabIndex=0, **called("pane"))
    return html.Section([html.Nav([*tabs, lower], id="tabs", **called("panes")), pane], id="drawer")


def num_findings(loaded: LoadedTrace) -> str:
    """How many findings there are, or why that is not known."""
    if loaded.result is None:
        return "…" if loaded.is_being_checked else "not checked"
    is_blind = loaded.result.coverage.is_blind and not loaded.findings
    return NOT_APPLICABLE if is_blind else how_many(loaded.findings.values())


def _leaf(key: str, tab: Tab, number: str) -> Component:
    """The tab of a pane; the page's script takes its key from `data-key`, its help from `title`."""
    told: dict[str, Any] = {"data-key": key}
    text: list[Any] = [tab.label, html.Span(number, className="count", id=f"count-{tab.name}")]
    href = View().link(tab=tab.name)
    return html.A(text, href=href, className="leaf", id=f"tab-{tab.name}", title=tab.says, **told)


def _details(loaded: LoadedTrace) -> Component:
    chart = dcc.Graph(
        id="tokens",
        figure=figures.blank(),
        config=figures.LIVE,
        responsive=True,
        style={"height": "126px"},
    )
    of_a = "" if loaded.is_one else " of A"
    of = loaded.composition
    against = " / budget" if np.isfinite(of.budget).any() else ""
    title = html.H3(f"tokens per step{against}{of_a}")
    known = bool(np.isfinite([*of.prefill_tokens, *of.decode_tokens]).any())
    return html.Aside(
        [
            html.Div(id="said", role="status", className="unseen"),
            html.Div(id="about", role="region", tabIndex=0, **called("what is selected")),
            html.Div([title, chart], id="budget", hidden=not known),
        ],
        id="details",
        **called("details"),
    )


def _overlay(name: str, sheet: str, says: str, inside: Sequence[Component] = ()) -> Component:
    told: dict[str, Any] = {**called(says), "aria-modal": "true"}
    inner = html.Div([*inside], className="sheet", id=sheet, role="dialog", tabIndex=-1, **told)
    return html.Div(inner, id=name, className="overlay")


def _edges() -> list[Component]:
    """What is dragged, or moved by keys, to give a panel more room."""
    named = {"drawer": "the pane", "details": "the details", "gutter": "the names of lanes"}
    return [_edge(name, what) for name, what in named.items()]


def _edge(name: str, what: str) -> Component:
    lies = "horizontal" if name == "drawer" else "vertical"
    told: dict[str, Any] = {"aria-label": f"size of {what}", "aria-orientation": lies}
    says = f"drag, or press arrows, to give {what} more room; a double click undoes it"
    return html.Div(
        id=f"edge-{name}", className="edge", role="separator", tabIndex=0, title=says, **told
    )


def _stores(loaded: LoadedTrace) -> list[Component]:
    """What the page and the server tell each other; `address` is set by the page."""
    opened: dict[str, Any] = {"model": wire.model(loaded), "revision": loaded.key}
    return [
        dcc.Store(id=name, data=opened.get(name))
        for name in (
            "model",
            "address",
            "view",
            "filled",
            "export",
            "typed",
            "suggested-words",
            "light",
            "news",
            "revision",
            "flag-typed",
            "flag-told",
        )
    ]
