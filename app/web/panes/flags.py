"""The flags of the trace: a list, the form for one, and what comes of what was typed there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from stepscope.app.debug.debugger.all_ranks import flag_of
from stepscope.app.kept.flags import Flag
from stepscope.app.palette import FLAG_GLYPH
from stepscope.app.present.spans.flag_words import (
    FORM,
    GONE,
    HOW,
    NO_FLAGS,
    NO_FLAGS_OF_TWO,
    PLACEHOLDER,
    PUT_ALONE,
    came_of,
    first_line,
    place_for,
    rows_of,
)
from stepscope.app.printable import plain
from stepscope.app.timeline.flags.flag_at import FlagAt
from stepscope.app.timeline.flags.flag_walk import (
    flag_at_time,
    flag_here,
    flag_of_request,
    flag_there,
)
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.stops import stand
from stepscope.app.web.view import View
from stepscope.ingest.errors import StepscopeError

GO = "flag-"
"""A move of an address that goes to a flag: `go=flag-storm`."""
LONGEST_LINE = 2_000
Json = dict[str, Any]


def flags_pane(loaded: LoadedTrace, view: View) -> Component:
    """A line for each flag: its name leads to it, and buttons change it or take it away."""
    if failed := loaded.placed_flags.failed:
        return html.P(plain(failed), className="controls warning")
    flags = loaded.placed_flags.now
    if not flags:
        said = f"{NO_FLAGS} {HOW}" if loaded.is_one else f"{NO_FLAGS_OF_TWO} {PUT_ALONE}."
        return html.P(said, className="controls muted")
    rows = zip(flags, rows_of(flags, loaded.timeline), strict=True)
    lines = [_line(view, flag, cells, can_change=loaded.is_one) for flag, cells in rows]
    more = [] if loaded.is_one else [html.P(f"{PUT_ALONE}.", className="controls muted")]
    return html.Div([*lines, *more], id="flag-list")


def _line(
    view: View, flag: FlagAt, cells: tuple[str, str, str, str], *, can_change: bool
) -> Component:
    name, note, lane, time = map(plain, cells)
    shown = [
        html.Span(FLAG_GLYPH, className="flag-glyph"),
        html.Span(name, title=name),
        html.Span(note, title=note),
        html.Span(lane, className="where"),
        html.Span(time, className="when"),
    ]
    buttons = (
        [_button("change", "flag-change", flag), _button("take away", "flag-drop", flag)]
        if can_change
        else []
    )
    return html.Div(
        [html.A(shown, href=view.link(go=f"{GO}{flag.name}"), className="flag"), *buttons],
        className="flag-line",
    )


def _button(text: str, does: str, flag: FlagAt) -> Component:
    of: Json = {
        "data-name": flag.name, "data-line": f"@{flag.name} {flag.note}",
        "aria-label": f"{text} @{flag.name}",
    }  # fmt: skip
    return html.Button(text, type="button", className=f"plain-button {does}", **of)


def flag_form() -> list[Component]:
    """What lies over the page while a flag is put or changed."""
    says: Json = {"aria-label": "a name and a note"}
    return [
        html.H2("flag"),
        html.P("", id="flag-place"),
        dcc.Input(
            id="flag-text", type="text", placeholder=PLACEHOLDER, autoComplete="off", value=""
        ),
        html.P("", id="flag-failed", role="alert", className="warning"),
        html.P([FORM, " ", html.Span(GONE, id="flag-gone")], className="muted"),
        html.Div(
            [
                html.Button("keep", id="flag-keep", className="icon", type="button"),
                html.Button("cancel", id="flag-cancel", className="icon", type="button"),
            ],
            className="buttons",
            role="group",
            **says,
        ),
    ]


def flags_told(loaded: LoadedTrace, view: View, navigator: Navigator) -> Json:
    """The flags for the page's scripts, and where one is put now, or which is changed there."""
    told = [
        [each.name, plain(each.note), each.ts_ns - loaded.origin, each.lane]
        for each in navigator.flags
    ]
    if not loaded.is_one:
        return {"flags": told, "flag": None}
    flag, kept = _place(loaded, view, navigator), loaded.flags
    was = flag_there(navigator, flag)
    new = "" if kept.failed else first_line(kept.flags, None)
    return {
        "flags": told,
        "flag": {
            "place": plain(place_for(flag, loaded.timeline)), "was": was.name if was else "",
            "line": first_line(kept.flags, was) if was else new, "new": new,
        },
    }  # fmt: skip


def _place(loaded: LoadedTrace, view: View, navigator: Navigator) -> Flag:
    """Where a flag is put: at what is selected, else at the step or request that is shown."""
    is_chosen = navigator.span is not None or navigator.finding is not None
    if view.tab == "step" and loaded.is_whole and not is_chosen:
        with loaded.session_lock:
            return flag_of(stand(loaded, view))
    if view.tab == "request" and view.request is not None and not is_chosen:
        own = flag_of_request(navigator, view.rank or 0, view.request)
        return own or flag_here(navigator)
    return flag_here(navigator)


def flag_typed(
    loaded: LoadedTrace, view: View, navigator: Navigator, asked: Mapping[str, Any]
) -> Json:
    """Do what was typed; `asked` has the line, the name of the flag it changes, and a time.

    The time is one of the ruler, from the origin; None for where a flag is put else.
    """
    line, was, t = str(asked["line"])[:LONGEST_LINE], str(asked["was"]), asked["t"]
    try:
        flag = (
            _place(loaded, view, navigator)
            if t is None
            else flag_at_time(navigator, int(t) + loaded.origin)
        )
        if loaded.is_one:
            return {"said": came_of(loaded.flags.flags.typed(line, flag, was), was), "failed": ""}
    except (StepscopeError, ValueError, OverflowError) as error:
        return {"said": "", "failed": plain(str(error))}
    return {"said": "", "failed": PUT_ALONE}
