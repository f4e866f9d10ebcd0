"""Find, jump, read: from a finding to the place and the reason, by click, address or search."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from stepscope.app.palette import SEVERITY_MARKS
from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace
from tests.app.web.in_browser.conftest import begin
from tests.app.web.in_browser.hands import (
    SMALL,
    Open,
    address,
    colours_beside,
    colours_in,
    press,
    shown_range,
    view,
)
from tests.app.web.small_traces import NUM_STEPS, STEP_NS, US
from tests.tiers import slow

pytestmark = pytest.mark.web


def test_the_header_of_a_collapsed_section_has_the_signs_of_its_findings(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    header = page.locator("#names .row", has_text="core groups").first
    error = SEVERITY_MARKS["error"].colour
    assert error not in colours_beside(page, header)

    header.click()
    opened.settle()

    header = page.locator("#names .row", has_text="core groups").first
    assert error in colours_beside(page, header)


def test_a_finding_is_clicked_and_the_timeline_goes_there_and_the_details_say_why(
    revisit: Open,
) -> None:
    opened = revisit(SMALL)
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
    assert "#F2E962" in colours_in(page, view(page)["lane"])


@slow
def test_an_address_shows_the_same_view_again(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?finding=COR001.1&tab=step")
    page.locator("#names .row", has_text="engine").hover()
    page.locator("#names .row", has_text="engine").locator(".pin").click()
    page.locator("#chip-decode").click()
    press(opened, "w w d m")
    before, spelled = view(page), page.url

    begin(page)
    page = opened.go("?" + urlsplit(spelled).query)

    after = view(page)
    for name in ("pin", "hide", "mark", "finding", "selection", "tab"):
        assert after[name] == before[name]
    assert shown_range(page) == pytest.approx((before["t0"], before["t1"]), abs=1)
    assert before["pin"] == [0]
    assert before["hide"] == ["decode"]


@slow
def test_back_and_forward_go_through_what_was_looked_at(revisit: Open) -> None:
    opened = revisit(SMALL)
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


@slow
def test_search_finds_and_jumps(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()

    page.keyboard.press("/")
    page.keyboard.type("push")
    expect(page.locator("#hits a").first).to_contain_text("push")
    page.keyboard.press("Enter")
    opened.settle()

    expect(page.locator("#about h2")).to_have_text("push 31/32")
    expect(page.locator("#hits a")).to_have_count(0)


def test_a_recorded_scenario_is_found_jumped_to_and_read(visit: Open, tmp_path: Path) -> None:
    path = tmp_path / "before.trace"
    scenario("mix-admission").record("before", path)
    opened = visit(Trace.open(path))

    page = opened.go()
    press(opened, "n")

    expect(page.locator("#about h2")).to_contain_text("COR001")
    expect(page.locator("#about")).to_contain_text("AIVs not consulted")
    expect(page.locator(".row.current")).to_be_in_viewport()
    assert "#F2E962" in colours_in(page, view(page)["lane"])


@slow
def test_bad_values_in_the_address_are_ignored(visit: Open) -> None:
    opened = visit(SMALL)

    page = opened.go("?t=9..1&sel=77@x&finding=NO.1&pin=a,99&hide=<b>&tab=zzz&step=-4&go=away")

    assert shown_range(page) == (0, NUM_STEPS * STEP_NS)
    assert set(address(page)) <= {"t"}
