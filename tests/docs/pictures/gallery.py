"""Take pictures of both fronts over many traces, to be looked at. Needs Debian's chromium.

`python -m tests.docs.pictures.gallery FOLDER TRACE...` writes FOLDER/NAME-VIEW-WIDTH-THEME.png of
the page at two widths and of the terminal at three sizes, light and dark, and sheets of several
that show the same of different traces. What a page wrote to its console is printed.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, ConsoleMessage, Page

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.app.tui import theme as terminal_theme
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.web.listen import Bounded, bind
from stepscope.app.web.server import create_app
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace
from tests.app.tui.stage import press, settle
from tests.app.web.in_browser.browser import ABSENT, chromium

SIZES = ((1280, 800), (2560, 1440))
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
VIEWS = {
    "first": "?go=next-finding",
    "overview": "?tab=overview",
    "blame": "?tab=blame",
    "step": "?tab=step",
    "request": "?tab=request",
    "area": "?tab=area",
}
TERMINALS = ((80, 24), (150, 42), (300, 84))
"""Cells; as drawn, the last two are about as wide as the page at its two widths."""
PAGES = {
    "overview": ("1",),
    "timeline": ("2", "n"),
    "step": ("4",),
    "blame": ("5",),
    "request": ("6",),
    "area": ("7",),
}
GROUNDS = {"dark": terminal_theme.DARK, "light": terminal_theme.LIGHT}
PATIENCE_MS = 120_000
SHEET = (2, 2)
"""Pictures on a sheet, beside and below each other."""
SHEET_WIDTH = 2400
STYLE = f"""<style>
    body {{ margin: 0; display: grid; grid-template-columns: repeat({SHEET[0]}, 1fr); gap: 8px; }}
    figure {{ margin: 0; font: 14px sans-serif; }}
    img {{ width: 100%; }}
</style>"""


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
            picture_terminal(browser, draw_terminal(trace, result), folder / name)
            sys.stderr.write(f"{name}\n")
        lay_on_sheets(browser, folder)
    return 0


@contextmanager
def served(trace: Trace, result: CheckResult) -> Iterator[str]:
    """Serve the page of a trace, and give its address."""
    application = create_app(trace, result).server
    with bind("127.0.0.1", 0) as listener:
        server = Bounded("127.0.0.1", 0, application, listener)
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
            page.on("console", tell)
            for view, query in VIEWS.items():
                for width, height in SIZES:
                    page.set_viewport_size({"width": width, "height": height})
                    page.goto(address + query)
                    settled(page)
                    page.screenshot(path=f"{to}-{view}-{width}-{theme}.png")
            page.close()


def tell(said: ConsoleMessage) -> None:
    """Print what a page wrote to its console."""
    sys.stderr.write(f"{said.page and said.page.url}: {said.text}\n")


def settled(page: Page) -> None:
    """Wait until all is there, and whatever moves has come to rest."""
    page.locator("#page[aria-busy=false]").wait_for()
    page.wait_for_timeout(400)


def draw_terminal(trace: Trace, result: CheckResult) -> dict[str, str]:
    """Each page at each size, dark and light, as SVG."""

    async def drawn() -> dict[str, str]:
        found = {}
        for size in TERMINALS:
            app = StepscopeApp(trace, result)
            async with app.run_test(size=size) as pilot:
                await settle(pilot)
                for page, keys in PAGES.items():
                    await press(pilot, *keys)
                    for theme in THEMES:
                        app.theme = GROUNDS[theme]
                        await settle(pilot)
                        name = f"{page}-{size[0]}x{size[1]}-{theme}"
                        found[name] = app.export_screenshot(title=trace.name)
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


def lay_on_sheets(browser: Browser, folder: Path) -> None:
    """Lay pictures that show the same of different traces on sheets: FOLDER/sheets/VIEW-K.png."""
    (folder / "sheets").mkdir(exist_ok=True)
    views: dict[str, list[Path]] = {}
    for picture in sorted(folder.glob("*.png")):
        views.setdefault("-".join(picture.stem.rsplit("-", 3)[1:]), []).append(picture)
    beside, below = SHEET
    page = browser.new_page(viewport={"width": SHEET_WIDTH, "height": 100})
    for view, pictures in views.items():
        for first in range(0, len(pictures), beside * below):
            cells = "".join(
                f"<figure>{escape(path.name)}<img src='../{escape(path.name)}'></figure>"
                for path in pictures[first : first + beside * below]
            )
            sheet = folder / "sheets" / f"{view}-{first // (beside * below) + 1}.html"
            sheet.write_text(STYLE + cells, encoding="utf-8")
            page.goto(sheet.resolve().as_uri(), wait_until="load")
            page.screenshot(path=sheet.with_suffix(".png"), full_page=True)
            sheet.unlink()
    page.close()


if __name__ == "__main__":
    sys.exit(main())
