"""The page's skeleton: top bar, minimap, timeline, drawer, details. What fills it are callbacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.palette import CORES, NOT_APPLICABLE, SEVERITY_MARKS
from stepscope.app.present.spans.legend import names_of, states_of
from stepscope.app.present.tab import Tab, numbered
from stepscope.app.printable import plain
from stepscope.app.timeline import State, Timeline
from stepscope.app.web import figures, wire
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.flags import flag_form
from stepscope.app.web.shades import shade
from stepscope.app.web.view import View
from stepscope.app.widths import fit_middle

LONGEST_CHIP = 18
AT_FIRST = "at-first"
"""The class of a chip that is there while colours are as at first."""
_OTHERS = html.A(
    "open", href="/open/", id="open-other", className="icon", title="open another trace (O)"
)
MARK_PLACES = 400
"""Places along the minimap that can have a mark of a finding; each shows the worst."""


def layout(loaded: LoadedTrace, *, opens_others: bool = False) -> Component:
    """Everything that stands still on the page of a trace."""
    return html.Div(
        [
            _bar(loaded, opens_others),
            _minimap(loaded),
            _stage(loaded),
            _drawer(loaded),
            _details(loaded),
            *_edges(),
            html.Div(id="live", role="status"),
            html.Div(id="relation", role="toolbar", **_called("two traces")),
            html.Div(id="tip"),
            _overlay("help", "keys", "keys"),
            _overlay("explain", "rule", "what the rule finds"),
            _overlay("flag", "flag-form", "a flag", flag_form()),
            dcc.Download(id="download"),
            *_stores(loaded),
        ],
        id="page",
    )


def _bar(loaded: LoadedTrace, opens_others: bool) -> Component:
    manifest = loaded.trace.manifest
    parts = (manifest.scenario, manifest.variant) if loaded.is_one else ()
    run = " · ".join(plain(part) for part in parts if part)
    name = plain(loaded.name)
    return html.Header(
        [
            html.A(
                "stepscope", href=View().link(finding=None, sel=None, step=None, t=None), id="brand"
            ),
            html.Span([html.B(run or name), f" {name}" if run else ""], id="trace", title=name),
            html.Div(
                [
                    dcc.Input(
                        id="find",
                        type="search",
                        placeholder="/ find a request, task, core, step …",
                        autoComplete="off",
                        debounce=False,
                    ),
                    html.Div(id="hits"),
                ],
                id="search",
            ),
            html.Div(
                legend(loaded),
                id="legend",
                role="group",
                **_called("states and names, to hide or show"),
            ),
            html.Span(id="position"),
            *([_OTHERS] if opens_others else []),
            *(
                html.Button(
                    kind,
                    id=name,
                    className="icon",
                    type="button",
                    title=f"save the view as {kind}",
                )
                for name, kind in (("save", "PNG"), ("save-svg", "SVG"))
            ),
            html.Button(
                "◐",
                id="theme",
                className="icon",
                title="light or dark",
                type="button",
                **_called("light or dark"),
            ),
            html.Button(
                "?", id="ask-help", className="icon", title="keys", type="button", **_called("keys")
            ),
        ],
        id="bar",
    )


def legend(loaded: LoadedTrace) -> list[Component]:
    """The chips of the colours at first, and of the others where there are such."""
    other = loaded.timeline.coloured("state" if loaded.timeline.colours == "name" else "name")
    otherwise = _legend(other, "otherwise") if other is not loaded.timeline else ()
    return [*_legend(loaded.timeline, AT_FIRST), *otherwise]


def _legend(timeline: Timeline, kind: str) -> Iterator[Component]:
    """The states and the names that a timeline shows; `kind` is for the colours at first or not."""
    yield from (_chip(state, kind) for state in states_of(timeline))
    for state, name, share in names_of(timeline):
        word = [fit_middle(name, LONGEST_CHIP), share]
        yield _button(state, kind, "", word, f"{name}: {share} of {timeline.share_of}; click")


def _chip(state: State, kind: str = AT_FIRST) -> Component:
    letter = state.glyph if state.glyph in "PD▼" else ""
    return _button(state, kind, letter, [state.name], f"{state.name}{_meaning(state)}: click")


def _button(state: State, kind: str, letter: str, words: list[str], says: str) -> Component:
    """What stands for a state or a name, which hides its spans."""
    swatch = html.Span(
        letter, className=f"swatch {state.cue}", style={"--colour": shade(state.colour)}
    )
    named: dict[str, Any] = {"data-state": state.name}
    word, *more = words
    return html.Button(
        [swatch, html.Span(word, className="word"), *(html.Span(each) for each in more)],
        className=f"chip {kind}",
        type="button",
        title=f"{says} to hide or show",
        id=f"{'chip' if kind == AT_FIRST else 'other-chip'}-{state.name}",
        **named,
    )


def _meaning(state: State) -> str:
    return f" ({CORES[state.name]})" if state.name in CORES else ""


def _minimap(loaded: LoadedTrace) -> Component:
    load = loaded.load
    chart = dcc.Graph(id="load", figure=figures.blank(), config=figures.STILL, responsive=True)
    gutter = [
        html.Span("load" if loaded.is_one else "load A · B", title=load.what),
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
                **_called(f"{found.code} {found.name}"),
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
                    html.Div("", id="corner"),
                    html.Canvas(id="canvas", role="img", **_called("what ran, over time")),
                    html.Div(id="pinned"),
                ],
                id="sticky",
            ),
            html.Div(html.Div(id="names"), id="paper"),
            *([] if loaded.timeline.lanes else [empty]),
        ],
        id="stage",
        tabIndex="0",
        **_called("timeline"),
    )


def _drawer(loaded: LoadedTrace) -> Component:
    counted = {"findings": num_findings(loaded)}
    tabs = [_leaf(key, tab, counted.get(tab.name, "")) for key, tab in numbered(loaded.panes)]
    lower = html.Button(
        "▾", id="lower", className="icon", title="lower or raise", type="button",
        **_called("lower or raise the pane"),
    )  # fmt: skip
    # What scrolls can be reached by keys.
    pane = html.Div(id="pane", role="region", tabIndex=0, **_called("pane"))
    return html.Section(
        [html.Nav([*tabs, lower], id="tabs", **_called("panes")), pane], id="drawer"
    )


def num_findings(loaded: LoadedTrace) -> str:
    """How many findings there are, or that no rule could judge."""
    is_blind = loaded.result.coverage.is_blind and not loaded.findings
    return NOT_APPLICABLE if is_blind else f"{len(loaded.findings):,}"


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
    title = html.H3(f"tokens per step / budget{of_a}")
    of = loaded.composition
    known = bool(np.isfinite([*of.prefill_tokens, *of.decode_tokens]).any())
    return html.Aside(
        [
            html.Div(id="said", role="status", className="unseen"),
            html.Div(id="about", role="region", tabIndex=0, **_called("what is selected")),
            html.Div([title, chart], id="budget", hidden=not known),
        ],
        id="details",
        **_called("details"),
    )


def _called(name: str) -> dict[str, Any]:
    """What somebody who hears the page is told that an element is."""
    return {"aria-label": name}


def _overlay(name: str, sheet: str, says: str, inside: Sequence[Component] = ()) -> Component:
    told: dict[str, Any] = {**_called(says), "aria-modal": "true"}
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
    """What the page and the server tell each other; `address` and `ask` are set by the page."""
    opened: dict[str, Any] = {"model": wire.model(loaded), "revision": loaded.key}
    return [
        dcc.Store(id=name, data=opened.get(name))
        for name in (
            "model",
            "address",
            "view",
            "filled",
            "ask",
            "picture",
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
