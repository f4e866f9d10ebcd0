"""The page from which traces are opened: by a path, by a click, by a file that is chosen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from stepscope.app.cli.opening import OpenTrace
from stepscope.app.kept import recent
from stepscope.app.web import listen
from stepscope.app.web.safety.access import Access
from stepscope.app.web.start.trace_desk import Desk
from tests.app.web.in_browser.conftest import WRONG
from tests.conftest import ROOT

pytestmark = pytest.mark.web
SAMPLE = ROOT / "sample_traces" / "mix-admission-before.trace"
PROFILE = ROOT / "sample_traces" / "torch_profiler_cpu.json.gz"


@pytest.fixture
def desk(window: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """The page of a server that was given no trace; nothing may go wrong on it."""
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    recent.opened(SAMPLE)
    WRONG.clear()
    made = Desk(None, Access.to("127.0.0.1"), OpenTrace())
    listener = listen.bind("127.0.0.1", 0)
    serving = (listener, made, "127.0.0.1")
    threading.Thread(target=listen.until_stopped, args=serving, daemon=True).start()
    window.goto(listen.address("127.0.0.1", listener.getsockname()[1]))
    yield window
    made.close()
    assert WRONG == []


def test_a_recent_trace_is_opened_by_a_click_and_another_one_from_its_page(desk: Page) -> None:
    desk.get_by_role("button", name=SAMPLE.name).click()
    expect(desk.locator("#trace")).to_contain_text(SAMPLE.name)
    expect(desk.locator("#page")).to_have_attribute("aria-busy", "false")
    desk.keyboard.press("n")
    expect(desk.locator("#about")).to_contain_text("COR001")

    desk.keyboard.press("O")
    desk.locator("#path").fill(str(PROFILE))
    desk.keyboard.press("Enter")

    expect(desk.locator("#trace")).to_contain_text(PROFILE.name)
    expect(desk.locator("#page")).to_have_attribute("aria-busy", "false")


def test_a_file_that_is_chosen_is_sent_and_opened(desk: Page) -> None:
    desk.set_input_files("#file", PROFILE)

    expect(desk.locator("#trace")).to_contain_text(PROFILE.name)
    expect(desk.locator("#page")).to_have_attribute("aria-busy", "false")


def test_what_cannot_be_opened_is_said_and_the_page_stays(desk: Page, tmp_path: Path) -> None:
    desk.locator("#path").fill("/nowhere/at/all")
    desk.keyboard.press("Enter")
    expect(desk.locator("#told")).to_contain_text("there is no such file")

    desk.evaluate("document.getElementById('drop').dataset.most = '3'")
    (tmp_path / "large.json").write_text("large")
    desk.set_input_files("#file", tmp_path / "large.json")
    expect(desk.locator("#told")).to_contain_text("large.json has 5 bytes, and 3 are taken at most")
