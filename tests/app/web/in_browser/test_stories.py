"""Stories on the page: keys and clicks lead to a conflict, to a block's loser, to why one waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.web.in_browser.hands import Open, address, press, sample
from tests.app.web.in_browser.test_stops import look_for
from tests.tiers import slow

pytestmark = pytest.mark.web


def test_find_a_conflict_and_go_back_to_who_lost_the_block(revisit: Open) -> None:
    opened = revisit(sample(stories.BEFORE))
    page = opened.go()
    pane, told = page.locator("#pane"), page.locator("#told")

    look_for(opened, stories.TAKEN_AWAY)
    expect(told).to_have_text(stories.ALL_TAKEN_AWAY)
    press(opened, "c")
    expect(told).to_have_text(stories.FIRST_TAKEN_AWAY)
    expect(pane).to_contain_text(stories.FIRST_AT)
    expect(pane).to_contain_text(stories.FIRST_ROW)
    left_out = pane.locator("tr", has_text=stories.VERDICT)
    expect(left_out.first).to_contain_text(stories.REASON)

    press(opened, "G")
    look_for(opened, stories.WATCHED)
    for hit, step, row in (stories.TAKEN, stories.LOST):
        press(opened, "C")
        expect(told).to_have_text(hit)
        expect(pane).to_contain_text(step)
        expect(pane).to_contain_text(row)
    page.go_back()
    opened.settle()
    expect(told).to_have_text(stories.TAKEN[0])


def test_why_a_request_waits_is_told_with_the_row_that_proves_it(revisit: Open) -> None:
    opened = revisit(sample(stories.BEFORE))
    page = opened.go(f"?tab=step&step={stories.WAITS_AT}")

    page.locator("#pane a.tag", has_text=stories.WHO).click()
    opened.settle()
    why = page.locator("#pane .why")
    expect(why).to_contain_text(stories.CAUSE)
    expect(why).to_contain_text(stories.WHY)
    assert address(page)["who"] == stories.WHO

    why.get_by_role("link", name=stories.LINK).click()
    opened.settle()
    expect(page.locator("#pane .change")).to_contain_text(stories.PROOF)
    page.go_back()
    opened.settle()
    expect(why).to_contain_text(stories.CAUSE)


def test_one_click_on_a_waiting_bar_says_why_it_waits(revisit: Open) -> None:
    opened = revisit(sample(stories.CROWD))
    page = opened.go()
    row = page.locator("#names .row", has_text=stories.WAITER).bounding_box()
    canvas = page.locator("#canvas").bounding_box()
    assert row
    assert canvas
    at = canvas["x"] + canvas["width"] / 5, row["y"] + row["height"] / 2

    page.mouse.move(*at)
    expect(page.locator("#tip")).to_contain_text(stories.WAITED)
    page.mouse.click(*at)
    opened.settle()

    about = page.locator("#about")
    expect(about).to_contain_text(stories.WAITED)
    for fact in stories.WAITED_FOR:
        expect(about).to_contain_text(fact, ignore_case=True)
    about.get_by_role("link", name="4-ab4d090e").first.click()
    opened.settle()
    expect(about).to_contain_text("decode on request 4-ab4d090e")


def test_a_click_on_the_head_of_the_waiting_queue_says_why_it_waited_there(revisit: Open) -> None:
    opened = revisit(sample(stories.CROWD))
    page = opened.go()
    page.locator("#names .row", has_text="waiting queue").click()
    opened.settle()
    row = page.locator("#names .row", has_text="position 0").bounding_box()
    canvas = page.locator("#canvas").bounding_box()
    assert row
    assert canvas

    page.mouse.click(canvas["x"] + canvas["width"] / 20, row["y"] + row["height"] / 2)
    opened.settle()

    expect(page.locator("#about")).to_contain_text("at position 0 of the waiting queue for")


def test_what_is_wrong_with_what_is_asked_is_said_in_a_line(revisit: Open) -> None:
    opened = revisit(sample(stories.BEFORE))
    opened.go()

    page = look_for(opened, "nobody", "W", "what")

    told = page.locator("#what-told")
    expect(told.locator(".failure")).to_have_text(
        "no variant is called 'nobody'; try before, after, order-only, defer-only"
    )
    expect(told.locator("#what-choices")).to_contain_text(stories.ASKED)


@slow
def test_what_the_fix_changed_is_that_the_condition_is_met_nowhere(revisit: Open) -> None:
    opened = revisit(sample(stories.AFTER))
    page = opened.go()

    look_for(opened, stories.TAKEN_AWAY)

    expect(page.locator("#pane")).to_contain_text(stories.NOWHERE)
    expect(page.locator("#stops a")).to_have_count(0)


def test_what_the_fix_would_have_changed_is_asked_from_the_step_of_a_finding(
    visit: Open, sample_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = sample_traces / stories.BEFORE
    opened = visit(Trace.open(path))
    page = opened.go(f"?finding={stories.ASKED_BEFORE}.1")

    press(opened, "W")
    page.locator("#what-choices").get_by_text(stories.ASKED).click()
    opened.settle()
    expect(page.locator("#what")).to_have_value(stories.ASKED)
    expect(page.locator("#what")).to_be_focused()
    page.keyboard.press("Enter")

    told = page.locator("#what-told")
    expect(told).to_contain_text("to go on", ignore_case=True)
    shown = " ".join(told.inner_text().split()).lower()
    for each in stories.WHAT_IF:
        assert each.format(trace=path).lower() in shown
    told.get_by_role("link", name=stories.WHAT_IF[1]).click()
    opened.settle()
    expect(page.locator("#pane")).to_contain_text(stories.DIVERGED_PLACE)
    assert address(page)["what"] == stories.ASKED


@slow
def test_a_run_goes_on_without_the_page_and_is_cancelled_from_another(
    visit: Open, sample_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = visit(Trace.open(sample_traces / stories.BEFORE))
    page = opened.go("?tab=step&what=requests%3D4000&go=what-if")
    cancel = page.locator("#what-cancel")
    expect(cancel).to_be_visible()

    page.goto("about:blank")
    opened.go("?tab=step&what=--variant%20defer-only&go=what-if")
    expect(page.locator("#what-told .failure")).to_contain_text("one is run at a time")
    cancel.click()
    opened.settle()
    expect(cancel).to_have_count(0)
    page.locator("#what-run").click()
    opened.settle()
    expect(page.locator("#what-told")).to_contain_text("defer-only.trace")


def test_what_the_gpu_did_in_a_step_is_told_with_its_kernels(visit: Open, tmp_path: Path) -> None:
    opened = visit(Trace.open(stories.gpu_profile(tmp_path)))
    page = opened.go("?tab=step")

    press(opened, "g ] ]")

    pane = page.locator("#pane")
    expect(pane).to_contain_text("step 2")
    told = " ".join(pane.inner_text().split()).lower()
    assert [each for each in stories.ON_GPU if each.lower() not in told] == []
    assert stories.NOT_IN_IT not in told
