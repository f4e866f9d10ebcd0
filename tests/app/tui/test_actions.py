"""One registry: keys, footer and help cannot disagree."""

from __future__ import annotations

from collections import Counter

import pytest

from stepscope.app.tui.actions import ACTIONS, EVERYWHERE, PAGES, Action, hints
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.tui.pages.blame import BlamePage
from stepscope.app.tui.pages.findings import FindingsPage
from stepscope.app.tui.pages.overview import OverviewPage
from stepscope.app.tui.pages.step import StepPage
from stepscope.app.tui.pages.timeline import TimelinePage
from stepscope.app.tui.screens.help import help_blocks
from stepscope.app.tui.view_state import MOVES
from stepscope.app.tui.widgets.prose import lay_out

OWNERS: dict[str, type] = {
    "overview": OverviewPage,
    "timeline": TimelinePage,
    "findings": FindingsPage,
    "step": StepPage,
    "blame": BlamePage,
    EVERYWHERE: StepscopeApp,
}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: f"{action.page}-{action.shown}")
def test_every_action_is_something_that_its_page_can_do(action: Action) -> None:
    name, _, argument = action.name.partition("(")
    owner = StepscopeApp if name.startswith("app.") else OWNERS[action.page]
    assert hasattr(owner, f"action_{name.removeprefix('app.')}")
    if action.page == "timeline" and name == "move":
        assert argument.strip("')") in MOVES


@pytest.mark.parametrize("page", PAGES)
def test_no_key_means_two_things_on_a_page(page: str) -> None:
    active = [action for action in ACTIONS if action.page in (page, EVERYWHERE)]
    keys = Counter(key for action in active for key in action.keys.split(","))
    assert [key for key, times in keys.items() if times > 1] == []


def test_every_move_has_a_key() -> None:
    bound = {action.name for action in ACTIONS}
    assert {f"move('{name}')" for name in MOVES} <= bound


@pytest.mark.parametrize("page", PAGES)
def test_the_footer_names_the_page_s_keys_and_always_help_and_quit(page: str) -> None:
    labels = [hint.label for hint in hints(page)]
    assert {"help", "quit"} <= set(labels)
    assert len(labels) == len(set(labels))


def test_the_help_tells_every_action_and_begins_with_the_open_page() -> None:
    lines = lay_out(list(help_blocks("timeline")), 200)
    text = "\n".join("".join(piece.text for piece in line) for line in lines)
    assert all(action.help in text for action in ACTIONS)
    assert text.index("ON THE TIMELINE PAGE") < text.index("EVERYWHERE") < text.index("MOUSE")
