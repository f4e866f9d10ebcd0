"""The charts of the page, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.app.web.in_browser.hands import SMALL, Open

pytestmark = pytest.mark.web

TWO_FRAMES = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


def test_the_page_is_busy_until_its_charts_are_drawn(visit: Open, chromium: Browser) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page = chromium.new_page()
    page.route("**/*plotly*", hold)

    page.goto(visit(SMALL).url + "?tab=overview")
    expect(page.locator("#about h2")).to_be_visible()
    page.evaluate(TWO_FRAMES)
    assert page.locator("#page").get_attribute("aria-busy") == "true"
    for route in held:
        route.continue_()
    expect(page.locator("#page")).to_have_attribute("aria-busy", "false")
    assert page.locator("#pane .dash-graph:not(:has(.main-svg))").count() == 0
    page.close()
