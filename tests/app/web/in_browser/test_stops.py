"""Where to stop, typed on the page: keys and buttons go from hit to hit, and links can be sent."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from stepscope.app.palette import HIT, HIT_GLYPH
from tests.app.debug.small_traces import hits_on_two_ranks
from tests.app.web.in_browser.conftest import Visit
from tests.app.web.in_browser.hands import SMALL, Open, address, press, view
from tests.app.web.small_traces import HOSTILE
from tests.tiers import slow

pytestmark = pytest.mark.web
RANKS = hits_on_two_ranks()


def look_for(opened: Visit, words: str, key: str = "B", name: str = "break") -> Page:
    """Press the key that asks, and type where to stop."""
    press(opened, key)
    expect(opened.page.locator(f"#{name}")).to_be_focused()
    opened.page.keyboard.type(words)
    opened.page.keyboard.press("Enter")
    opened.settle()
    return opened.page


@slow
def test_a_condition_is_typed_and_the_keys_go_to_its_hits(revisit: Open) -> None:
    opened = revisit(SMALL)
    opened.go()

    page = look_for(opened, "steps: step > 2")
    expect(page.locator("#told")).to_have_text(f"{HIT_GLYPH} 3 hits")
    press(opened, "c")
    expect(page.locator("#told")).to_have_text(f"{HIT_GLYPH} hit 1 of 3")
    assert (address(page)["break"], address(page)["step"]) == ("steps: step > 2", "3")
    press(opened, "c c c")
    expect(page.locator("#told")).to_have_text(f"{HIT_GLYPH} hit 3 of 3")
    press(opened, "C")
    assert address(page)["step"] == "4"

    look_for(opened, "break admitted 2")
    expect(page.locator("#told")).to_have_text(f"{HIT_GLYPH} 1 hit")


def test_without_a_condition_the_key_for_the_next_hit_asks_for_one(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()

    press(opened, "c")

    expect(page.locator("#break")).to_be_focused()


@slow
def test_buttons_lead_from_hit_to_hit_and_the_way_back_is_in_the_history(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?tab=step&break=steps:step>2")

    for _ in range(2):
        page.get_by_title("the next hit").click()
        opened.settle()
    assert address(page)["step"] == "4"
    page.get_by_title("the hit before").click()
    opened.settle()
    assert address(page)["step"] == "3"

    page.go_back()
    opened.settle()
    assert address(page)["step"] == "4"
    expect(page.locator("#told")).to_have_text(f"{HIT_GLYPH} hit 2 of 3")


@slow
def test_a_link_to_a_hit_between_steps_shows_the_same_to_whoever_opens_it(revisit: Open) -> None:
    opened = revisit(SMALL)
    opened.go()
    page = look_for(opened, "admitted 2")
    press(opened, "c")
    sent, shown = page.url, page.locator("#pane").inner_text()
    assert "behind change #" in shown

    opened.go()
    page.goto(sent)
    opened.settle()

    assert page.locator("#pane").inner_text() == shown
    expect(page.locator("#break")).to_have_value("admitted 2")


@slow
def test_every_hit_is_marked_over_the_load_until_nothing_is_looked_for(revisit: Open) -> None:
    opened = revisit(SMALL)
    opened.go()
    page = look_for(opened, "steps: step > 2")
    marks = page.locator("#stops a")

    assert marks.all_inner_texts() == [HIT_GLYPH] * 3
    red, green, blue = (int(HIT[at : at + 2], 16) for at in (1, 3, 5))
    expect(marks.first).to_have_css("color", f"rgb({red}, {green}, {blue})")
    expect(page.locator("#told-hits")).to_have_text(f"{HIT_GLYPH} 3 hits")

    press(opened, "B")
    page.keyboard.press("Delete")
    page.keyboard.press("Enter")
    opened.settle()
    expect(marks).to_have_count(0)
    expect(page.locator("#told-hits")).to_have_text("")
    assert "break" not in address(page)


def test_what_is_wrong_is_said_in_a_line_as_text_and_can_be_mended(revisit: Open) -> None:
    opened = revisit(SMALL)
    opened.go()

    page = look_for(opened, "steps: num_wating > 1")
    expect(page.locator("#pane .failure")).to_contain_text("did you mean num_waiting")
    press(opened, "c")
    look_for(opened, f"{HOSTILE}: x")
    expect(page.locator("#pane .failure")).to_contain_text("no such stop")
    assert page.evaluate("window.hacked") is None
    look_for(opened, "admitted")
    expect(page.locator("#pane .failure")).to_have_count(0)
    expect(page.locator("#told")).to_contain_text("1 hit")


@slow
def test_a_value_is_drawn_over_the_run_and_a_click_on_it_leads_there(revisit: Open) -> None:
    opened = revisit(SMALL)
    opened.go("?step=1")

    page = look_for(opened, "kv_blocks_free", "V", "value")
    expect(page.locator("#told-value")).to_have_text("min 15 max 20 here 19")
    assert address(page)["value"] == "kv_blocks_free"
    plot = page.locator("#value-line .nsewdrag").bounding_box()
    assert plot
    page.mouse.click(plot["x"] + plot["width"] * 0.67, plot["y"] + plot["height"] / 2)
    expect(page.locator("#told-value")).to_have_text("min 15 max 20 here 16")
    opened.settle()
    assert address(page)["step"] == "4"


@slow
def test_a_click_on_a_mark_goes_to_the_hit_on_whatever_rank(revisit: Open) -> None:
    opened = revisit(RANKS)
    page = opened.go("?tab=step&break=steps: rank = 1")
    before = view(page)["t0"]

    page.locator("#stops a").first.click()
    opened.settle()

    expect(page.locator("#pane")).to_contain_text("step 1 of 2 of rank 1")
    expect(page.locator("#told")).to_have_text(f"{HIT_GLYPH} hit 1 of 2")
    assert address(page)["rank"] == "1"
    assert view(page)["t0"] == before, "a mark is no handle to slide the window with"
    page.go_back()
    opened.settle()
    expect(page.locator("#pane")).to_contain_text("of rank 0")
