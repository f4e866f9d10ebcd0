"""The legend: the states that a trace has, each of which can be hidden by a click."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.app.palette import IN_LEGEND, STATES
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.timeline.section_states import word_of
from stepscope.app.tui.ink import MUTED, PANEL, TEXT, ink
from stepscope.app.tui.plot.span_bars import fill_of, fill_style
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.widths import fit_middle

LONGEST = 18


def legend(view: Navigator) -> list[Piece]:
    """A sample of each state and its name; struck out when it is hidden."""
    shown = [kind for kind in IN_LEGEND if kind in view.timeline.kinds]
    states = [
        piece
        for kind in shown
        for piece in _entry(kind, kind in view.hidden, word_of(kind, view.timeline))
    ]
    return [*states, *_names(view)]


def _names(view: Navigator) -> Iterator[Piece]:
    """The names that took most of a profile, each with its share."""
    for each in view.timeline.top_names:
        word = f"{fit_middle(each.name, LONGEST)} {each.share:.0%}"
        yield from _entry(each.state, each.state in view.hidden, word)


def _entry(number: int, is_hidden: bool, word: str) -> tuple[Piece, Piece]:
    state, action = STATES[number], f"app.toggle_state({number})"
    sample = "✕✕" if is_hidden else fill_of(state) * 2
    return (
        Piece(f" {sample}", ink(MUTED, PANEL) if is_hidden else fill_style(state, PANEL), action),
        Piece(f" {word} ", ink(MUTED if is_hidden else TEXT, PANEL), action),
    )
