"""Many tabs, a browser that is killed, and who has no token, in a real browser."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from playwright.sync_api import Error as BrowserError

from stepscope.app.palette import MIX, STATES
from stepscope.app.web import listen
from stepscope.app.web.safety.access import Access, guard
from stepscope.app.web.safety.link import link_to
from stepscope.app.web.server import create_app
from tests.app.web.in_browser.browser import FLAGS, NAMES
from tests.app.web.in_browser.conftest import PATIENCE_MS, Visit
from tests.app.web.in_browser.hands import Open, press
from tests.app.web.small_traces import SCRIPT, conflict_trace, loaded_of
from tests.tiers import slow

pytestmark = pytest.mark.web
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser's window that knows of no cookie."""
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def guarded() -> Callable[[Access], str]:
    """Serve a page as other machines reach it; the address without a token."""

    def serve(access: Access) -> str:
        trace = conflict_trace()
        server = create_app(trace, loaded_of(trace).result).server
        guard(server, access)
        listener = listen.bind("127.0.0.1", 0)
        serving = (listener, server, "127.0.0.1")
        threading.Thread(target=listen.until_stopped, args=serving, daemon=True).start()
        return listen.address("127.0.0.1", listener.getsockname()[1])

    return serve


def is_there(page: Page) -> None:
    expect(page.locator("#page")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#position")).to_contain_text("middle")


@slow
def test_ten_tabs_are_all_drawn(visit: Open, context: BrowserContext) -> None:
    url = visit(conflict_trace()).url
    tabs = [context.new_page() for _ in range(10)]
    for tab in tabs:
        tab.goto(f"{url}?finding=COR001.1", wait_until="commit")

    for tab in tabs:
        is_there(tab)
        expect(tab.locator("#about")).to_contain_text("COR001")


@slow
def test_a_browser_that_is_killed_keeps_nobody_else_waiting(
    visit: Open, chromium: Browser, context: BrowserContext
) -> None:
    url = visit(conflict_trace()).url
    path = next(filter(None, map(shutil.which, NAMES)))
    other = chromium.browser_type.launch(executable_path=path, args=list(FLAGS), headless=True)
    other.new_page().goto(url, wait_until="commit")
    with pytest.raises(BrowserError):
        other.new_browser_cdp_session().send("Browser.crash")
    page = context.new_page()
    page.goto(url)

    is_there(page)


def test_with_the_token_the_page_opens_and_the_address_does_not_hold_it(
    guarded: Callable[[Access], str], context: BrowserContext
) -> None:
    access = Access.to("10.0.0.7")
    url = guarded(access)
    page = context.new_page()
    refused = page.goto(url)
    assert refused
    assert refused.status == 403

    page.goto(url + access.query("?tab=sql"))
    is_there(page)
    assert "token" not in page.url
    assert "tab=sql" in page.url
    assert page.evaluate("() => document.cookie") == ""
    [cookie] = context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
    another = context.new_page()
    another.goto(url)
    is_there(another)


def test_a_file_on_the_disk_leads_to_the_page_though_its_cookie_is_strict(
    guarded: Callable[[Access], str], context: BrowserContext
) -> None:
    access = Access.to("127.0.0.1")
    page = context.new_page()
    with link_to(guarded(access) + access.query("?tab=sql")) as link:
        page.goto(link)
        page.wait_for_url("**/?tab=sql*")
        is_there(page)

    assert "token" not in page.url


def test_p_and_a_button_save_the_view_as_a_picture(visit: Open) -> None:
    opened: Visit = visit(conflict_trace(trace="a/b: small"))
    page = opened.go()
    for way in ("P", "button"):
        with page.expect_download() as download:
            if way == "P":
                press(opened, way)
            else:
                page.locator("#save").click()
        assert download.value.suggested_filename == "a-b-small.png"
        assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")


def test_the_view_is_saved_as_svg_with_text_that_is_text(visit: Open) -> None:
    opened: Visit = visit(conflict_trace(trace="a/b: small", request=SCRIPT))
    page = opened.go()
    with page.expect_download() as download:
        page.locator("#save-svg").click()

    assert download.value.suggested_filename == "a-b-small.svg"
    drawn = Path(download.value.path()).read_text("utf-8")
    root = fromstring(drawn)  # noqa: S314 - the page has drawn it
    texts = ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]
    assert any(text.startswith("<b>bold") for text in texts)
    assert "core groups" in texts
    assert not [*root.iter(f"{SVG}script"), *root.iter(f"{SVG}foreignObject")]
    fills = {each.get("fill", "").upper() for each in root.iter(f"{SVG}path")}
    assert STATES[MIX].colour in fills
