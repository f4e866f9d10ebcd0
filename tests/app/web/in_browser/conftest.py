"""A page in a real, headless Chromium; skipped, with the reason, where there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from flask import Flask
from playwright.sync_api import Browser, Page, expect

from stepscope.analyzers.check.run import check
from stepscope.app.web import listen
from stepscope.app.web.server import create_app, create_both_app
from stepscope.ingest.trace import Trace
from tests.app.web.in_browser import browser

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PATIENCE_MS = 180_000  # a machine may be busy with other things; nothing here waits this long
ABORTED = "net::ERR_ABORTED"
IS_SETTLED = "() => document.getElementById('page')?.getAttribute('aria-busy') === 'false'"
IS_OPEN = "() => document.getElementById('page') !== null"
WALK = """(address) => {
  document.activeElement.blur();
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}"""
"""Go to an address as back and forward of the browser do, which open no page anew."""
BLANK = "blank"
WRONG: list[str] = []
"""What went wrong on the page in this test."""


@dataclass(frozen=True)
class Visit:
    """The page of a trace that is served; one that `stays` is not opened anew at each address."""

    page: Page
    url: str
    stays: bool = False

    def go(self, query: str = "") -> Page:
        """Open an address and wait until all of it is there."""
        if self.stays and self.page.url.startswith(self.url) and self.page.evaluate(IS_OPEN):
            self.page.mouse.move(0, 0)
            self.page.evaluate(WALK, self.url + query)
        else:
            self.page.goto(self.url + query)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until what was asked for has come and been painted, and no frame longer.

        What `expect` retries it looks at again half a second after the first tenths.
        """
        self.page.wait_for_function(IS_SETTLED)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A browser for all tests here; while it is open, no other test can run an event loop."""
    with browser.chromium() as found:
        if found is None:
            pytest.skip(browser.ABSENT)
        expect.set_options(timeout=PATIENCE_MS)
        yield found


@pytest.fixture(scope="package")
def window(chromium: Browser) -> Page:
    """One page for all tests here, so that its scripts are fetched and compiled once."""
    window = chromium.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    window.set_default_timeout(PATIENCE_MS)
    _watch(window)
    return window


@pytest.fixture
def sized(window: Page) -> Iterator[Page]:
    """The page, whose window has the size and the ground it had when the test is over."""
    before = window.viewport_size
    yield window
    assert before is not None
    window.set_viewport_size(before)
    window.emulate_media(color_scheme="dark")


@pytest.fixture
def visit(window: Page) -> Iterator[Callable[[Trace], Visit]]:
    """Serve a trace and give its page; at the end nothing may have gone wrong on it."""
    begin(window)
    yield lambda trace: Visit(window, stand().show(_server(trace)))
    forget(window)
    assert WRONG == []


@pytest.fixture
def visit_both(window: Page) -> Iterator[Callable[[Trace, Trace], Visit]]:
    """Serve two traces side by side and give their page; nothing may have gone wrong on it."""
    begin(window)
    yield lambda a, b: Visit(window, stand().show(_server_of_both(a, b)))
    forget(window)
    assert WRONG == []


@pytest.fixture
def revisit(window: Page, request: pytest.FixtureRequest) -> Iterator[Callable[[Trace], Visit]]:
    """Serve a trace and give its page as `visit` does, but do not open it anew if it is open.

    It costs a quarter of that. It is for a test that changes only what is in the address: a place,
    a range, lanes, colours, a tab. No overlay is open at its end, and no function is replaced.
    """
    with _left_as_it_was(window, request.session):
        yield lambda trace: _visit_again(window, _server(trace))


@pytest.fixture
def revisit_both(
    window: Page, request: pytest.FixtureRequest
) -> Iterator[Callable[[Trace, Trace], Visit]]:
    """Give the page of two traces side by side, and do not open it anew if it is open.

    It is for a test that leaves them aligned as at first: that is not changed by the address alone.
    """
    with _left_as_it_was(window, request.session):
        yield lambda a, b: _visit_again(window, _server_of_both(a, b))


@contextmanager
def _left_as_it_was(page: Page, session: pytest.Session) -> Iterator[None]:
    """Take over the page of the test before if that one had no fault and was of this kind."""
    if not stand().is_left_open:
        begin(page)
    WRONG.clear()
    stand().is_left_open = False
    num_failed = session.testsfailed
    yield
    forget(page)
    assert WRONG == []
    stand().is_left_open = session.testsfailed == num_failed


def _visit_again(page: Page, server: Flask) -> Visit:
    if not stand().shows(server):
        page.goto(stand().blank)
    return Visit(page, stand().show(server), stays=True)


class Stand:
    """Serves one application after another at one address until the tests end.

    A browser knows by address what it has fetched and compiled, which is most of what a page costs.
    """

    def __init__(self) -> None:
        self._application: WSGIApplication | None = None
        self.is_left_open = False  # whether the next test may take over the page as it is
        listener = listen.bind("127.0.0.1", 0)
        self._url = listen.address("127.0.0.1", listener.getsockname()[1])
        serving = (listener, self, "127.0.0.1")
        threading.Thread(target=listen.until_stopped, args=serving, daemon=True).start()

    @property
    def blank(self) -> str:
        """The address of an empty page; at another address the browser would compile all again."""
        return f"{self._url}{BLANK}"

    def show(self, application: WSGIApplication) -> str:
        """Serve an application from now on; its address."""
        self._application = application
        return self._url

    def shows(self, application: WSGIApplication) -> bool:
        """Tell whether this is the application that is served."""
        return self._application is application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Have the application that is shown answer a request."""
        if environ["PATH_INFO"] == f"/{BLANK}":
            start_response("200 OK", [("Content-Type", "text/html")])
            return [b"<link rel=icon href=data:,>"]
        assert self._application
        return self._application(environ, start_response)


@cache
def stand() -> Stand:
    """The one address at which this process serves pages."""
    return Stand()


def begin(page: Page) -> None:
    """Leave the page of the test before, which would ask the next server, and forget its faults."""
    page.goto(stand().blank)
    stand().is_left_open = False
    WRONG.clear()


def forget(page: Page) -> None:
    """Let the browser remember nothing of a page: all are at one address."""
    if urlsplit(page.url).scheme == "http":
        page.evaluate("localStorage.clear()")


@cache
def _server_of_both(a: Trace, b: Trace) -> Flask:
    server: Flask = create_both_app((a, b)).server
    return server


@cache
def _server(trace: Trace) -> Flask:
    server: Flask = create_app(trace, check(trace)).server
    return server


def _watch(page: Page) -> None:
    """Note console errors, failed requests, and requests that leave this machine."""

    def note(wrong: bool, what: str) -> None:
        if wrong:
            WRONG.append(what)

    page.on("pageerror", lambda error: note(True, f"uncaught {error}"))
    page.on("console", lambda said: note(said.type in ("error", "warning"), said.text))
    # Who leaves a page, as the next test does, aborts what is still on its way.
    page.on("requestfailed", lambda sent: note(sent.failure != ABORTED, f"failed {sent.url}"))
    page.on("response", lambda answer: note(answer.status >= 400, f"{answer.status} {answer.url}"))
    page.on("request", lambda request: note(_leaves(request.url), f"left for {request.url}"))


def _leaves(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1"
