"""Lanes are drawn before the rules have run and before Plotly is read; both come when they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.app.present.about import how_many
from stepscope.app.web import source
from stepscope.app.web.server import create_app
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace
from tests.app.web.in_browser.conftest import PATIENCE_MS, WRONG, Visit, begin, stand
from tests.app.web.in_browser.hands import SMALL, Open, colours_in, press
from tests.tiers import slow
from tests.traces import trace_of

pytestmark = pytest.mark.web

FOUND = check(SMALL).findings
NUM_FOUND, HOW_MANY = len(FOUND), how_many(FOUND)
LAST = 3
"""Which rule is told of before the rules are held up."""


class HeldUp:
    """A check that has told how far it is, and goes on when it is let go."""

    def __init__(self) -> None:
        self.has_told, self.let_go, self.num_begun = Event(), Event(), 0
        self.error: StepscopeError | None = None

    def __call__(self, trace: Trace, progress: Callable[[str, int, int], None]) -> CheckResult:
        self.num_begun += 1
        progress("KVB001", LAST, 66)
        self.has_told.set()
        assert self.let_go.wait(PATIENCE_MS / 1000)
        if self.error:
            raise self.error
        return check(trace)


@pytest.fixture
def unchecked(window: Page) -> Iterator[Visit]:
    """The page of a trace that was not checked; nothing may have gone wrong on it."""
    begin(window)
    yield Visit(window, stand().show(create_app(SMALL, None).server))
    assert WRONG == []


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldUp]:
    held = HeldUp()
    monkeypatch.setattr(source, "check", held)
    yield held
    held.let_go.set()


@slow
def test_lanes_are_there_before_the_rules_have_run_and_findings_come_when_they_have(
    unchecked: Visit, rules: HeldUp
) -> None:
    page = unchecked.go()
    page.locator("#tab-findings").click()

    expect(page.get_by_role("treeitem", name="engine")).to_be_visible()
    expect(page.locator("#count-findings")).to_have_text(f"{LAST} of 66 rules …")
    expect(page.locator("#pane")).to_contain_text("The rules are running")
    expect(page.locator("#marks a")).to_have_count(0)

    rules.let_go.set()
    expect(page.locator("#count-findings")).to_have_text(HOW_MANY)
    expect(page.locator("#pane .finding")).to_have_count(NUM_FOUND)
    expect(page.locator("#marks a")).not_to_have_count(0)
    expect(page.locator("#about")).to_contain_text("COR001")
    assert rules.num_begun == 1


@slow
def test_what_one_looks_at_stays_when_the_rules_have_run(unchecked: Visit, rules: HeldUp) -> None:
    page = unchecked.go("?sel=0@50000")
    before = page.locator("#position").inner_text(), page.url
    rules.let_go.set()

    expect(page.locator("#count-findings")).to_have_text(HOW_MANY)
    unchecked.settle()
    assert (page.locator("#position").inner_text(), page.url) == before


@slow
def test_a_link_to_a_finding_waits_for_the_rules(unchecked: Visit, rules: HeldUp) -> None:
    page = unchecked.page
    page.goto(f"{unchecked.url}?finding=COR001.1")
    expect(page.locator("#count-findings")).to_have_text(f"{LAST} of 66 rules …")
    rules.let_go.set()
    expect(page.locator("#about")).to_contain_text("COR001")
    expect(page.locator("#count-findings")).to_have_text(HOW_MANY)
    assert "finding=COR001.1" in page.url


@slow
def test_who_asks_for_the_next_finding_gets_it_when_the_rules_have_run(
    unchecked: Visit, rules: HeldUp
) -> None:
    page = unchecked.go()
    page.keyboard.press("n")
    rules.let_go.set()
    expect(page.locator("#about")).to_contain_text("COR001")
    expect(page.locator("#count-findings")).to_have_text(HOW_MANY)
    press(unchecked, "N")


def test_rules_that_fail_are_told_in_a_line_and_the_page_stays(
    unchecked: Visit, rules: HeldUp
) -> None:
    rules.error = StepscopeError("rule XYZ001 failed: no such column", where="t.trace")
    page = unchecked.go("?tab=findings")
    rules.let_go.set()

    expect(page.locator("#count-findings")).to_have_text("not checked")
    expect(page.locator("#pane")).to_contain_text("Not checked: ")
    expect(page.locator("#pane")).to_contain_text("rule XYZ001 failed")
    expect(page.get_by_role("treeitem", name="engine")).to_be_visible()


def test_no_rule_runs_before_a_page_asks_for_news(rules: HeldUp) -> None:
    client = create_app(SMALL, None).server.test_client()
    client.get("/")
    client.get("/_dash-layout")
    assert rules.num_begun == 0

    client.get("/news")
    assert rules.has_told.wait(PATIENCE_MS / 1000)
    assert client.get("/news").json["checking"] == f"{LAST} of 66 rules"
    assert rules.num_begun == 1


@slow
def test_lanes_and_what_is_said_are_there_before_plotly_is_fetched_and_it_is_busy_until_then(
    visit: Open, chromium: Browser
) -> None:
    url, held = visit(SMALL).url, list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    with chromium.new_context(viewport={"width": 1280, "height": 800}) as own:
        own.set_default_timeout(PATIENCE_MS)
        page = own.new_page()
        page.route("**/plotly.min.js", hold)
        with page.expect_request("**/plotly.min.js"):
            page.goto(url + "?tab=overview")

        assert colours_in(page, 0)[1:]
        assert page.locator("#about").inner_text().startswith("small.trace")
        expect(page.locator("#page")).to_have_attribute("aria-busy", "true")
        expect(page.locator(".main-svg")).to_have_count(0)

        held[0].continue_()
        Visit(page, url).settle()
        assert page.locator("#pane .dash-graph").count() > 0
        assert page.locator("#pane .dash-graph:not(:has(.main-svg))").count() == 0
        expect(page.locator("#load .main-svg").first).to_be_visible()
    assert len(held) == 1


def test_a_trace_without_lanes_has_its_charts(visit: Open) -> None:
    page = visit(trace_of(name="empty.trace")).go()

    expect(page.locator("#load .main-svg").first).to_be_visible()
