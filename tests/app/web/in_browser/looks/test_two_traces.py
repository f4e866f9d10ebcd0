"""The story "compare before and after": two traces under one cursor, and what differs in tables."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from playwright.sync_api import expect

from tests.app.both_fronts import stories
from tests.app.tui.test_odd_traces import hostile_trace
from tests.app.web.in_browser.conftest import Visit
from tests.app.web.in_browser.hands import OpenBoth, address, press, rows, sample, shown_range, view
from tests.tiers import slow

pytestmark = pytest.mark.web


def before_and_after(visit_both: OpenBoth) -> Visit:
    return visit_both(sample(stories.BEFORE), sample(stories.AFTER))


def told(opened: Visit) -> str:
    return " ".join(opened.page.locator("#pane").inner_text().split())


def test_compare_before_and_after(visit_both: OpenBoth) -> None:
    opened = before_and_after(visit_both)
    page = opened.go("?tab=overview")
    relation = page.locator("#relation")
    for each in (
        stories.COMPARED_AT,
        *stories.COMPARED_TOTALS,
        *stories.COMPARED_RULES,
        *stories.COMPARED_SUMMED,
    ):
        assert each in told(opened)

    press(opened, "D")
    expect(relation).to_contain_text(stories.COMPARED_AS)
    expect(page.locator("#diverged")).to_contain_text(stories.COMPARED_AT)
    assert address(page)["step"] == "3"
    state = view(page)
    assert state["diverged"] == [state["at"], state["at"]]
    assert state["t0"] < state["at"] < state["t1"]
    expect(page.locator("#stops a")).to_have_text("≠")
    names = page.locator("#names")
    for each in ("A req-00", "B req-00"):
        expect(names).to_contain_text(each)

    page.locator("#find").fill(stories.LANE_OF_BOTH)
    expect(page.locator("#hits a").first).to_contain_text(f"A request {stories.LANE_OF_BOTH}")
    page.locator("#find").press("Enter")
    opened.settle()
    press(opened, "t")
    expect(relation).to_contain_text(stories.BY_REQUEST)
    assert address(page)["align"] == "request:0:req-29"

    page.locator("#tab-findings").click()
    opened.settle()
    assert stories.ONLY_BEFORE in told(opened)
    page.locator("#tab-blame").click()
    opened.settle()
    assert stories.COMPARED_REQUEST in told(opened)
    page.locator("#tab-step").click()
    opened.settle()
    assert "B − A" in told(opened)


@slow
def test_times_of_a_stand_above_those_of_b(revisit_both: OpenBoth) -> None:
    opened = before_and_after(revisit_both)
    page = opened.go()
    expect(page.locator("#corner")).to_have_text("time A\ntime B")
    with page.expect_download() as download:
        page.locator("#save-svg").click()

    root = fromstring(Path(download.value.path()).read_text("utf-8"))  # noqa: S314 - as drawn
    times = [
        (float(each.get("y", 0)), "".join(each.itertext()))
        for each in root.iter("{http://www.w3.org/2000/svg}text")
        if re.fullmatch(r"[\d,.]+ (s|ms|µs|ns)", "".join(each.itertext()))
    ]
    heights = sorted({y for y, _ in times})
    assert len(heights) == 2
    for y in heights:
        assert sum(each == y for each, _ in times) >= 3


@slow
def test_the_other_of_a_lane_is_told_beside_what_is_selected(revisit_both: OpenBoth) -> None:
    opened = before_and_after(revisit_both)
    page = opened.go()
    lane = next(lanes[0] for kind, _, lanes in rows(page) if kind == "lane")
    opened.go(f"?sel={lane}@2000000")

    expect(page.locator("#about")).to_contain_text("in B, at the same place")


@slow
def test_both_move_and_are_exchanged_as_one(visit_both: OpenBoth) -> None:
    opened = before_and_after(visit_both)
    page = opened.go("?align=time")
    expect(page.locator("#aligned")).to_contain_text(stories.BY_TIME)
    whole = shown_range(page)
    press(opened, "w w d ]")
    assert shown_range(page) != whole

    press(opened, "n")
    assert address(page)["finding"] == "STV001.1"

    page.locator("#exchange").click()
    opened.settle()
    expect(page.locator("#relation b").first).to_have_text("A")
    expect(page.locator("#relation")).to_contain_text("A fcfs-preem…n-after.trace")
    assert address(page)["align"] == "exchanged,time"
    assert "only B: " in told(opened)
    page.reload()
    opened.settle()
    expect(page.locator("#relation")).to_contain_text("A fcfs-preem…n-after.trace")


def test_an_address_that_means_no_alignment_is_as_at_first(visit_both: OpenBoth) -> None:
    opened = before_and_after(visit_both)
    page = opened.go("?align=request:0:nobody")

    expect(page.locator("#aligned")).to_contain_text(stories.COMPARED_AS)


def test_hostile_names_are_harmless_on_the_page_of_both(revisit_both: OpenBoth) -> None:
    opened = revisit_both(hostile_trace(), hostile_trace())
    for tab in ("findings", "overview", "blame", "step"):
        opened.go(f"?tab={tab}")
    press(opened, "D n l t X")
