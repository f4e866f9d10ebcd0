"""The page as a person uses it, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace
from tests.app.web.conftest import Visit
from tests.app.web.scenes import HOSTILE, LINK, NUM_STEPS, SCRIPT, STEP_NS, US, conflict_trace
from tests.traces import trace_of

pytestmark = pytest.mark.web
Open = Callable[[Trace], Visit]
SMALL = conflict_trace()


def address(page: Page) -> dict[str, str]:
    return {name: texts[-1] for name, texts in parse_qs(urlsplit(page.url).query).items()}


def view(page: Page) -> dict[str, Any]:
    shown: dict[str, Any] = page.evaluate("() => ({...stepscope.stage.state()})")
    return shown


def shown_range(page: Page) -> tuple[float, float]:
    state = view(page)
    return state["t0"], state["t1"]


def press(visit: Visit, keys: str) -> None:
    for key in keys.split():
        visit.page.keyboard.press(key)
        visit.settle()


def colours_in(page: Page, lane: int) -> list[str]:
    """Colours that are painted in a lane's row, the most frequent first."""
    found: list[str] = page.evaluate(COLOURS, lane)
    return found


COLOURS = """(lane) => {
  const row = document.querySelector(`#names [data-lane="${lane}"]`).getBoundingClientRect();
  const canvas = document.getElementById("canvas");
  const top = row.top - canvas.getBoundingClientRect().top;
  const copy = new OffscreenCanvas(canvas.width, row.height - 8);
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, -top - 4);
  const pixels = pen.getImageData(0, 0, copy.width, copy.height).data;
  const seen = new Map();
  for (let i = 0; i < pixels.length; i += 4) {
    const hex = "#" + [0, 1, 2].map((k) => pixels[i + k].toString(16).padStart(2, "0")).join("");
    seen.set(hex.toUpperCase(), (seen.get(hex.toUpperCase()) || 0) + 1);
  }
  return [...seen].sort((a, b) => b[1] - a[1]).map(([hex]) => hex);
}"""


def test_a_finding_is_clicked_and_the_timeline_goes_there_and_the_details_say_why(
    visit: Open,
) -> None:
    opened = visit(SMALL)
    page = opened.go()
    assert shown_range(page) == (0, NUM_STEPS * STEP_NS)

    page.locator(".finding", has_text="COR001").first.click()
    opened.settle()

    t0, t1 = shown_range(page)
    assert t0 < 210 * US < 220 * US < t1 < 300 * US
    lane = page.locator(".row.current")
    expect(lane).to_be_in_viewport()
    expect(lane).to_contain_text("AIV1")
    details = page.locator("#about")
    expect(details).to_contain_text("COR001 mix-on-occupied-group")
    expect(details).to_contain_text("qk_pv 7/8 took AIC AIV0 of group 0 while push 31/32 held AIV1")
    expect(details).to_contain_text("admitted: the group's AIC is free, core-group needs 3")
    expect(details).to_contain_text("how to fix")
    assert "#F2E962" in colours_in(page, view(page)["selection"]["lane"])


def test_an_address_shows_the_same_view_again(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go("?finding=COR001.1&tab=step")
    page.locator("#names .row", has_text="engine").hover()
    page.locator("#names .row", has_text="engine").locator(".pin").click()
    page.locator("#chip-decode").click()
    press(opened, "w w d m")
    before, spelled = view(page), page.url

    page.goto("about:blank")
    page = opened.go("?" + urlsplit(spelled).query)

    after = view(page)
    for name in ("pin", "hide", "mark", "finding", "selection", "tab"):
        assert after[name] == before[name]
    assert shown_range(page) == pytest.approx((before["t0"], before["t1"]), abs=1)
    assert before["pin"] == [0]
    assert before["hide"] == ["decode"]


def test_back_and_forward_go_through_what_was_looked_at(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go()
    page.locator(".finding").first.click()
    opened.settle()
    page.locator("#tab-step").click()
    opened.settle()

    page.go_back()
    opened.settle()
    assert (address(page).get("tab"), address(page)["finding"]) == (None, "COR001.1")
    page.go_back()
    opened.settle()
    assert "finding" not in address(page)
    expect(page.locator("#about")).to_contain_text("small.trace")
    page.go_forward()
    opened.settle()
    expect(page.locator("#about")).to_contain_text("COR001")


def test_bad_values_in_the_address_are_ignored(visit: Open) -> None:
    opened = visit(SMALL)

    page = opened.go("?t=9..1&sel=77@x&finding=NO.1&pin=a,99&hide=<b>&tab=zzz&step=-4&go=away")

    assert shown_range(page) == (0, NUM_STEPS * STEP_NS)
    assert set(address(page)) <= {"t"}


def test_names_from_a_trace_are_shown_as_text(visit: Open) -> None:
    opened = visit(
        conflict_trace(
            request=HOSTILE, push=SCRIPT, mix=LINK, counter=HOSTILE, reason=SCRIPT, trace=LINK,
            scenario=HOSTILE,
        )
    )  # fmt: skip

    page = opened.go("?finding=COR001.1")
    expect(page.locator("#about")).to_contain_text(f"{LINK} 7/8 took")
    expect(page.locator("#about")).to_contain_text(f"{SCRIPT} 31/32 held")
    expect(page.locator("#names")).to_contain_text(HOSTILE)
    expect(page.locator("#trace")).to_contain_text(HOSTILE)
    for tab in ("overview", "step", "table", "sql"):
        page.locator(f"#tab-{tab}").click()
        opened.settle()
    page.locator("#find").fill(HOSTILE[:8])
    expect(page.locator("#hits")).to_contain_text(HOSTILE)
    page.keyboard.press("Enter")
    opened.settle()
    page.mouse.move(700, 300)

    assert page.evaluate("() => window.hacked") is None
    assert page.locator("#page img, #page script, #page svg[onload]").count() == 0


def test_keys_move_zoom_and_walk(visit: Open) -> None:
    opened = visit(SMALL)
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
    assert address(page)["step"] == "3"
    press(opened, "[")
    assert address(page)["step"] == "2"


def test_keys_walk_along_a_lane_and_between_lanes(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go("?sel=0@50000")
    assert view(page)["selection"]["start"] == 0

    press(opened, "l l h")
    assert view(page)["selection"]["start"] == STEP_NS
    press(opened, "j")
    assert view(page)["selection"]["lane"] == 1
    press(opened, "k")
    assert view(page)["selection"]["lane"] == 0
    press(opened, "p")
    assert page.locator("#pinned .row").count() == 1
    press(opened, "f f")
    t0, t1 = shown_range(page)
    assert t1 - t0 == pytest.approx(1.5 * STEP_NS)


def test_many_quick_presses_are_all_counted(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go("?step=0")

    for _ in range(4):
        page.keyboard.press("]")
    opened.settle()

    assert address(page)["step"] == "4"


def test_the_mouse_selects_drags_and_zooms(visit: Open) -> None:
    opened = visit(SMALL)
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
    expect(page.locator("#about")).to_contain_text("steps, row 2")

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


def test_a_drag_with_shift_marks_a_range_and_escape_clears_it(visit: Open) -> None:
    opened = visit(SMALL)
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
    press(opened, "Escape")
    assert "mark" not in address(page)


@pytest.mark.parametrize("chart", ["#tokens", "#composition"])
def test_a_click_on_a_chart_leads_to_its_step(visit: Open, chart: str) -> None:
    opened = visit(SMALL)
    page = opened.go("?tab=overview&step=2")

    plot = page.locator(f"{chart} .nsewdrag").first.bounding_box()
    assert plot
    page.mouse.click(plot["x"] + plot["width"] * 0.78, plot["y"] + plot["height"] - 2)
    expect(page.locator("#pane")).to_contain_text("5 of 6")

    assert address(page)["step"] == "4"


def test_a_time_in_a_table_leads_there_at_the_same_zoom(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go(f"?tab=table&table=steps&t=0..{STEP_NS}")

    page.locator("#pane td a", has_text="300,000").click()
    opened.settle()

    assert shown_range(page) == (2.5 * STEP_NS, 3.5 * STEP_NS)


def test_the_window_on_the_minimap_is_dragged(visit: Open) -> None:
    opened = visit(SMALL)
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


def test_a_mark_on_the_minimap_leads_to_its_finding(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go()

    page.locator("#marks a.error").first.click()
    opened.settle()

    assert view(page)["finding"] == "COR001.1"


def test_sections_and_groups_fold_and_unfold(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go()

    page.locator("#names .row.section", has_text="requests").click()
    expect(page.locator("#names .row", has_text="req-1")).to_have_count(0)
    page.locator("#names .row", has_text="group 0").locator(".twist").click()
    expect(page.locator("#names .row.strip")).to_contain_text("× 3")
    press(opened, "n")
    expect(page.locator(".row.current")).to_contain_text("AIV1")


def test_the_legend_hides_a_state(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go()
    assert "#F5B971" in colours_in(page, 0)[:3]

    page.locator("#chip-decode").click()
    opened.settle()

    assert "#F5B971" not in colours_in(page, 0)
    assert "off" in (page.locator("#chip-decode").get_attribute("class") or "")


def test_search_finds_and_jumps(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go()

    page.keyboard.press("/")
    page.keyboard.type("push")
    expect(page.locator("#hits a").first).to_contain_text("push")
    page.keyboard.press("Enter")
    opened.settle()

    expect(page.locator("#about h2")).to_have_text("push 31/32")
    expect(page.locator("#hits a")).to_have_count(0)


def test_the_drawer_steps_through_the_run(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go("?tab=step&step=2")

    page.get_by_text("next ▶").click()
    opened.settle()
    expect(page.locator("#pane")).to_contain_text("4 of 6")
    page.get_by_text("◀ previous").click()
    opened.settle()
    expect(page.locator("#pane")).to_contain_text("3 of 6")


def test_tables_are_chosen_and_sorted_and_queries_answered(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go("?tab=table")

    page.locator("#pane a", has_text="batch_rows").click()
    opened.settle()
    page.locator("thead a", has_text="num_tokens").click()
    opened.settle()
    assert address(page)["sort"] == "num_tokens"
    expect(page.locator("#pane")).to_contain_text("rows 1 to 18 of 18")

    page.locator("#tab-sql").click()
    opened.settle()
    page.locator("#sql").fill("SELECT sum(num_tokens) AS tokens FROM batch_rows")
    page.keyboard.press("Control+Enter")
    opened.settle()
    expect(page.locator("#pane tbody")).to_contain_text("207")


def test_a_rule_explains_itself_and_escape_closes_it(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go("?finding=COR001.1")

    page.get_by_text("explain COR001").click()
    opened.settle()
    expect(page.locator("#rule")).to_contain_text("Why it hurts")
    press(opened, "Escape")
    expect(page.locator("#explain")).not_to_be_visible()


def test_help_lists_every_key(visit: Open) -> None:
    opened = visit(SMALL)
    page = opened.go()

    page.keyboard.press("?")

    expect(page.locator("#keys")).to_contain_text("next finding")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()


def test_a_recorded_scenario_is_found_jumped_to_and_read(visit: Open, tmp_path: Path) -> None:
    path = tmp_path / "before.trace"
    scenario("mix-admission").record("before", path)
    opened = visit(Trace.open(path))

    page = opened.go()
    press(opened, "n")

    expect(page.locator("#about h2")).to_contain_text("COR001")
    expect(page.locator("#about")).to_contain_text("AIVs not consulted")
    expect(page.locator(".row.current")).to_be_in_viewport()
    assert "#F2E962" in colours_in(page, view(page)["selection"]["lane"])


def test_an_empty_trace_says_so(visit: Open) -> None:
    opened = visit(trace_of(name="empty.trace"))

    page = opened.go()
    for tab in ("overview", "step", "table", "sql", "findings"):
        page.locator(f"#tab-{tab}").click()
        opened.settle()
    press(opened, "w d n ] l j f G m p Escape")

    expect(page.locator("#nothing")).to_be_visible()


def test_bare_spans_of_a_profiler_are_shown(visit: Open, shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "hta_event_sync_trace.json.gz")
    opened = visit(trace)

    page = opened.go()
    expect(page.locator("#names .row.section", has_text="tracks")).to_be_visible()
    lane = page.locator("#names .row.lane").first
    lane.locator(".pin").dispatch_event("click")
    press(opened, "w w d s n")

    assert page.locator("#pinned .row").count() == 1


@pytest.mark.parametrize(
    ("name", "position"),
    [
        ("vllm_cpu_tiny_llama_preemptions", "/ 133 ·"),
        ("sglang_qwen3_8b_prefilldecode", "/ 1 ·"),
        ("vllm_prefilldecode_mi300", "/ 1 ·"),
    ],
)
def test_the_engine_steps_of_a_real_profile_are_shown(
    visit: Open, shared_data: Path, name: str, position: str
) -> None:
    opened = visit(Trace.open(shared_data / "kineto" / f"{name}.json.gz"))

    page = opened.go("?step=1")

    expect(page.locator("#position")).to_contain_text(position)
    expect(page.locator("#names .row.section", has_text="steps")).to_be_visible()
    expect(page.locator("#findings, #drawer")).to_contain_text("TRC003")
