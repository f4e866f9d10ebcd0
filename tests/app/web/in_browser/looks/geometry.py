"""Every tab at every size: text that lies over other text or is cut, and what axe-core finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page

from stepscope.app.web import panes
from tests.app.web.in_browser.hands import Open, sample
from tests.conftest import ROOT

MUDDLED = Path(__file__).with_name("muddled.js").read_text("utf-8")
AXE = ROOT / "tests/app/web/scripts/node_modules/axe-core/axe.min.js"
NO_AXE = "axe-core is not installed; see CONTRIBUTING.md"
FAULTS = """async (part) => {
  const { violations } = await axe.run(part, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
  });
  return violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ html, failureSummary }) =>
    `${id}: ${html.slice(0, 160)} (${failureSummary.slice(0, 300)})`));
}"""

Size = tuple[int, int]
Ground = Literal["dark", "light"]
GROUNDS: tuple[Ground, Ground] = ("dark", "light")


def grounds_at(number: int, num_grounds: int) -> tuple[Ground, ...]:
    """The grounds on which a tab is looked at, in an order in which few have to be changed."""
    return GROUNDS[:: -1 if number % 2 else 1][:num_grounds]


def muddled(page: Page) -> list[str]:
    """What cannot be read: texts that overlap, and texts that are cut without an ellipsis."""
    found: list[str] = page.evaluate(MUDDLED)
    return found


def faults(page: Page, part: str = "html") -> list[str]:
    """What axe-core, of which the script runs on the page, finds in a part of it."""
    found: list[str] = page.evaluate(FAULTS, part)
    return found


HAS_RESIZED = """() => [...document.querySelectorAll(".js-plotly-plot")].every((chart) =>
  Math.abs(chart.querySelector(".main-svg").clientWidth - chart.clientWidth) < 2)"""


def each_tab(
    visit: Open, page: Page, name: str, sizes: tuple[Size, ...], num_grounds: int
) -> Iterator[str]:
    """Each tab in turn at each size, on a dark ground, on a light one or on both."""
    page.set_viewport_size({"width": sizes[0][0], "height": sizes[0][1]})
    opened = visit(sample(name))
    opened.go("?step=3")
    for number, tab in enumerate(panes.PANES):
        page.locator(f"#tab-{tab.name}").click()
        for theme in grounds_at(number, num_grounds):
            page.emulate_media(color_scheme=theme)
            for width, height in sizes[:: -1 if number % 2 else 1]:
                page.set_viewport_size({"width": width, "height": height})
                opened.settle()
                page.wait_for_function(HAS_RESIZED)
                page.mouse.move(0, 0)
                yield f"{tab.name}, {theme}, {width} wide"
