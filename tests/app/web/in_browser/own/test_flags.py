"""Flags on the page: put by a key or the mouse, shown where they are, changed, taken away."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from stepscope.app.kept.flags import Flag, Flags
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.web.in_browser.conftest import Visit
from tests.app.web.in_browser.hands import Open, address, press, view
from tests.app.web.small_traces import conflict_trace
from tests.tiers import slow
from tests.traces import trace_of

pytestmark = pytest.mark.web


def keep(opened: Visit, text: str) -> None:
    """Type into the form that is open, and press Enter."""
    line = opened.page.locator("#flag-text")
    expect(line).to_be_focused()
    line.fill(text)
    line.press("Enter")
    opened.settle()


def flags_in(page: Page) -> list[list[object]]:
    return [list(each) for each in view(page)["flags"]]


@pytest.fixture
def storm(
    visit: Open, sample_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Visit:
    """The page of a trace on which nobody put a flag, and a folder where they are kept."""
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    return visit(Trace.open(sample_traces / stories.BEFORE))


def test_a_flag_is_put_by_key_at_what_is_selected_and_read_in_both_fronts(
    storm: Visit, sample_traces: Path
) -> None:
    page = storm.go(f"?step={stories.FIRST_STEP}")
    press(storm, "j y")
    expect(page.locator("#flag-place")).to_contain_text("req-00")
    keep(storm, stories.FLAG_LINE)

    (found,) = flags_in(page)
    kept = Flags(sample_traces / stories.BEFORE).get(stories.FLAG)
    assert found[:2] == [stories.FLAG, stories.FLAG_NOTE]
    assert kept.note == stories.FLAG_NOTE
    assert kept.lane == ("requests", "", "req-00")
    expect(page.locator("#about")).to_contain_text(stories.FLAG_NOTE)
    assert page.locator("#about b").count() == 0  # what is noted is never markup
    expect(page.locator("#flag-marks a")).to_have_attribute(
        "title", f"@{stories.FLAG}: {stories.FLAG_NOTE}"
    )


@slow
def test_flags_are_walked_listed_changed_and_taken_away(storm: Visit, sample_traces: Path) -> None:
    flags = Flags(sample_traces / stories.BEFORE)
    first = (
        Trace.open(sample_traces / stories.BEFORE).steps.select("ts_ns").first().collect().item()
    )
    flags.put("early", Flag(first + 1_000_000, "one"))
    flags.put("late", Flag(first + 9_000_000_000, "two", ("requests", "", "req-03")))
    page = storm.go("?tab=flags")

    press(storm, "u u")
    assert address(page)["sel"].startswith(str(view(page)["flags"][1][3]))
    press(storm, "U")
    expect(page.locator("#about")).to_contain_text("@early")

    row = page.locator(".flag-line", has_text="@late")
    row.get_by_role("button", name="change @late").click()
    keep(storm, "@later three")
    expect(page.locator("#flag-list")).to_contain_text("three")
    assert {*flags.all} == {"early", "later"}
    assert flags.get("later").lane == ("requests", "", "req-03")

    page.locator(".flag-line", has_text="@early").get_by_role("button", name="take away").click()
    expect(page.locator(".flag-line")).to_have_count(1)
    assert {*flags.all} == {"later"}
    page.locator("#flag-marks a").click()
    storm.settle()
    expect(page.locator("#about")).to_contain_text("@later")


@slow
def test_a_flag_that_somebody_else_puts_appears_by_itself(
    storm: Visit, sample_traces: Path
) -> None:
    with storm.page.expect_response("**/news*"):  # what was there is known
        page = storm.go()
    expect(page.locator("#flag-marks a")).to_have_count(0)

    first = Trace.open(sample_traces / stories.BEFORE).steps.select("ts_ns").first()
    Flags(sample_traces / stories.BEFORE).put("theirs", Flag(first.collect().item(), "hello"))

    expect(page.locator("#flag-marks a")).to_have_attribute("title", "@theirs: hello")


@slow
def test_a_double_click_on_the_ruler_puts_one_and_a_click_goes_there(visit: Open) -> None:
    spans = [
        {"ts_ns": at * 1_000_000, "dur_ns": 900_000, "name": f"kernel {at}", "track": "stream 7"}
        for at in range(8)
    ]
    opened = visit(trace_of(name="profile.json", spans=spans))
    page = opened.go()
    canvas = page.locator("#canvas").bounding_box()
    assert canvas is not None
    at = canvas["x"] + canvas["width"] / 2, canvas["y"] + 8

    page.mouse.dblclick(*at)
    expect(page.locator("#flag-text")).to_have_value("@flag-1 ")
    page.keyboard.press("Enter")
    opened.settle()
    named = flags_in(page)
    page.mouse.dblclick(at[0] + 40, at[1])
    keep(opened, "the long kernel")

    assert [each[0] for each in named] == ["flag-1"]
    assert [each[:2] for each in flags_in(page)] == [["flag-1", ""], ["flag-2", "the long kernel"]]
    assert flags_in(page)[0][3] is None
    page.mouse.move(at[0] + 42, at[1])
    expect(page.locator("#tip")).to_contain_text("the long kernel")
    page.mouse.click(at[0] + 42, at[1])
    opened.settle()
    expect(page.locator("#about")).to_contain_text("the long kernel")
    press(opened, "y")
    keep(opened, "")
    assert [each[0] for each in flags_in(page)] == ["flag-1"]


@slow
def test_what_is_wrong_with_a_name_is_said_and_escape_leaves_the_form_alone(revisit: Open) -> None:
    opened = revisit(conflict_trace())
    page = opened.go("?sel=1@0")
    press(opened, "y")
    line = page.locator("#flag-text")
    line.fill("@a/b no")
    line.press("Enter")
    expect(page.locator("#flag-failed")).to_contain_text("cannot be the name of a flag")
    before = address(page)

    press(opened, "Escape")

    expect(page.locator("#flag")).not_to_be_visible()
    assert address(page) == before
    assert flags_in(page) == []
