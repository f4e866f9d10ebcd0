"""Take the README's pictures again: `make screenshots`. Needs Debian's chromium.

Both show the same moment of the same trace: the first conflict of `mix-admission`, as the key `n`
brings it up.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Page

from stepscope.analyzers.check.run import check
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.web.listen import Bounded, bind
from stepscope.app.web.server import create_app
from stepscope.ingest.trace import Trace
from tests.app.web.in_browser.browser import ABSENT, chromium
from tests.conftest import ROOT

IMAGES = ROOT / "docs" / "images"
TRACE = ROOT / "sample_traces" / "mix-admission-before.trace"


def main() -> int:
    """Write docs/images/web.png and docs/images/tui.png."""
    IMAGES.mkdir(exist_ok=True)
    trace = Trace.open(TRACE)
    terminal = asyncio.run(terminal_svg(trace))
    with chromium() as browser:
        if browser is None:
            sys.stderr.write(f"{ABSENT}\n")
            return 2
        page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="dark")
        shoot_web(page, trace)
        shoot_terminal(page, terminal)
    return 0


async def terminal_svg(trace: Trace) -> str:
    """Draw the TUI at 160 x 48 with the first finding open."""
    app = StepscopeApp(trace, check(trace))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause(1)
        await pilot.press("2", "n")
        await pilot.pause(1)
        return app.export_screenshot(title="stepscope tui")


def shoot_web(page: Page, trace: Trace) -> None:
    """Photograph the page with the first finding open."""
    page_of_trace = create_app(trace, check(trace)).server
    server = Bounded("127.0.0.1", 0, page_of_trace, bind("127.0.0.1", 0))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        page.goto(f"http://127.0.0.1:{server.port}/", wait_until="networkidle")
        page.wait_for_timeout(2000)
        page.keyboard.press("n")
        page.wait_for_timeout(2000)
        page.screenshot(path=IMAGES / "web.png")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def shoot_terminal(page: Page, svg: str) -> None:
    """Photograph the terminal's drawing."""
    with tempfile.TemporaryDirectory() as folder:
        drawing = Path(folder) / "tui.svg"
        drawing.write_text(svg, encoding="utf-8")
        page.goto(drawing.as_uri())
        page.locator("svg").first.screenshot(path=IMAGES / "tui.png")


if __name__ == "__main__":
    sys.exit(main())
