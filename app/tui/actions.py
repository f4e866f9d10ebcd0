"""Everything a key can do, in one place: key bindings, footer and help are made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding

PAGES = ("overview", "timeline", "findings", "step", "blame")
EVERYWHERE = "everywhere"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that the user can do: `name` is the method, without its `action_` prefix.

    `keys` are Textual's names; `shown` is how the footer and the help write them. Actions next to
    each other with the same `hint` share one entry in the footer.
    """

    page: str
    name: str
    keys: str
    shown: str
    help: str
    hint: str = ""


def _on(page: str, *rows: tuple[str, ...]) -> tuple[Action, ...]:
    return tuple(Action(page, *row) for row in rows)


SCROLLS = (
    ("scroll(3)", "J,pagedown", "J", "scroll the text down"),
    ("scroll(-3)", "K,pageup", "K", "scroll the text up"),
)
ACTIONS: tuple[Action, ...] = (
    *_on(
        "timeline",
        ("move('zoom_in')", "w", "w", "zoom in", "zoom"),
        ("move('zoom_out')", "s", "s", "zoom out", "zoom"),
        ("move('pan_left')", "a", "a", "earlier", "pan"),
        ("move('pan_right')", "d", "d", "later", "pan"),
        ("move('lane_down')", "j,down", "j", "next lane", "lane"),
        ("move('lane_up')", "k,up", "k", "previous lane", "lane"),
        ("move('previous_span')", "h,left,comma", "h ,", "previous span in the lane", "span"),
        ("move('next_span')", "l,right,full_stop", "l .", "next span in the lane", "span"),
        ("move('centre')", "f", "f", "centre the selection; again: fit it"),
        (
            "move('mark')",
            "m",
            "m",
            "mark a range: once where it begins, once where it ends",
            "mark",
        ),
        ("move('pin')", "p", "p", "pin the lane on top, or let it go", "pin"),
        ("move('fold')", "z", "z", "fold or unfold the lane's section"),
        ("move('start')", "g,home", "gg", "start of the trace"),
        ("move('end')", "G,end", "G", "end of the trace"),
        ("move('whole')", "0", "0", "the whole trace"),
        ("details", "enter", "enter", "show or hide the details", "details"),
        *SCROLLS,
    ),
    *_on(
        "overview",
        ("column(-1)", "h,left,comma", "h ,", "a column earlier", "column"),
        ("column(1)", "l,right,full_stop", "l .", "a column later", "column"),
        ("edge(0)", "g,home", "gg", "first step"),
        ("edge(-1)", "G,end", "G", "last step"),
        *SCROLLS,
    ),
    *_on(
        "findings",
        ("move(1)", "j,down", "j", "next row", "row"),
        ("move(-1)", "k,up", "k", "previous row", "row"),
        ("page_move(1)", "space", "space", "a page down"),
        ("page_move(-1)", "b", "b", "a page up"),
        ("edge(0)", "g,home", "gg", "first row"),
        ("edge(-1)", "G,end", "G", "last row"),
        ("jump", "enter", "enter", "go to it in the timeline", "go to it"),
        ("explain", "e", "e", "the rule's page", "explain"),
        *SCROLLS,
    ),
    *_on(
        "step",
        ("event(-1)", "h,left,comma", "h ,", "previous event", "event"),
        ("event(1)", "l,right,full_stop", "l .", "next event", "event"),
        ("move(1)", "j,down", "j", "next request", "request"),
        ("move(-1)", "k,up", "k", "previous request", "request"),
        ("edge(0)", "g,home", "gg", "first step"),
        ("edge(-1)", "G,end", "G", "last step"),
        (
            "app.page('timeline')",
            "enter",
            "enter",
            "show this moment in the timeline",
            "in timeline",
        ),
    ),
    *_on(
        "blame",
        ("move(1)", "j,down", "j", "next request", "request"),
        ("move(-1)", "k,up", "k", "previous request", "request"),
        ("page_move(1)", "space", "space", "a page down"),
        ("page_move(-1)", "b", "b", "a page up"),
        ("edge(0)", "g,home", "gg", "first request"),
        ("edge(-1)", "G,end", "G", "last request"),
        ("sort", "s", "s", "sort by latency, by arrival, by time to first token", "sort"),
        ("jump", "enter", "enter", "go to its arrival in the timeline", "go to it"),
        *SCROLLS,
    ),
    *_on(
        EVERYWHERE,
        ("finding(1)", "n", "n", "next finding, in the timeline", "finding"),
        ("finding(-1)", "N", "N", "previous finding", "finding"),
        ("step(-1)", "left_square_bracket", "[", "previous step", "step"),
        ("step(1)", "right_square_bracket", "]", "next step", "step"),
        ("search('step ')", "colon", ":", "go to a step by its number"),
        ("search", "slash", "/", "find a request, task, core or step", "search"),
        ("page('overview')", "1", "1", "overview", "page"),
        ("page('timeline')", "2", "2", "timeline", "page"),
        ("page('findings')", "3", "3", "findings", "page"),
        ("page('step')", "4", "4", "step detail", "page"),
        ("page('blame')", "5", "5", "where each request's time went", "page"),
        ("clear", "escape", "Esc", "clear the mark, the selection, the filter"),
        ("help", "question_mark", "?", "this help", "help"),
        ("quit", "q", "q", "quit", "quit"),
    ),
)


def bindings(page: str) -> list[Binding]:
    """Textual's key bindings for a page, or for `EVERYWHERE`."""
    return [
        Binding(action.keys, action.name, action.help) for action in ACTIONS if action.page == page
    ]


@dataclass(frozen=True, slots=True)
class Hint:
    """An entry of the footer: the keys as shown, what they do, the action a click runs."""

    keys: str
    label: str
    action: str


def hints(page: str) -> Iterator[Hint]:
    """The footer of a page: its own actions first, then those that work everywhere."""
    named = [each for each in ACTIONS if each.hint and each.page in (page, EVERYWHERE)]
    for label in dict.fromkeys(each.hint for each in named):
        group = [each for each in named if each.hint == label]
        keys = (
            f"1-{len(PAGES)}"
            if label == "page"
            else " ".join(each.shown.split()[0] for each in group)
        )
        yield Hint(keys, label, _target(group[0]))


def _target(action: Action) -> str:
    """The action as a click runs it: on the application, or on the page, which has the focus."""
    if action.name.startswith("app."):
        return action.name
    return f"{'app' if action.page == EVERYWHERE else 'focused'}.{action.name}"
