"""The drawer steps, tabulates and queries; rules and keys explain themselves."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from stepscope.app.timeline.keymap import FIRST_KEYS, FLAGS, KEYMAP, STOPS
from tests.app.web.in_browser.hands import SMALL, Open, address, press

pytestmark = pytest.mark.web


def test_the_drawer_steps_through_the_run(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?tab=step&step=2")

    page.get_by_text("next ▶").click()
    opened.settle()
    expect(page.locator("#pane")).to_contain_text("4 of 6")
    page.get_by_text("◀ previous").click()
    opened.settle()
    expect(page.locator("#pane")).to_contain_text("3 of 6")


def test_tables_are_chosen_and_sorted_and_queries_answered(revisit: Open) -> None:
    opened = revisit(SMALL)
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


def test_a_rule_explains_itself_and_escape_closes_it(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?finding=COR001.1")

    page.get_by_text("explain COR001").click()
    opened.settle()
    expect(page.locator("#rule")).to_contain_text("Why it hurts")
    press(opened, "Escape")
    expect(page.locator("#explain")).not_to_be_visible()


def test_a_key_shows_the_codes_of_rules_that_found_nothing_or_could_not_judge(
    revisit: Open,
) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    codes = page.locator("#about details.codes p")

    page.keyboard.press("S")
    expect(codes.first).to_be_visible()
    expect(codes.first).to_contain_text("COR002")
    expect(codes.last).to_contain_text("COL001")
    page.keyboard.press("S")
    expect(codes.first).not_to_be_visible()


def test_help_lists_every_key(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()

    page.keyboard.press("?")

    expect(page.locator("#keys")).to_contain_text("next finding")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()


def test_escape_in_a_line_leaves_the_line_and_nothing_else(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go("?finding=COR001.1&tab=step")
    before = address(page)
    for line in ("#find", "#break"):
        page.locator(line).fill("req-1")
        page.keyboard.press("Escape")
        opened.settle()
        expect(page.locator(line)).not_to_be_focused()
        assert address(page) == before

    press(opened, "Escape")

    assert "finding" not in address(page)


def test_the_help_begins_with_the_ten_keys_that_matter_first_and_lists_the_others_by_section(
    revisit: Open,
) -> None:
    opened = revisit(SMALL)
    page = opened.go()

    page.keyboard.press("?")

    sections = page.locator("#keys h3").all_inner_texts()
    first = page.locator("#keys dl").first.locator("dd").all_inner_texts()
    assert first == [says for _, says in FIRST_KEYS]
    assert len(first) == 10
    assert [each.lower() for each in sections][:2] == ["first of all", "move"]
    assert len(set(sections)) == len(sections)
    every = page.locator("#keys dd").all_inner_texts()
    assert all(key.says in every for key in (*KEYMAP, *STOPS, *FLAGS))
    page.keyboard.press("Escape")
