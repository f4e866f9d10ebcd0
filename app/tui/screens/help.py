"""What every key and the mouse do, made from the registry of actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from stepscope.app.present.blocks import Fact, Heading, Title
from stepscope.app.timeline.keymap import FIRST_KEYS
from stepscope.app.tui.actions import Action
from stepscope.app.tui.ink import ACCENT, PANEL, TEXT, ink
from stepscope.app.tui.pages.page import Page
from stepscope.app.tui.screens.scrolled import ScrolledScreen
from stepscope.app.tui.widgets.prose import Painted, Prose, Shown
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.widths import width_of

KEYS_WIDE, SAID_WIDE = 14, 64
"""Cells of the keys, and of what they do on a help of its usual width."""
MOUSE = (
    ("click", "select a span, a row; open a tab; follow a link"),
    ("finding", "click it to go there, in the list or on the map"),
    ("wheel", "zoom where the mouse is; over the names: scroll"),
    ("shift wheel", "pan"),
    ("drag", "pan; with shift: mark a range of the lanes; on the ruler: a range"),
    ("double click", "on the ruler: put a flag there, or change the one that is there"),
    ("flag", "click it to go there, on the ruler or on the map"),
    ("map", "click or drag to look there"),
    ("legend", "click a state to hide it, again to show it"),
    ("section", "click its header, or that of a group, to collapse it"),
)


class HelpScreen(ScrolledScreen):
    """Keys by page, then the mouse; any of the usual keys closes it."""

    SCROLLS = "help"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "close"),
    ]

    def __init__(self, page: str, pages: Sequence[Page], shared: Sequence[Action]) -> None:
        super().__init__()
        self._page = page
        self._actions = {str(each.id): each.ACTIONS for each in pages}
        self._shared = shared

    def compose(self) -> ComposeResult:
        """One pane."""
        yield Prose(id="help")

    def on_mount(self) -> None:
        """Fill it."""
        self.query_one(Prose).show(list(help_blocks(self._page, self._actions, self._shared)))


def help_blocks(
    page: str, actions: Mapping[str, Sequence[Action]], shared: Sequence[Action]
) -> Iterator[Shown]:
    """The help as blocks of text, beginning with the page that is open."""
    yield Title("Keys and mouse")
    yield Heading("first of all")
    for keys, says in FIRST_KEYS:
        yield Fact(" ".join(keys).replace("Escape", "esc"), (says,))
    yield from _page(page, actions.get(page, ()))
    yield from _part("everywhere", shared)
    for name in actions:
        if name != page:
            yield from _page(name, actions[name])
    yield Heading("mouse")
    for where, what in MOUSE:
        yield Fact(where, (what,))


def _page(name: str, actions: Sequence[Action]) -> Iterator[Shown]:
    return _part(f"on the {name} page", actions)


def _part(heading: str, actions: Sequence[Action]) -> Iterator[Shown]:
    if actions:
        yield Heading(heading)
    for _, group in groupby(actions, key=lambda action: action.hint or action.name):
        yield from _rows(list(group))


def _rows(actions: Sequence[Action]) -> Iterator[Shown]:
    """One row for keys that go together, or one for each where that has no room."""
    keys = " ".join(action.shown for action in actions)
    what = " · ".join(action.help for action in actions)
    if len(actions) > 1 and (len(keys) >= KEYS_WIDE or width_of(what) > SAID_WIDE):
        for action in actions:
            yield from _rows([action])
        return
    yield Painted(
        (
            Piece(f"{keys:<{KEYS_WIDE}}", ink(ACCENT, PANEL, bold=True)),
            Piece(what, ink(TEXT, PANEL)),
        )
    )
