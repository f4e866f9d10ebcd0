"""Pictures that come late, or not at all, in a real browser whose clock is set by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.app.web.in_browser.conftest import PATIENCE_MS, Visit, stand
from tests.app.web.in_browser.hands import SMALL, Open
from tests.tiers import slow

pytestmark = pytest.mark.web

PICTURE = "**/picture"
Wrong = Callable[[Route], None]


@pytest.fixture(scope="module")
def timed(chromium: Browser) -> Iterator[Page]:
    """A page with a clock of its own; its scripts are fetched and compiled once."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE_MS)
    page.clock.install()
    yield page
    page.close()


@pytest.fixture
def apart(timed: Page, visit: Open, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The same page, on which something may go wrong, with everything there.

    It is opened anew only after a test that failed.
    """
    if request.session.testsfailed:
        timed.goto(stand().blank)
    Visit(timed, visit(SMALL).url, stays=True).go()
    yield timed
    timed.unroute_all()
    timed.evaluate("() => { globalThis.fetch = globalThis.fetched ?? globalThis.fetch; }")


def settled(page: Page) -> None:
    expect(page.locator("#page")).to_have_attribute("aria-busy", "false")


UP_TO_DATE = """async () => {
  const { seen: { view, picture } } = await import("/assets/seen.js");
  const margin = (view.t1 - view.t0) / 2;
  const apart = [picture.t0 - view.t0 + margin, picture.t1 - view.t1 - margin];
  return apart.every((each) => Math.abs(each) <= 1);
}"""
"""Whether the picture is of what is looked at, and half as much beside it."""
HELD = """() => {
  globalThis.fetched ??= globalThis.fetch;
  globalThis.held = [];
  globalThis.fetch = (where, given) => where !== "picture" ? fetched(where, given) : new Promise(
    (answer) => held.push(() => answer(fetched(where, { ...given, signal: undefined }))));
}"""
"""Hold every question for a picture back until it is let go, and give none up."""


def is_up_to_date(page: Page) -> bool:
    return bool(page.evaluate(UP_TO_DATE))


def let_go(page: Page, number: int) -> None:
    """Have a question that was held back answered, and what follows from the answer done."""
    with page.expect_response(PICTURE) as answer:
        page.evaluate("(number) => held[number]()", number)
    answer.value.finished()
    page.clock.run_for(100)


def gone(route: Route) -> None:
    route.abort("connectionrefused")


def busy(route: Route) -> None:
    route.fulfill(status=503, body="busy")


def cut(route: Route) -> None:
    route.fulfill(body=route.fetch().body()[:40])


def of_another_revision(route: Route) -> None:
    body = route.fetch().body()
    assert b'"revision":0' in body
    route.fulfill(body=body.replace(b'"revision":0', b'"revision":7'))


@slow
def test_a_picture_that_cannot_be_had_holds_up_nothing_and_is_asked_for_again(apart: Page) -> None:
    for wrong in (gone, busy, cut, of_another_revision):
        check_asked_again(apart, wrong)


def check_asked_again(apart: Page, wrong: Wrong) -> None:
    apart.route(PICTURE, wrong)
    for _ in range(2):
        with apart.expect_request(PICTURE):
            apart.keyboard.press("w")
        settled(apart)
        assert not is_up_to_date(apart), wrong.__name__

    apart.unroute(PICTURE)
    apart.clock.fast_forward(1_000)
    apart.wait_for_function(UP_TO_DATE)
    settled(apart)


def test_a_page_that_is_hidden_asks_for_no_picture_again(apart: Page) -> None:
    apart.evaluate(
        "Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })"
    )
    apart.route(PICTURE, gone)
    apart.keyboard.press("w")
    settled(apart)
    asked: list[str] = []
    apart.on("request", lambda request: asked.append(request.url))
    apart.clock.run_for(5_000)
    assert [url for url in asked if url.endswith("/picture")] == []

    apart.unroute(PICTURE)
    apart.evaluate("delete document.hidden")
    apart.clock.fast_forward(1_000)
    apart.wait_for_function(UP_TO_DATE)


def test_one_picture_is_asked_for_at_a_time_and_then_the_last_of_what_was_wanted(
    apart: Page,
) -> None:
    apart.evaluate(HELD)
    apart.keyboard.press("w")
    for _ in range(3):
        apart.keyboard.press("d")
    assert apart.evaluate("held.length") == 1

    let_go(apart, 0)
    assert apart.evaluate("held.length") == 2
    assert not is_up_to_date(apart)
    let_go(apart, 1)
    assert is_up_to_date(apart)
    settled(apart)
    assert apart.evaluate("held.length") == 2


def test_an_answer_that_comes_after_a_newer_one_is_not_shown(apart: Page) -> None:
    apart.evaluate(HELD)
    apart.keyboard.press("w")
    apart.clock.fast_forward(6_000)
    apart.keyboard.press("d")
    assert apart.evaluate("held.length") == 2

    let_go(apart, 1)
    assert is_up_to_date(apart)
    let_go(apart, 0)
    assert is_up_to_date(apart)
    settled(apart)


def test_an_answer_that_comes_before_a_newer_one_does_not_end_the_wait(apart: Page) -> None:
    apart.evaluate(HELD)
    apart.keyboard.press("w")
    apart.clock.fast_forward(6_000)
    apart.keyboard.press("d")

    let_go(apart, 0)
    expect(apart.locator("#page")).to_have_attribute("aria-busy", "true")
    let_go(apart, 1)
    assert is_up_to_date(apart)
    settled(apart)


def test_a_picture_waits_for_a_page_that_is_made_anew(apart: Page) -> None:
    apart.evaluate(HELD)
    apart.keyboard.press("w")
    apart.evaluate("document.getElementById('page').id = 'none'")
    let_go(apart, 0)
    assert not is_up_to_date(apart)

    apart.evaluate("() => { held.push = (answer) => answer(); }")  # what is asked from now on
    apart.evaluate("document.getElementById('none').id = 'page'")
    apart.wait_for_function(UP_TO_DATE)
    settled(apart)
