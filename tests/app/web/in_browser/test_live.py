"""A recording in progress, followed on the page until something is found and it ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, Request, expect

from stepscope.analyzers.check.run import check
from stepscope.app.live.follower import Follower
from stepscope.app.web.server import create_app
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.both_fronts.recording_process import HOSTILE, RecordingProcess, recording
from tests.app.web.in_browser.conftest import WRONG, Visit, begin, stand
from tests.app.web.in_browser.hands import press
from tests.tiers import slow

pytestmark = pytest.mark.web

Follow = Callable[[Path], Visit]


@pytest.fixture
def follow(window: Page, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follow]:
    """Serve the page of what is recorded at a path; nothing may have gone wrong on it."""
    begin(window)
    for name in ("READ_EVERY_S", "CHECK_EVERY_S"):
        monkeypatch.setattr(f"stepscope.app.live.follower.{name}", 0.1)

    def served(path: Path) -> Visit:
        follower = Follower(path)
        follower.refresh()
        app = create_app(follower.look().trace, None, follower=follower)
        return Visit(window, stand().show(app.server))

    yield served
    assert WRONG == []


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[RecordingProcess]:
    with recording(tmp_path / "run.trace") as process:
        process.steps(stories.LIVE_STEPS)
        yield process


AT_END = """() => {
  const { left, width } = document.getElementById("window").style;
  return Math.abs(parseFloat(left) + parseFloat(width) - 100) < 0.01;
}"""
"""Whether the window on the minimap ends where the trace does."""


def test_follow_a_live_run_until_a_finding(
    follow: Follow, engine: RecordingProcess, tmp_path: Path
) -> None:
    visit = follow(tmp_path / "run.trace")
    page = visit.go()
    live, position = page.locator("#live"), page.locator("#position")
    expect(live).to_contain_text(stories.LIVE)
    expect(live).to_contain_text(stories.NEWEST)
    expect(position).to_contain_text("of 40")

    engine.steps(stories.MORE_STEPS)
    expect(position).to_contain_text("of 50")
    expect(live).to_contain_text(stories.NEWEST)
    page.wait_for_function(AT_END)

    engine.give_block_twice()
    expect(live).to_contain_text(stories.TWICE_AT)
    expect(page.locator("#count-findings")).to_have_text("1")
    press(visit, "n")
    expect(live).to_contain_text(stories.ELSEWHERE)
    expect(page.locator("#about")).to_contain_text(stories.TWICE)

    engine.close()
    expect(live).to_contain_text(stories.ENDED)
    expect(live).to_contain_text(stories.WHOLE)
    expect(live).to_contain_text(stories.TWICE_AT)
    page.keyboard.press("L")
    expect(live).to_be_hidden()
    visit.settle()
    expect(page.locator("#about")).to_contain_text(stories.TWICE)
    press(visit, "4")
    expect(page.locator("#pane")).to_contain_text("of 50")


@slow
def test_scrolling_back_leaves_the_newest_step_and_a_key_returns(
    follow: Follow, engine: RecordingProcess, tmp_path: Path
) -> None:
    engine.steps(200)
    visit = follow(tmp_path / "run.trace")
    page = visit.go()
    live = page.locator("#live")
    expect(live).to_contain_text(stories.NEWEST)

    press(visit, "a")
    expect(live).to_contain_text(stories.ELSEWHERE)
    before = page.evaluate("new URLSearchParams(location.search).get('t')")
    engine.steps(10)
    expect(live).to_contain_text("500 rows")
    expect(page.locator("#position")).to_contain_text("of 250")
    assert page.evaluate("new URLSearchParams(location.search).get('t')") == before

    press(visit, "F")
    expect(live).to_contain_text(stories.NEWEST)
    expect(page.locator("#window")).to_be_visible()
    page.wait_for_function(AT_END)


@slow
def test_nothing_is_asked_while_it_is_held_or_hidden(
    follow: Follow, engine: RecordingProcess, tmp_path: Path
) -> None:
    visit = follow(tmp_path / "run.trace")
    page = visit.go()
    expect(page.locator("#live")).to_contain_text("80 rows")
    press(visit, "H")
    expect(page.locator("#live")).to_have_text(stories.HELD)
    with begun(page) as asked:
        engine.steps(5)
        page.evaluate("new Promise((done) => setTimeout(done, 1000))")
    assert asked == []

    with begun(page) as asked:
        press(visit, "H")
        expect(page.locator("#live")).to_contain_text("90 rows")
    assert asked != []
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { get: () => true, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    with begun(page) as asked:
        page.evaluate("new Promise((done) => setTimeout(done, 1000))")
    assert asked == []


@contextmanager
def begun(page: Page) -> Iterator[list[str]]:
    """The questions for news that are begun meanwhile; one that is under way was before."""
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/news" in request.url:
            asked.append(request.url)

    page.on("request", note)
    yield asked
    page.remove_listener("request", note)


@slow
def test_what_needs_every_row_says_so_and_what_goes_wrong_is_told_in_a_line(
    follow: Follow, engine: RecordingProcess, tmp_path: Path
) -> None:
    visit = follow(tmp_path / "run.trace")
    page = visit.go()
    for tab in ("blame", "step", "request"):
        page.locator(f"#tab-{tab}").click()
        expect(page.locator("#pane")).to_contain_text("not told while a recording is followed")

    engine.arrive()
    expect(page.locator("#names")).to_contain_text("req-[b]")
    assert HOSTILE not in page.content()

    engine.kill()
    expect(page.locator("#live")).to_contain_text(stories.KILLED)


@slow
def test_a_directory_that_is_deleted_is_told_in_a_line(
    follow: Follow, engine: RecordingProcess, tmp_path: Path
) -> None:
    visit = follow(tmp_path / "run.trace")
    page = visit.go()
    expect(page.locator("#live")).to_contain_text("80 rows")
    shutil.rmtree(tmp_path / "run.trace")
    expect(page.locator("#live")).to_contain_text("■ gone from the disk")
    page.keyboard.press("L")
    expect(page.locator("#live")).to_contain_text("no such file")
    engine.kill()


@slow
def test_a_file_that_was_replaced_is_offered_anew(window: Page, tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    with recording(path) as process:
        process.steps(40)
        process.close()
    trace = Trace.open(path)
    visit = Visit(window, stand().show(create_app(trace, check(trace)).server))
    page = visit.go()
    shutil.rmtree(path)
    with recording(path) as process:
        process.steps(20)
        process.close()
    expect(page.locator("#live")).to_have_text(stories.CHANGED)
    page.keyboard.press("L")
    expect(page.locator("#live")).to_be_hidden()
    expect(page.locator("#position")).to_contain_text("of 20")


@slow
def test_the_news_are_small_whatever_is_asked(
    follow: Follow, engine: RecordingProcess, tmp_path: Path
) -> None:
    visit = follow(tmp_path / "run.trace")
    for query in ("", "?following=NEWEST", "?following=%00", "?following=a&x=b"):
        with urlopen(f"{visit.url}news{query}") as answer:  # noqa: S310 - our own server
            news = answer.read()

        assert len(news) < 1000, query
        assert json.loads(news)["live"], query
    engine.kill()
