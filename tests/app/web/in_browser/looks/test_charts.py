"""The charts of the page, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from stepscope.ingest.trace import Trace
from tests.app.web.in_browser.conftest import PATIENCE_MS
from tests.app.web.in_browser.hands import SMALL, Open, OpenBoth
from tests.traces import trace_of

pytestmark = pytest.mark.web

TWO_FRAMES = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


def test_the_page_is_busy_until_its_charts_are_drawn(visit: Open, chromium: Browser) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page = chromium.new_page()
    page.set_default_timeout(PATIENCE_MS)
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


@pytest.mark.parametrize(
    ("name", "what"), [("mix-admission", "cores busy"), ("fcfs-preemption", "tokens")]
)
def test_the_load_says_what_it_is_of(
    visit: Open, visit_both: OpenBoth, sample_traces: Path, name: str, what: str
) -> None:
    a, b = (Trace.open(sample_traces / f"{name}-{end}.trace") for end in ("before", "after"))

    expect(visit(a).go().locator("#told-load")).to_have_text(what)
    expect(visit_both(a, b).go().locator("#told-load")).to_have_text(f"{what}, A · B")


PAINTED = """() => [...document.querySelectorAll("#waterfall .barlayer .trace")].map((trace) =>
  [...trace.querySelectorAll("path")].map((path) => {
    const box = path.getBBox();
    return [box.x, box.x + box.width];
  }))"""
"""From where to where each bar of each cause reaches, in pixels."""


@pytest.mark.parametrize("width", [700, 1280, 2560])
def test_pixels_of_a_bar_are_shared_out_as_its_time_is_however_narrow_it_is(
    visit: Open, sized: Page, width: int
) -> None:
    """Steps of 2 ms and 1 ms of nothing between them are each less than a pixel."""
    steps = [
        {"step": at, "ts_ns": at * 3_000_000, "dur_ns": 2_000_000, "kind": "decode"}
        for at in range(400)
    ]
    opened = visit(trace_of(steps=steps))
    sized.set_viewport_size({"width": width, "height": 800})
    page = opened.go("?tab=blame")

    per_cause: list[list[tuple[float, float]]] = page.evaluate(PAINTED)

    pixels = [
        {pixel for start, end in ends for pixel in range(round(start), round(end))}
        for ends in per_cause
    ]
    taken = sum(map(len, pixels))
    assert len(pixels) == 2
    assert taken == len(set().union(*pixels)), "a pixel is painted twice"
    assert sorted(len(each) / taken for each in pixels) == pytest.approx([1 / 3, 2 / 3], abs=0.04)
