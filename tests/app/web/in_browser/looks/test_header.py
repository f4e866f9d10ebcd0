"""In windows of every width the top bar says what is looked at, and what may be typed, uncut."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.app.web.in_browser.hands import Open, sample
from tests.tiers import sampled, slow

pytestmark = pytest.mark.web

WIDTHS = (900, 1280, 1920, 2560)
BEFORE = "fcfs-preemption-before.trace"
HINT = """() => {
  const find = document.getElementById("find");
  const pen = document.createElement("canvas").getContext("2d");
  const { font, paddingLeft, paddingRight } = getComputedStyle(find);
  pen.font = font;
  return find.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)
    - pen.measureText(find.placeholder).width;
}"""


@slow
@pytest.mark.parametrize("width", sampled(WIDTHS, [900, 2560]))
def test_the_top_bar_cuts_neither_the_run_nor_the_hint(
    width: int, revisit: Open, sized: Page
) -> None:
    sized.set_viewport_size({"width": width, "height": 800})
    page = revisit(sample(BEFORE)).go()

    run = page.locator("#trace")
    assert run.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert "fcfs-preemption · before" in run.inner_text()
    assert run.get_attribute("title") == "fcfs-preemption · before: fcfs-preemption-before.trace"
    assert page.evaluate(HINT) >= 0
    help_button = page.locator("#ask-help").bounding_box()
    assert help_button is not None
    assert help_button["x"] + help_button["width"] <= width


@slow
def test_all_charts_of_batches_are_in_sight_and_follow_the_drawer(revisit: Open) -> None:
    opened = revisit(sample(BEFORE))
    page = opened.go("?tab=overview")
    charts, pane = page.locator("#composition"), page.locator("#pane")

    heights = []
    for _ in range(2):
        box, around = charts.bounding_box(), pane.bounding_box()
        assert box is not None
        assert around is not None
        assert box["y"] >= around["y"]
        assert box["y"] + box["height"] <= around["y"] + around["height"]
        heights.append(box["height"])
        page.locator("#edge-drawer").focus()
        page.keyboard.press("ArrowUp")
        opened.settle()
    page.keyboard.press("Enter")

    assert heights[1] == heights[0] + 16
