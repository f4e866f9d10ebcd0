"""Take pictures of both fronts over many traces, to be looked at. Needs Debian's chromium.

`python -m tests.docs.pictures.gallery FOLDER TRACE...` writes FOLDER/NAME-VIEW-SIZE-THEME.png of
the page at two widths, light and dark, and of the terminal at two sizes.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page
from werkzeug.serving import make_server

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.web.listen import Quiet
from stepscope.app.web.server import create_app
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace
from tests.app.tui.stage import press, settle
from tests.app.web.in_browser.browser import ABSENT, chromium

SIZES = ((1280, 800), (2560, 1440))
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
VIEWS = {"first": "?go=next-finding", "overview": "?tab=overview", "blame": "?tab=blame"}
TERMINALS = ((80, 24), (160, 48))
PAGES = {"overview": ("1",), "timeline": ("2", "n"), "step": ("4",)}
PATIENCE_MS = 120_000


def main() -> int:
    """Write the pictures; a trace that cannot be read is named, and the others are pictured."""
    folder, *traces = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        if browser is None:
            sys.stderr.write(f"{ABSENT}\n")
            return 2
        for path in traces:
            try:
                trace = Trace.open(path)
            except StepscopeError as error:
                sys.stderr.write(f"{error}\n")
                continue
            result = check(trace)
            name = path.name.split(".")[0]
            picture_page(browser, trace, result, folder / name)
            drawn = draw_terminal(trace, result)
            picture_terminal(browser, drawn, folder / name)
            sys.stderr.write(f"{name}\n")
    return 0


@contextmanager
def served(trace: Trace, result: CheckResult) -> Iterator[str]:
    """Serve the page of a trace, and give its address."""
    application = create_app(trace, result).server
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def picture_page(browser: Browser, trace: Trace, result: CheckResult, to: Path) -> None:
    """Every view at every width, light and dark."""
    with served(trace, result) as address:
        for theme in THEMES:
            page = browser.new_page(color_scheme=theme)
            page.set_default_timeout(PATIENCE_MS)
            for view, query in VIEWS.items():
                for width, height in SIZES:
                    page.set_viewport_size({"width": width, "height": height})
                    page.goto(address + query)
                    settled(page)
                    page.screenshot(path=f"{to}-{view}-{width}-{theme}.png")
            page.close()


def settled(page: Page) -> None:
    """Wait until all is there, and whatever moves has come to rest."""
    page.locator("#page[aria-busy=false]").wait_for()
    page.wait_for_timeout(400)


def draw_terminal(trace: Trace, result: CheckResult) -> dict[str, str]:
    """Each page at each size, as SVG."""

    async def drawn() -> dict[str, str]:
        found = {}
        for size in TERMINALS:
            app = StepscopeApp(trace, result)
            async with app.run_test(size=size) as pilot:
                await settle(pilot)
                for page, keys in PAGES.items():
                    await press(pilot, *keys)
                    found[f"{page}-{size[0]}x{size[1]}"] = app.export_screenshot(title=trace.name)
        return found

    # Playwright has a loop of its own in this thread.
    result_of: list[dict[str, str]] = []
    thread = threading.Thread(target=lambda: result_of.append(asyncio.run(drawn())))
    thread.start()
    thread.join()
    return result_of[0]


def picture_terminal(browser: Browser, drawn: dict[str, str], to: Path) -> None:
    """Photograph what the terminal drew."""
    page = browser.new_page()
    for name, svg in drawn.items():
        file = Path(f"{to}-tui-{name}.svg")
        file.write_text(svg, encoding="utf-8")
        page.goto(file.resolve().as_uri())
        page.locator("svg").first.screenshot(path=f"{to}-tui-{name}.png")
        file.unlink()
    page.close()


if __name__ == "__main__":
    sys.exit(main())
