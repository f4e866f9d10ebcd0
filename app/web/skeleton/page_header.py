"""The page's top bar: what is looked at, the line to search in, the legend, and buttons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.palette import CORES
from stepscope.app.present.spans.legend import names_of, states_of
from stepscope.app.printable import plain
from stepscope.app.timeline import State, Timeline
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.shades import shade
from stepscope.app.web.view import View
from stepscope.app.widths import fit_middle

LONGEST_CHIP = 18
AT_FIRST = "at-first"
"""The class of a chip that is there while colours are as at first."""
_OTHERS = html.A(
    "open", href="/open/", id="open-other", className="icon", title="open another trace (O)"
)


def bar(loaded: LoadedTrace, *, opens_others: bool) -> Component:
    """What is looked at, what finds a name in it, the legend, and buttons."""
    manifest = loaded.trace.manifest
    parts = (manifest.scenario, manifest.variant) if loaded.is_one else ()
    run = " · ".join(plain(part) for part in parts if part)
    name = plain(loaded.name)
    saved_as: dict[str, Any] = {"data-file": name}
    return html.Header(
        [
            html.A(
                "stepscope", href=View().link(finding=None, sel=None, step=None, t=None), id="brand"
            ),
            html.Span(
                [html.B(run or name), *([html.Span(f" {name}", className="file")] if run else [])],
                id="trace",
                title=f"{run}: {name}" if run else name,
                **saved_as,
            ),
            html.Div(
                [
                    dcc.Input(
                        id="find",
                        type="search",
                        placeholder="/ find a name or step",
                        autoComplete="off",
                        debounce=False,
                    ),
                    html.Div(id="hits"),
                ],
                id="search",
                title="find a request, task, core or step",
            ),
            html.Div(
                legend(loaded),
                id="legend",
                role="group",
                **called("states and names, to hide or show"),
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
                **called("light or dark"),
            ),
            html.Button(
                "?", id="ask-help", className="icon", title="keys", type="button", **called("keys")
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
    yield from (_chip(state, word, kind) for state, word in states_of(timeline))
    for state, name, share in names_of(timeline):
        word = [fit_middle(name, LONGEST_CHIP), share]
        yield _button(state, kind, "", word, f"{name}: {share} of {timeline.share_of}; click")


def _chip(state: State, word: str, kind: str) -> Component:
    letter = state.glyph if state.glyph in "PDM▼✗" else ""
    return _button(state, kind, letter, [word], f"{word}{_meaning(state)}: click")


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


def called(name: str) -> dict[str, Any]:
    """What somebody who hears the page is told that an element is."""
    return {"aria-label": name}
