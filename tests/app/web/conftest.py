"""A page in a real, headless Chromium; skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from stepscope.analyzers.run import check
from stepscope.app.web import listen
from stepscope.app.web.server import create_app
from stepscope.ingest.trace import Trace

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE_MS = 30_000  # a machine may be busy with other things; nothing here waits this long


@dataclass
class Visit:
    """A page that was opened, and everything that went wrong on it."""

    page: Page
    url: str
    wrong: list[str] = field(default_factory=list)

    def go(self, query: str = "") -> Page:
        """Open an address and wait until the timeline is drawn."""
        self.page.goto(self.url + query)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until what was asked for has come and been painted."""
        expect(self.page.locator("#page")).to_have_attribute("aria-busy", "false")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser for the whole session."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS), headless=True)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """One profile for all pages, so that scripts are fetched and compiled once."""
    expect.set_options(timeout=PATIENCE_MS)
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def visit(context: BrowserContext) -> Iterator[Callable[[Trace], Visit]]:
    """Serve a trace and give its page; at the end nothing may have gone wrong on any of them."""
    visits: list[Visit] = []

    def open_page(trace: Trace) -> Visit:
        opened = Visit(context.new_page(), _serve(trace))
        _watch(opened)
        visits.append(opened)
        return opened

    yield open_page
    for each in visits:
        each.page.close()
    assert [wrong for each in visits for wrong in each.wrong] == []


@cache
def _serve(trace: Trace) -> str:
    """Serve a trace until the tests end; the same trace is served once."""
    app = create_app(trace, check(trace))
    listener = listen.bind("127.0.0.1", 0)
    serving = (listener, app.server, "127.0.0.1")
    threading.Thread(target=listen.until_stopped, args=serving, daemon=True).start()
    return listen.address("127.0.0.1", listener.getsockname()[1])


def _watch(visit: Visit) -> None:
    """Note console errors, failed requests, and requests that leave this machine."""
    page, wrong = visit.page, visit.wrong
    page.on("pageerror", lambda error: wrong.append(f"uncaught {error}"))
    page.on(
        "console",
        lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("requestfailed", lambda request: wrong.append(f"failed {request.url}"))
    page.on("response", lambda r: wrong.append(f"{r.status} {r.url}") if r.status >= 400 else None)

    def stays(url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme in ("data", "blob") or parts.hostname == "127.0.0.1"

    page.on("request", lambda r: None if stays(r.url) else wrong.append(f"left for {r.url}"))
