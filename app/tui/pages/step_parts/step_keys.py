"""The keys of the step page."""

from __future__ import annotations

from stepscope.app.timeline.keymap import STOPS
from stepscope.app.tui.actions import actions, of_keymap

CALLED = {
    "break": "break", "value": "value", "what-if": "what_if", "next-hit": "hit(1)",
    "previous-hit": "hit(-1)",
}  # fmt: skip
"""The methods here for the actions of the keymap that ask about the whole run."""
_IN_TIME = actions(
    ("event(-1)", "h,left,comma", "h ,", "previous event", "event"),
    ("event(1)", "l,right,full_stop", "l .", "next event", "event"),
    ("change(-1)", "I", "I", "previous change: a decision, an event, a block"),
    ("change(1)", "i", "i", "next change: a decision, an event, a block"),
    ("prove", "o", "o", "go to the row that proves why the request waits"),
    ("return", "b", "b", "go back to where that was asked"),
    ("rank", "R", "R", "go over to the next rank, at the same moment"),
)
_ELSEWHERE = actions(
    ("move(1)", "j,down", "j", "next request", "request"),
    ("move(-1)", "k,up", "k", "previous request", "request"),
    ("edge(0)", "g,home", "g", "first step"),
    ("edge(-1)", "G,end", "G", "last step"),
    (
        "app.page('timeline')",
        "enter",
        "enter",
        "show this moment in the timeline",
        "timeline",
    ),
)
KEYS = (*_IN_TIME, *of_keymap(STOPS, CALLED.__getitem__), *_ELSEWHERE)
