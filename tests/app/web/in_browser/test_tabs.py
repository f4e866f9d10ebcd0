"""Panes are data: their tabs, keys, help and addresses cannot disagree with the tuple."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from dash import html
from dash.development.base_component import Component
from playwright.sync_api import expect

from stepscope.app.present.tab import Tab, numbered
from stepscope.app.tui import pages
from stepscope.app.web import panes
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.pane import pane_of
from stepscope.app.web.skeleton.layout import layout
from stepscope.app.web.view import View
from tests.app.web.in_browser.hands import SMALL, Open, address, press
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.tiers import slow
from tests.traces import trace_of


def leaves(component: Any) -> Iterator[Component]:
    if isinstance(component, list):
        for each in component:
            yield from leaves(each)
    elif isinstance(component, Component):
        if getattr(component, "className", "") == "leaf":
            yield component
        yield from leaves(getattr(component, "children", None))


def test_there_is_a_tab_for_each_pane_of_the_tuple_with_its_key_and_what_it_is_for() -> None:
    found = [
        [getattr(each, name) for name in ("id", "data-key", "title", "href")]
        for each in leaves(layout(loaded_of(conflict_trace())))
    ]

    assert found == [
        [f"tab-{tab.name}", key, tab.says, View().link(tab=tab.name)]
        for key, tab in numbered(panes.PANES)
    ]


LOW = re.compile(r"\blow\b")


def test_a_digit_opens_the_same_in_the_terminal_and_on_the_page() -> None:
    in_terminal = {tab.name: key for key, tab in numbered(pages.PAGES)}
    on_page = {tab.name: key for key, tab in numbered(panes.PANES)}

    shared = in_terminal.keys() & on_page.keys()
    assert len(shared) == len(in_terminal) - 1
    assert {name: on_page[name] for name in shared} == {name: in_terminal[name] for name in shared}
    assert len(set(on_page.values()) | {in_terminal["timeline"]}) == len(on_page) + 1


def test_every_pane_draws_an_empty_trace_and_is_spelled_by_its_name() -> None:
    empty = loaded_of(trace_of())
    views = {tab.name: View.parse(f"?tab={tab.name}") for tab in panes.PANES}
    drawn = {name: pane_of(name)(empty, view) for name, view in views.items()}

    assert {name: view.tab for name, view in views.items()} == {name: name for name in views}
    assert [name for name, pane in drawn.items() if not isinstance(pane, Component)] == []


def test_a_tab_that_is_none_of_ours_is_left_out() -> None:
    assert View.parse("?tab=pane").tab == panes.OPEN_FIRST


@slow
@pytest.mark.web
def test_every_tab_opens_by_its_key_and_the_help_says_so(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go()

    for key, tab in numbered(panes.PANES):
        press(opened, key)
        expect(page.locator(".leaf.on")).to_have_id(f"tab-{tab.name}")
        assert address(page).get("tab", panes.OPEN_FIRST) == tab.name
    press(opened, "2")
    expect(page.locator("#page")).to_have_class(LOW)
    press(opened, "3")
    expect(page.locator("#page")).not_to_have_class(LOW)
    page.keyboard.press("?")
    for key, tab in numbered(panes.PANES):
        expect(page.locator("#keys")).to_contain_text(f"{key} {tab.says}")


def notes_pane(loaded: LoadedTrace, view: View) -> Component:
    """A pane that only this test has."""
    return html.P(f"notes on {loaded.trace.name}, at {view.tab}")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Tab:
    """A module with a pane, and a line for it in the tuple."""
    tab = Tab("notes", "what was noted")
    module = ModuleType("notes")
    module.notes_pane = notes_pane  # type: ignore[attr-defined]  # a module that is made here
    monkeypatch.setitem(sys.modules, "stepscope.app.web.panes.notes", module)
    monkeypatch.setattr(panes, "PANES", (*panes.PANES, tab))
    return tab


@pytest.mark.web
def test_a_pane_in_the_tuple_has_a_tab_a_key_an_address_and_a_line_of_help(
    notes: Tab, visit: Open
) -> None:
    opened = visit(conflict_trace(trace="notes.trace"))
    page = opened.go()

    key = next(key for key, tab in numbered(panes.PANES) if tab is notes)
    press(opened, key)
    expect(page.locator("#pane")).to_have_text("notes on notes.trace, at notes")
    assert address(page)["tab"] == "notes"
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_contain_text(f"{key} {notes.says}")
    page.keyboard.press("Escape")
    opened.go("?tab=notes")
    expect(page.locator("#tab-notes")).to_have_class("leaf on")
