"""The keymap: every key means one thing, and everything is said."""

from __future__ import annotations

from collections import Counter

from stepscope.app.timeline.keymap import FLAGS, KEYMAP, RECORDING, STOPS
from stepscope.app.timeline.moves import MOVES

EVERY = (*KEYMAP, *RECORDING, *STOPS, *FLAGS)


def test_no_key_of_the_timeline_means_two_things() -> None:
    pressed = Counter(key for each in EVERY for key in each.keys)

    assert [key for key, times in pressed.items() if times > 1] == []


def test_every_action_has_one_entry_and_says_what_it_does() -> None:
    assert len({each.action for each in EVERY}) == len(EVERY)
    assert all(each.keys and each.says and each.group for each in EVERY)


def test_every_action_is_a_move_but_for_what_opens_something_or_the_looks() -> None:
    others = {"search", "help", "picture", "flag", "flags", "light", "rules"}
    assert {each.action for each in (*KEYMAP, *FLAGS)} - others == MOVES.keys()
