"""Panels are given more room by the mouse and by keys, and the browser remembers it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.app.web.in_browser.conftest import Visit
from tests.app.web.in_browser.hands import SMALL, Open
from tests.tiers import slow

pytestmark = pytest.mark.web

SIZES = {"drawer": "height", "details": "width", "gutter": "width"}
PANELS = {"drawer": "#drawer", "details": "#details", "gutter": "#corner"}
AS_AT_FIRST = {"drawer": 260, "details": 344, "gutter": 168}


@pytest.fixture
def opened(visit: Open, sized: Page) -> Iterator[Visit]:
    """The page in a browser that remembers nothing yet."""
    yield visit(SMALL)
    sized.evaluate("localStorage.clear()")


def sizes(page: Page) -> dict[str, float]:
    return {
        name: page.locator(PANELS[name]).evaluate(f"e => e.getBoundingClientRect().{side}")
        for name, side in SIZES.items()
    }


def drag(page: Page, name: str, x: int, y: int) -> None:
    box = page.locator(f"#edge-{name}").bounding_box()
    assert box is not None
    from_x, from_y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(from_x, from_y)
    page.mouse.down()
    page.mouse.move(from_x + x, from_y + y, steps=4)
    page.mouse.up()


@slow
def test_edges_are_dragged_and_stay_where_they_were_put(opened: Visit) -> None:
    page = opened.go()
    assert sizes(page) == AS_AT_FIRST

    drag(page, "drawer", 0, -90)
    drag(page, "details", 60, 0)
    drag(page, "gutter", 40, 0)
    opened.settle()

    put = {"drawer": 350, "details": 284, "gutter": 208}
    assert sizes(page) == put
    opened.go()
    assert sizes(page) == put


@slow
def test_edges_are_moved_by_keys_that_move_nothing_else(opened: Visit) -> None:
    page = opened.go("?sel=0@50000")
    there = page.url

    for name, key, by in (
        ("drawer", "ArrowUp", 16), ("details", "ArrowRight", -16), ("gutter", "ArrowRight", 16),
    ):  # fmt: skip
        edge, size = page.locator(f"#edge-{name}"), AS_AT_FIRST[name] + by
        edge.focus()
        page.keyboard.press(key)
        assert sizes(page) == AS_AT_FIRST | {name: size}
        assert edge.get_attribute("aria-valuenow") == str(size)
        page.keyboard.press("Enter")
        opened.settle()
        assert sizes(page) == AS_AT_FIRST, name
        assert page.url == there, name


@slow
def test_a_window_that_becomes_small_hides_no_panel_and_gives_back_what_was_wanted(
    opened: Visit,
) -> None:
    page = opened.go()
    for name in SIZES:
        page.locator(f"#edge-{name}").focus()
        page.keyboard.press("End")
    wide = sizes(page)

    page.set_viewport_size({"width": 700, "height": 500})
    opened.settle()
    assert all(size >= 60 for size in sizes(page).values())
    stage = page.locator("#stage").bounding_box()
    assert stage is not None
    assert stage["height"] >= 100
    for name in SIZES:
        edge = page.locator(f"#edge-{name}").bounding_box()
        assert edge is not None
        assert edge["x"] < 700
        assert edge["y"] < 500
    page.set_viewport_size({"width": 1280, "height": 800})
    opened.settle()
    assert sizes(page) == wide


@slow
def test_what_a_browser_remembers_may_be_anything(opened: Visit) -> None:
    page = opened.page
    for said in ("null", "[1", '{"drawer": "x", "details": 1e99}'):
        page.evaluate("said => localStorage.setItem('stepscope.panels', said)", said)
        opened.go()
        assert sizes(page)["drawer"] == AS_AT_FIRST["drawer"]
        assert page.locator("#stage").evaluate("e => e.clientWidth") > 0
