"""Keys and mouse move over the timeline, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.app.web.in_browser.hands import (
    SMALL,
    Open,
    address,
    colours_in,
    press,
    shown_range,
    view,
)
from tests.app.web.small_traces import NUM_STEPS, STEP_NS
from tests.tiers import slow
from tests.traces import trace_of

pytestmark = pytest.mark.web


def test_keys_move_zoom_and_walk(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    whole = shown_range(page)

    press(opened, "w")
    assert shown_range(page)[1] - shown_range(page)[0] == pytest.approx((whole[1]) / 1.5)
    press(opened, "g g")
    assert shown_range(page)[0] == 0
    press(opened, "G")
    assert shown_range(page)[1] == whole[1]
    press(opened, "a")
    assert shown_range(page)[1] < whole[1]
    press(opened, "s s 0")
    assert shown_range(page) == whole

    press(opened, "n")
    assert view(page)["finding"] == "COR001.1"
    press(opened, "Escape")
    assert view(page)["finding"] is None
    press(opened, "] ]")
    assert address(page)["step"] == "4"
    press(opened, "[")
    assert address(page)["step"] == "3"


@slow
def test_keys_walk_along_a_lane_and_between_lanes(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?sel=0@50000")
    assert view(page)["selection"]["start"] == 0

    press(opened, "l l h")
    assert view(page)["selection"]["start"] == STEP_NS
    press(opened, "j")
    assert view(page)["lane"] == 1
    press(opened, "k")
    assert view(page)["lane"] == 0
    press(opened, "p")
    assert page.locator("#pinned .row").count() == 1
    press(opened, "f f")
    t0, t1 = shown_range(page)
    assert t1 - t0 == pytest.approx(1.5 * STEP_NS)


@slow
def test_a_lane_that_was_not_told_of_yet_is_not_drawn_as_one_in_which_nothing_ran(
    visit: Open,
) -> None:
    arrivals = [
        {"ts_ns": 1_000 * n, "request": f"r{n:02}", "event": event}
        for n in range(80)
        for event in ("arrive", "admit")
    ]
    page = visit(trace_of(lifecycle=arrivals)).go()
    last = len(arrivals) // 2 - 1

    page.evaluate("() => { globalThis.fetch = () => new Promise(() => {}); }")  # no picture comes
    page.evaluate(
        "() => { const stage = document.getElementById('stage'); stage.scrollTop = 1e6; }"
    )
    page.locator(f'#names [data-lane="{last}"]').wait_for()

    assert len(colours_in(page, last)) > 4  # its ground and lines of the grid, and dots on them


@slow
def test_many_quick_presses_are_all_counted(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?step=0")

    for _ in range(4):
        page.keyboard.press("]")
    opened.settle()

    assert address(page)["step"] == "4"


@slow
def test_the_mouse_selects_drags_and_zooms(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    row = page.locator("#names .row", has_text="engine").bounding_box()
    canvas = page.locator("#canvas").bounding_box()
    assert row
    assert canvas
    y = row["y"] + row["height"] / 2
    middle = canvas["x"] + canvas["width"] / 2

    page.mouse.click(middle - 20, y)
    opened.settle()
    assert view(page)["selection"]["label"] == "D 3"
    expect(page.locator("#about")).to_contain_text("steps row 2", ignore_case=True)

    page.mouse.move(middle, y)
    page.mouse.wheel(0, -400)
    opened.settle()
    t0, t1 = shown_range(page)
    assert t1 - t0 < NUM_STEPS * STEP_NS
    assert (t0 + t1) / 2 == pytest.approx(NUM_STEPS * STEP_NS / 2, rel=0.01)

    page.mouse.down()
    page.mouse.move(middle + 100, y, steps=4)
    page.mouse.up()
    opened.settle()
    assert shown_range(page)[0] < t0


@slow
def test_a_key_zooms_at_the_time_that_is_under_a_resting_mouse_after_the_view_has_moved(
    revisit: Open,
) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    canvas = page.locator("#canvas").bounding_box()
    assert canvas
    page.mouse.move(canvas["x"] + canvas["width"] / 4, canvas["y"] + 80)
    press(opened, "w w w d d")

    t0, t1 = shown_range(page)
    press(opened, "w")
    after = shown_range(page)

    assert after[0] + (after[1] - after[0]) / 4 == pytest.approx(t0 + (t1 - t0) / 4, abs=2)


@slow
def test_a_drag_with_shift_marks_a_range_and_escape_clears_it(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    canvas = page.locator("#canvas").bounding_box()
    assert canvas
    left, y = canvas["x"] + canvas["width"] / 4, canvas["y"] + 80

    page.keyboard.down("Shift")
    page.mouse.move(left, y)
    page.mouse.down()
    page.mouse.move(left + canvas["width"] / 4, y, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    opened.settle()

    first, last = (int(end) for end in address(page)["mark"].split(".."))
    assert last - first == pytest.approx(NUM_STEPS * STEP_NS / 4, rel=0.01)
    assert "marked" in page.locator("#about h2").inner_text()
    assert "engine, 2 spans" in page.locator("#about").inner_text()
    press(opened, "Escape")
    assert "mark" not in address(page)


@slow
def test_a_click_on_a_chart_leads_to_the_step_below_the_mouse(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?tab=overview&step=2")

    for chart, share in (("#tokens", 0.78), ("#composition", 0.69), ("#composition", 0.81)):
        plot = page.locator(f"{chart} .nsewdrag").first.bounding_box()
        assert plot
        page.mouse.click(plot["x"] + plot["width"] * share, plot["y"] + plot["height"] - 2)
        expect(page.locator("#pane")).to_contain_text("5 of 6")
        opened.settle()

        assert address(page)["step"] == "4", (chart, share)
        page.go_back()
        opened.settle()
        assert address(page)["step"] == "2"


def test_a_time_in_a_table_leads_there_at_the_same_zoom(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go(f"?tab=table&table=steps&t=0..{STEP_NS}")

    page.locator("#pane td a", has_text="300,000").click()
    opened.settle()

    assert shown_range(page) == (2.5 * STEP_NS, 3.5 * STEP_NS)


def test_the_window_on_the_minimap_is_dragged(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go(f"?t=0..{STEP_NS}")
    overview = page.locator("#overview").bounding_box()
    assert overview
    y = overview["y"] + 20

    page.mouse.move(overview["x"] + 10, y)
    page.mouse.down()
    page.mouse.move(overview["x"] + overview["width"] / 2, y, steps=5)
    page.mouse.up()
    opened.settle()

    t0, t1 = shown_range(page)
    assert t1 - t0 == pytest.approx(STEP_NS)
    assert t0 > STEP_NS


def test_a_mark_on_the_minimap_leads_to_its_finding(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()

    page.locator("#marks a.error").first.click()
    opened.settle()

    assert view(page)["finding"] == "COR001.1"


@slow
def test_sections_and_groups_collapse_and_expand(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()

    page.locator("#names .row.section", has_text="requests").click()
    expect(page.locator("#names .row", has_text="req-1")).to_have_count(0)
    page.locator("#names .row", has_text="group 0").locator(".twist").click()
    expect(page.locator("#names .row.strip")).to_contain_text("× 3")
    press(opened, "n")
    expect(page.locator(".row.current")).to_contain_text("AIV1")


def test_the_legend_hides_a_state(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    assert "#F5B971" in colours_in(page, 0)[:3]

    page.locator("#chip-decode").click()
    opened.settle()

    assert "#F5B971" not in colours_in(page, 0)
    assert "off" in (page.locator("#chip-decode").get_attribute("class") or "")
