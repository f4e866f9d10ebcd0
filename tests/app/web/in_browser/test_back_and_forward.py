"""The browser's back and forward lead over findings, tabs and jumps alike."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.app.web.in_browser.conftest import Visit, begin
from tests.app.web.in_browser.hands import SMALL, Open, press, view
from tests.tiers import slow

pytestmark = pytest.mark.web


def seen(page: Page) -> tuple[str | None, str, str]:
    """The finding, the tab and the address."""
    shown = view(page)
    return shown["finding"], shown["tab"], page.url


def back(opened: Visit, times: int = 1) -> None:
    for _ in range(times):
        opened.page.go_back()
        opened.settle()


def forward(opened: Visit) -> None:
    opened.page.go_forward()
    opened.settle()


@slow
def test_back_and_forward_step_over_findings_tabs_and_jumps(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    been = [seen(page)]
    for act in ("n", "n", "1", "N"):
        press(opened, act)
        been.append(seen(page))
    page.locator("#about .links a", has_text="step").first.click()
    opened.settle()
    been.append(seen(page))

    assert [finding for finding, _, _ in been[:5]] == [
        None, "COR001.1", "COR003.1", "COR003.1", "COR001.1",
    ]  # fmt: skip
    for there in been[-2::-1]:
        back(opened)
        assert seen(page) == there
    for there in been[1:]:
        forward(opened)
        assert seen(page) == there


@slow
def test_what_was_moved_before_going_back_is_not_put_onto_where_one_comes_to(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    press(opened, "n")
    first = seen(page)
    press(opened, "n")

    page.evaluate(
        "async () => { (await import('/assets/stage.js')).MOVES.whole(); history.back(); }"
    )
    page.wait_for_function("() => location.search.includes('COR001.1')")
    opened.settle()
    assert seen(page) == first


@slow
def test_a_copied_address_opens_the_same_view(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = opened.go()
    press(opened, "n w p 2")
    there, shown = seen(page), view(page)

    begin(page)
    opened.go(there[-1].removeprefix(opened.url))
    assert seen(page) == there
    assert view(page) == shown
