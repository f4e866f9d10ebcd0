"""Pages and their actions are data: tabs, keys, footer and help cannot disagree with them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from types import ModuleType

import pytest
from textual.app import ComposeResult
from textual.widgets import Static

from stepscope.app.present.tab import Tab, numbered
from stepscope.app.timeline.keymap import TIMELINE
from stepscope.app.tui import pages
from stepscope.app.tui.actions import Action, everywhere, hints
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.tui.pages.page import Opened, Page, page_of
from stepscope.app.tui.pages.timeline import TimelinePage
from stepscope.app.tui.screens.help import help_blocks
from stepscope.app.tui.widgets.footer import Footer
from stepscope.app.tui.widgets.prose import Prose, lay_out
from stepscope.app.tui.widgets.tabs import Tabs
from tests.app.tui.stage import (
    RESULT,
    WIDE,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    text_of,
)  # fmt: skip
from tests.tiers import slow

PAGES: dict[str, type[Page]] = {tab.name: type(page_of(tab)) for tab in pages.PAGES}
SHARED = everywhere(pages.PAGES)
OWN = [(page, action) for page in PAGES.values() for action in page.ACTIONS]


def does(owner: type, action: Action) -> bool:
    name = action.name.partition("(")[0]
    if name.startswith("app."):
        return hasattr(StepscopeApp, f"action_{name.removeprefix('app.')}")
    return hasattr(owner, f"action_{name}")


def test_every_action_is_something_that_its_page_or_the_application_can_do() -> None:
    actions: list[tuple[type, Action]] = [*OWN, *((StepscopeApp, action) for action in SHARED)]
    missing = [(owner, action.name) for owner, action in actions if not does(owner, action)]
    assert missing == []
    assert [(owner, action.name) for owner, action in OWN if not action.help] == []


def test_every_page_shows_a_trace_in_a_way_of_its_own() -> None:
    assert [name for name, page in PAGES.items() if page.show is Page.show] == []


def test_no_key_means_two_things_on_a_page() -> None:
    twice = []
    for name, page in PAGES.items():
        active = [*page.ACTIONS, *SHARED]
        keys = Counter(key for action in active for key in action.keys.split(","))
        twice += [(name, key) for key, times in keys.items() if times > 1]
    assert twice == []


def test_the_page_of_the_timeline_has_the_moves_of_the_keymap() -> None:
    moves = [each.name for each in TimelinePage.ACTIONS if each.name.startswith("move(")]

    assert moves == [f"move('{key.action}')" for key in TIMELINE]


def test_the_footer_names_each_of_the_page_s_keys_once_and_always_help_and_quit() -> None:
    labels = {
        name: Counter(hint.label for hint in hints(page.ACTIONS, SHARED))
        for name, page in PAGES.items()
    }
    assert [name for name, seen in labels.items() if not {"help", "quit"} <= set(seen)] == []
    assert [name for name, seen in labels.items() if max(seen.values()) > 1] == []


def said(shared: Sequence[Action] = SHARED) -> str:
    own = {name: page.ACTIONS for name, page in PAGES.items()}
    lines = lay_out(list(help_blocks("timeline", own, shared)), 200)
    return "\n".join("".join(piece.text for piece in line) for line in lines)


def test_the_help_tells_every_action_and_begins_with_the_open_page() -> None:
    text = said()
    assert all(action.help in text for action in [*SHARED, *(action for _, action in OWN)])
    assert text.index("ON THE TIMELINE PAGE") < text.index("EVERYWHERE") < text.index("MOUSE")


@slow
async def test_tabs_keys_help_and_the_pages_themselves_are_those_of_the_tuple() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        app = app_of(pilot)
        tabs = text_of(app.query_one(Tabs))
        assert [page.id for page in app.query("Page")] == [tab.name for tab in pages.PAGES]
        assert all(f" {key} {tab.label} " in tabs for key, tab in numbered(pages.PAGES))
        for key, tab in numbered(pages.PAGES):
            await press(pilot, key)
            assert app.page == tab.name
        assert f"1-{len(pages.PAGES)} page" in text_of(app.query_one(Footer))


class NotesPage(Page):
    """A page that only this test has."""

    ACTIONS = (Action("write", "x", "x", "write a note", "note"),)

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)

    def show(self, opened: Opened) -> None:
        self.query_one(Static).update(f"notes on {opened.trace.name}")

    def action_write(self) -> None:
        self.query_one(Static).update("written")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Tab:
    """A module with a page, and a line for it in the tuple."""
    tab = Tab("notes", "what was noted")
    module = ModuleType("notes")
    module.NotesPage = NotesPage  # type: ignore[attr-defined]  # a module that is made here
    monkeypatch.setitem(sys.modules, "stepscope.app.tui.pages.notes", module)
    monkeypatch.setattr(pages, "PAGES", (*pages.PAGES, tab))
    return tab


async def test_a_page_in_the_tuple_has_a_tab_a_key_a_footer_and_a_line_of_help(notes: Tab) -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        key = str(len(pages.PAGES))
        assert f"{key} {notes.label}" in text_of(app_of(pilot).query_one(Tabs))
        await press(pilot, key)
        assert "notes on conflict.trace" in screen_text(pilot)
        assert "x note" in text_of(app_of(pilot).query_one(Footer))
        await press(pilot, "x")
        assert "written" in screen_text(pilot)
        await press(pilot, "?")
        told = app_of(pilot).screen.query_one(Prose).text
        assert "write a note" in told
        assert notes.says in told


@slow
@pytest.mark.usefixtures("notes")
async def test_a_trace_can_be_opened_on_any_page() -> None:
    app = StepscopeApp(conflict_trace(), RESULT, page="notes")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert app.page == "notes"
