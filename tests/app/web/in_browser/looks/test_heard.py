"""What a screen reader is told of the page, and what keys alone reach."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from stepscope.app.web import panes
from tests.app.web.in_browser.hands import SMALL, Open, press, sample
from tests.app.web.in_browser.looks.geometry import AXE, NO_AXE, faults, grounds_at
from tests.tiers import slow

pytestmark = pytest.mark.web


@pytest.fixture
def themed(window: Page) -> Iterator[Page]:
    yield window
    window.emulate_media(color_scheme="dark")


@slow
@pytest.mark.skipif(not AXE.exists(), reason=NO_AXE)
@pytest.mark.parametrize("name", ["fcfs-preemption-before", "mix-admission-before"])
def test_axe_finds_nothing_on_any_tab(name: str, visit: Open, themed: Page) -> None:
    opened = visit(sample(f"{name}.trace"))
    page = opened.go("?step=2")
    page.evaluate(AXE.read_text("utf-8"))

    wrong = {}
    for number, tab in enumerate(panes.PANES):
        page.locator(f"#tab-{tab.name}").click()
        for theme in grounds_at(number, 2):
            themed.emulate_media(color_scheme=theme)
            opened.settle()
            page.mouse.move(0, 0)
            wrong[tab.name, theme] = faults(page)
    assert len(wrong) == 2 * len(panes.PANES)
    assert {place: found for place, found in wrong.items() if found} == {}


def test_what_is_selected_is_said(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    told = page.get_by_role("status")

    press(opened, "n")
    expect(told).to_contain_text("COR001 mix-on-occupied-group: qk_pv 7/8 took")
    opened.go("?sel=0@50000")
    expect(told).to_have_text("lane engine: P 3, prefill, for 100 µs from 0.000 ms")
    press(opened, "Escape j")
    expect(told).to_contain_text("lane ")


def test_lanes_are_an_outline_that_says_what_is_open_and_where_one_is(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?sel=0@50000")

    lanes = page.get_by_role("tree", name="lanes")
    expect(lanes.get_by_role("treeitem", name="engine", selected=True)).to_have_count(1)
    section = lanes.get_by_role("treeitem", name="steps", level=1)
    expect(section).to_have_attribute("aria-expanded", "true")
    press(opened, "z")
    expect(section).to_have_attribute("aria-expanded", "false")


@slow
def test_tab_leads_through_the_page_and_out_of_it(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go()
    been: list[str] = []
    for _ in range(80):
        page.keyboard.press("Tab")
        been.append(
            page.evaluate("() => document.activeElement.id || document.activeElement.tagName")
        )
        if been[-1] == "BODY" or been.count(been[0]) > 1:
            break

    assert {"brand", "find", "save", "theme", "stage", "tab-findings", "tab-sql", "pane", "about",
            "edge-drawer"} <= set(been)  # fmt: skip
    assert len(been) < 80


@slow
def test_help_takes_the_focus_and_gives_it_back(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    page.locator("#save").focus()

    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="keys")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#save")).to_be_focused()
