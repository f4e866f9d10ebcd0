"""What is drawn ends where its place ends: times on the ruler, names in bars, load and lanes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.app.web.in_browser.hands import Open, press, sample
from tests.tiers import sampled, slow
from tests.traces import trace_of

pytestmark = pytest.mark.web

WIDTHS = (900, 1280, 1733, 2560)
BEFORE = "fcfs-preemption-before.trace"
WRITTEN = """() => {
  window.written = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    const room = this.canvas.clientWidth || this.canvas.width / devicePixelRatio;
    window.written.push({ text, from: x, to: x + this.measureText(text).width, room });
    return write.call(this, text, x, y, ...more);
  };
}"""
EDGES = """() => ["overview", "canvas"].map((id) => {
  const { left, right } = document.getElementById(id).getBoundingClientRect();
  return [left, right];
})"""


@slow
@pytest.mark.parametrize("width", sampled(WIDTHS, [900, 2560]))
def test_the_load_of_all_time_has_the_edges_of_the_lanes(
    width: int, revisit: Open, sized: Page
) -> None:
    sized.set_viewport_size({"width": width, "height": 800})
    page = revisit(sample(BEFORE)).go()

    load, lanes = page.evaluate(EDGES)

    assert load == pytest.approx(lanes, abs=1)


@slow
@pytest.mark.parametrize("width", sampled(WIDTHS, [1733]))
def test_no_time_on_the_ruler_is_cut_at_its_end(width: int, visit: Open, sized: Page) -> None:
    sized.set_viewport_size({"width": width, "height": 800})
    opened = visit(sample(BEFORE))
    page = opened.go("?t=3333333333..9000000000")
    page.evaluate(WRITTEN)

    press(opened, "w d d s s a")

    written = page.evaluate("written")
    times = [each for each in written if each["text"].endswith((" s", " ms"))]
    assert len(times) > 12
    assert [each for each in times if each["to"] > each["room"] + 0.5] == []


@slow
def test_a_name_that_is_cut_ends_within_its_bar(visit: Open) -> None:
    """Letters are of many widths: by the mean of them a name of wide ones would reach beyond."""
    name = "WWWWWWWWWWMMMMMMMMMMiiiiiiiiiiiiiiiillllllllllllllllllllllllllllllllllllll"
    lasted = [40 + 7 * at for at in range(20)]
    spans = [
        {"track": f"t{at}", "name": name, "ts_ns": 0, "dur_ns": ns, "form": "slice"}
        for at, ns in enumerate([*lasted, 400])
    ]
    opened = visit(trace_of(spans=spans))
    page = opened.go()
    page.evaluate(WRITTEN)

    press(opened, "j")

    scale = page.evaluate("document.getElementById('canvas').clientWidth") / 400
    ends = [scale * ns for ns in lasted]
    written = [each for each in page.evaluate("written") if each["text"].startswith("WWW")]
    cut = [each["to"] for each in written if each["text"].endswith("…")]
    assert len(set(cut)) > 10
    assert all(any(end - 20 < to <= end - 2 for end in ends) for to in cut)
