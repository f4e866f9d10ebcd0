"""The charts of the page, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.web.in_browser.hands import Open, OpenBoth, sample
from tests.tiers import sampled, slow
from tests.traces import trace_of

pytestmark = pytest.mark.web


@slow
@pytest.mark.parametrize(
    ("name", "what"),
    [
        pytest.param("mix-admission", "cores busy", marks=slow),
        pytest.param("fcfs-preemption", "tokens"),
    ],
)
def test_the_load_says_what_it_is_of(
    visit: Open, visit_both: OpenBoth, name: str, what: str
) -> None:
    a, b = (sample(f"{name}-{end}.trace") for end in ("before", "after"))

    expect(visit(a).go().locator("#told-load")).to_have_text(what)
    expect(visit_both(a, b).go().locator("#told-load")).to_have_text(f"{what}, A · B")


PAINTED = """() => [...document.querySelectorAll("#waterfall .barlayer .trace")].map((trace) =>
  [...trace.querySelectorAll("path")].map((path) => {
    const box = path.getBBox();
    return [box.x, box.x + box.width];
  }))"""
"""From where to where each bar of each cause reaches, in pixels."""


@pytest.mark.parametrize("width", sampled([700, 1280, 2560], [700]))
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
