"""The page from which traces are opened: by a path, by a click, by a file that is chosen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from stepscope.app.cli.opening import OpenTrace
from stepscope.app.kept import recent
from stepscope.app.live.opener import Opener
from stepscope.app.web import listen
from stepscope.app.web.safety.access import Access
from stepscope.app.web.start.trace_desk import Desk
from tests.app.web.in_browser.conftest import WRONG
from tests.conftest import ROOT
from tests.tiers import slow

pytestmark = pytest.mark.web
SAMPLE = ROOT / "sample_traces" / "mix-admission-before.trace"
KERNEL = b'{"traceEvents": [{"ph": "X", "name": "k", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile of one kernel."""
    path = tmp_path / "profile.json"
    path.write_bytes(KERNEL)
    return path


@pytest.fixture
def desk(window: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """The page of a server that was given no trace; nothing may go wrong on it."""
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    recent.opened(SAMPLE)
    WRONG.clear()
    made = Desk(None, Access("127.0.0.1"), Opener(OpenTrace()))
    listener = listen.bind("127.0.0.1", 0)
    serving = (listener, made, "127.0.0.1")
    threading.Thread(target=listen.until_stopped, args=serving, daemon=True).start()
    window.goto(listen.address("127.0.0.1", listener.getsockname()[1]))
    yield window
    made.close()
    assert WRONG == []


@slow
def test_a_recent_trace_is_opened_by_a_click_and_another_one_from_its_page(
    desk: Page, profile: Path
) -> None:
    desk.get_by_role("button", name=SAMPLE.name).click()
    expect(desk.locator("#trace")).to_contain_text(SAMPLE.name)
    expect(desk.locator("#page")).to_have_attribute("aria-busy", "false")
    desk.keyboard.press("n")
    expect(desk.locator("#about")).to_contain_text("COR001")

    desk.keyboard.press("O")
    desk.locator("#path").fill(str(profile))
    desk.keyboard.press("Enter")

    expect(desk.locator("#trace")).to_contain_text(profile.name)
    expect(desk.locator("#page")).to_have_attribute("aria-busy", "false")


def test_nothing_can_be_sent_before_the_script_of_the_page_is_there(desk: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    desk.route("**/desk.js", hold)
    desk.reload(wait_until="commit")

    expect(desk.locator("#path")).to_be_disabled()
    expect(desk.get_by_role("button", name=SAMPLE.name)).to_be_disabled()
    held[0].continue_()

    expect(desk.locator("#path")).to_be_focused()
    desk.unroute("**/desk.js")


@slow
def test_a_file_that_is_chosen_is_sent_and_opened(desk: Page, profile: Path) -> None:
    desk.set_input_files("#file", profile)

    expect(desk.locator("#trace")).to_contain_text(profile.name)
    expect(desk.locator("#page")).to_have_attribute("aria-busy", "false")


@slow
def test_a_file_that_is_dragged_onto_the_page_and_dropped_is_sent_and_opened(
    desk: Page, profile: Path
) -> None:
    """The browser's own drag and drop: it brings a file from the disk, as a file manager does."""
    drop = desk.locator("#drop")
    box = drop.bounding_box()
    assert box
    session = desk.context.new_cdp_session(desk)
    dragged = {"items": [], "files": [str(profile)], "dragOperationsMask": 1}
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(kind: str) -> None:
        session.send("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": dragged})

    drag("dragEnter")
    drag("dragOver")
    expect(desk.locator("#desk")).to_have_class("over")
    drag("drop")

    expect(desk.locator("#trace")).to_contain_text(profile.name)
    expect(desk.locator("#page")).to_have_attribute("aria-busy", "false")


def test_a_file_that_is_dragged_away_again_is_not_sent(desk: Page) -> None:
    files = desk.evaluate_handle(
        "() => { const data = new DataTransfer(); data.items.add(new File(['x'], 'x.json'));"
        " return data; }"
    )
    drop = desk.locator("#drop")
    drop.dispatch_event("dragover", {"dataTransfer": files})
    expect(desk.locator("#desk")).to_have_class("over")
    drop.dispatch_event("dragleave", {"dataTransfer": files})
    expect(desk.locator("#desk")).not_to_have_class("over")
    expect(desk.locator("#told")).to_be_empty()


def test_a_folder_that_is_dropped_is_told_how_it_is_opened(desk: Page, tmp_path: Path) -> None:
    (tmp_path / "run.trace").mkdir()
    session = desk.context.new_cdp_session(desk)
    dragged = {"items": [], "files": [str(tmp_path / "run.trace")], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, "x": 300, "y": 200, "data": dragged}
        session.send("Input.dispatchDragEvent", event)

    expect(desk.locator("#told")).to_contain_text("is a folder: open it by its path")


def test_what_cannot_be_opened_is_said_and_the_page_stays(desk: Page, tmp_path: Path) -> None:
    desk.locator("#path").fill("/nowhere/at/all")
    desk.keyboard.press("Enter")
    expect(desk.locator("#told")).to_contain_text("there is no such file")

    desk.evaluate("document.getElementById('drop').dataset.most = '3'")
    (tmp_path / "large.json").write_text("large")
    desk.set_input_files("#file", tmp_path / "large.json")
    expect(desk.locator("#told")).to_contain_text("large.json has 5 bytes, and 3 are taken at most")
