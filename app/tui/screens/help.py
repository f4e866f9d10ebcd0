"""What every key and the mouse do, made from the registry of actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from stepscope.app.tui.actions import ACTIONS, EVERYWHERE, PAGES, Action
from stepscope.app.tui.ink import ACCENT, PANEL, TEXT, ink
from stepscope.app.tui.widgets.prose import Block, Fact, Heading, Painted, Prose, Title
from stepscope.app.tui.widgets.text_bar import Piece

MOUSE = (
    ("click", "select a span, a row; open a tab; follow a link"),
    ("finding", "click it to go there, in the list or on the map"),
    ("wheel", "zoom where the mouse is; over the names: scroll"),
    ("shift wheel", "pan"),
    ("drag", "pan; on the ruler or with shift: mark a range"),
    ("map", "click or drag to look there"),
    ("legend", "click a state to hide it, again to show it"),
    ("section", "click its header to fold it"),
)


class HelpScreen(ModalScreen[None]):
    """Keys by page, then the mouse; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "close"),
        Binding("j,down", "scroll(1)", "down"),
        Binding("k,up", "scroll(-1)", "up"),
        Binding("pagedown,space", "scroll(10)", "a page down"),
        Binding("pageup", "scroll(-10)", "a page up"),
    ]

    def __init__(self, page: str) -> None:
        super().__init__()
        self._page = page

    def compose(self) -> ComposeResult:
        """One pane."""
        yield Prose(id="help")

    def on_mount(self) -> None:
        """Fill it."""
        self.query_one(Prose).show(list(help_blocks(self._page)))

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one(Prose).scroll_relative(y=lines, animate=False)


def help_blocks(page: str) -> Iterator[Block]:
    """The help as blocks of text, beginning with the page that is open."""
    yield Title("Keys and mouse")
    for each in dict.fromkeys((page, EVERYWHERE, *PAGES)):
        actions = [action for action in ACTIONS if action.page == each]
        if actions:
            yield Heading(each if each == EVERYWHERE else f"on the {each} page")
        for _, group in groupby(actions, key=lambda action: action.hint or action.name):
            yield _row(list(group))
    yield Heading("mouse")
    for where, what in MOUSE:
        yield Fact(where, (what,))


def _row(actions: Sequence[Action]) -> Block:
    keys = " ".join(action.shown for action in actions)
    what = " · ".join(action.help for action in actions)
    return Painted(
        (Piece(f"{keys:<14}", ink(ACCENT, PANEL, bold=True)), Piece(what, ink(TEXT, PANEL)))
    )
