"""Where to stop: a line for what the prompt's `break` takes, and the way from hit to hit."""

from __future__ import annotations

from collections.abc import Iterator

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.debug.stops import KINDS
from stepscope.app.palette import HIT_GLYPH
from stepscope.app.printable import plain
from stepscope.app.web.stops import Looked
from stepscope.app.web.view import View


def break_bar(example: str, view: View, found: Looked | None) -> Iterator[Component]:
    """The line to type in, with an example of what can be, and beside it where the hits are."""
    yield html.Span("stop at", className="muted", title=_possible())
    yield dcc.Input(
        id="break",
        type="text",
        value=view.stop or "",
        placeholder=f"like {plain(example)}",
        autoComplete="off",
        spellCheck="false",
    )
    yield from _found(view, found)


def _found(view: View, found: Looked | None) -> Iterator[Component]:
    if found is None:
        return
    if found.told:
        yield html.Span([html.Span(HIT_GLYPH, className="glyph"), f" {found.told}"], id="told")
        yield _way("◀ C", view.link(go="previous-hit"), found.has_previous, "the hit before")
        yield _way("c ▶", view.link(go="next-hit"), found.has_next, "the next hit")
    yield html.A("clear", href=view.link(stop=None), title="look for nothing")


def _way(text: str, href: str, leads: bool, says: str) -> Component:
    if leads:
        return html.A(text, href=href, className="button", title=says)
    return html.Span(text, className="gone", title=f"there is no {says.removeprefix('the ')}")


def _possible() -> str:
    forms = [f"{form}: {does}" for kind in KINDS for form, does in kind.usage]
    return "\n".join(["B: where to stop, and enter looks for it. It can be", *forms])
