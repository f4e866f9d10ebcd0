"""The page in light and in dark: the system says which, until the switch does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from stepscope.app import light
from stepscope.app.palette import DECODE, MIX, STATES
from stepscope.app.web.report.document import document
from tests.app.web.in_browser.conftest import PATIENCE_MS, Visit
from tests.app.web.in_browser.hands import SMALL, Open, colours_in, view
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.conftest import ROOT
from tests.tiers import slow

pytestmark = pytest.mark.web

WHITE, BLACK = "rgb(255, 255, 255)", "rgb(14, 17, 22)"
GROUND = "() => getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def bright(chromium: Browser) -> Iterator[Page]:
    """A page of a browser whose system is set to light; its scripts are fetched once."""
    context = chromium.new_context(color_scheme="light", viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def opened(visit: Open, bright: Page) -> Iterator[Visit]:
    """The page where the system is set to light and the browser remembers nothing yet."""
    yield Visit(bright, visit(SMALL).url)
    forget(bright)


def forget(page: Page) -> None:
    """Let the browser be as it was at first: it remembers nothing, and its system is light."""
    page.evaluate("localStorage.clear()")
    page.emulate_media(color_scheme="light")


def mix_in_lane(page: Page) -> bool:
    painted = colours_in(page, view(page)["lane"])
    return light.colour(STATES[MIX].colour, is_light=True) in painted


def chart_colours(page: Page) -> set[str]:
    """What the bars of the chart of tokens are filled with."""
    fills = page.locator("#tokens .bars path").evaluate_all(
        "bars => bars.map((bar) => getComputedStyle(bar).fill)"
    )
    return {
        "#" + "".join(f"{int(part):02X}" for part in re.findall(r"\d+", each)) for each in fills
    }


@slow
def test_page_canvas_and_charts_are_light_where_the_system_is(opened: Visit) -> None:
    page = opened.go("?finding=COR001.1")

    assert page.evaluate(GROUND) == WHITE
    assert mix_in_lane(page)
    assert light.colour(STATES[DECODE].colour, is_light=True) in chart_colours(page)


@slow
def test_the_switch_goes_over_to_the_other_and_is_remembered(opened: Visit) -> None:
    page = opened.go("?finding=COR001.1")

    page.locator("#theme").click()
    opened.settle()
    assert page.evaluate(GROUND) == BLACK
    assert STATES[DECODE].colour in chart_colours(page)
    assert not mix_in_lane(page)
    opened.go()
    assert page.evaluate(GROUND) == BLACK


@slow
def test_only_a_pane_with_charts_is_made_anew_for_the_other_ground(opened: Visit) -> None:
    for tab, is_same in (("table", True), ("overview", False)):
        page = opened.go(f"?tab={tab}")
        page.locator("#pane > *").first.evaluate("shown => { shown.dataset.seen = 1 }")

        page.locator("#theme").click()
        opened.settle()
        assert page.evaluate(GROUND) == BLACK
        assert page.locator("#pane > [data-seen]").count() == is_same, tab
        forget(page)


@slow
def test_the_page_follows_the_system_again_once_both_are_the_same(opened: Visit) -> None:
    page = opened.go()

    page.locator("#theme").click()
    page.keyboard.press("T")
    opened.settle()
    assert page.evaluate(GROUND) == WHITE
    page.emulate_media(color_scheme="dark")
    opened.settle()
    assert page.evaluate(GROUND) == BLACK


@slow
def test_a_report_is_printed_in_light(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(document([loaded_of(conflict_trace())], lambda *_: None), encoding="utf-8")
    page = chromium.new_page(color_scheme="dark")
    page.set_default_timeout(PATIENCE_MS)
    page.goto(file.as_uri())
    expect(page.locator("#page")).to_have_attribute("aria-busy", "false")

    assert page.evaluate(GROUND) == BLACK
    page.emulate_media(media="print")
    assert page.evaluate(GROUND) == WHITE
    page.emulate_media(media="screen")
    page.locator("#theme").click()
    assert page.evaluate(GROUND) == WHITE
    page.close()


def test_no_style_and_no_script_has_a_colour_of_its_own() -> None:
    own = {
        str(file.relative_to(ROOT)): found
        for folder in ("app/web/assets", "app/web/report/assets")
        for file in sorted((ROOT / folder).iterdir())
        if (found := re.findall(r"#[0-9A-Fa-f]{6}\b|rgb\((?!0 0 0 /)[^)]*\)", file.read_text()))
    }

    assert own == {}
