"""The legend: the states that a trace has, each of which can be hidden by a click."""

from __future__ import annotations

from stepscope.app.palette import COUNTER, STATES
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.ink import MUTED, PANEL, TEXT, ink
from stepscope.app.tui.plot.span_bars import fill_of
from stepscope.app.tui.widgets.text_bar import Piece


def legend(view: Navigator) -> list[Piece]:
    """A sample of each state and its name; struck out when it is hidden."""
    shown = [kind for kind in sorted(view.timeline.kinds) if 0 < kind < COUNTER]
    return [piece for state in shown for piece in _entry(state, state in view.hidden)]


def _entry(number: int, is_hidden: bool) -> tuple[Piece, Piece]:
    state, action = STATES[number], f"app.toggle_state({number})"
    sample = "✕✕" if is_hidden else fill_of(state) * 2
    return (
        Piece(f" {sample}", ink(MUTED if is_hidden else state.colour, PANEL), action),
        Piece(f" {state.name} ", ink(MUTED if is_hidden else TEXT, PANEL), action),
    )
