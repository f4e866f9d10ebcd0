"""Take the pictures of docs/gallery.md again: `make gallery`. Needs Debian's chromium.

    python -m tests.docs.gallery                   # the pictures of the page
    python -m tests.docs.gallery slot-recycling    # those of one scenario
    python -m tests.docs.gallery --every FOLDER    # all views of all of them, as PNG, to look at

The scenarios are recorded first, with the commands that stand on the page. `make docs` calls
`write_reports` for the self-contained pages that the site links to.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser, Page, ViewportSize

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.app.tui.app import StepscopeApp
from stepscope.ingest.trace import Trace
from tests.app.tui.stage import press, settle
from tests.app.web.in_browser.browser import ABSENT, chromium
from tests.conftest import ROOT
from tests.docs.pictures.gallery import served, settled

Variant = Literal["before", "after"]
View = Literal["whole", "finding"]

IMAGES = ROOT / "docs" / "images" / "gallery"
RECORDINGS = ROOT / "out" / "gallery"
WINDOW: ViewportSize = {"width": 1440, "height": 900}
TERMINAL = (150, 42)
TERMINAL_PX = 1200
"""Width of the picture of a terminal: eight pixels a cell, in which text can be read."""
PATIENCE_MS = 120_000
VARIANTS: tuple[Variant, ...] = ("before", "after")
VIEWS: tuple[View, ...] = ("whole", "finding")
FRONT_ENDS = ("page", "terminal")
AS_WEBP = """async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 1).split(",")[1];
}"""
"""With quality 1 the encoder is lossless, and takes half of what PNG does."""


class Picture(NamedTuple):
    """What is photographed of a scenario, in both front ends."""

    variant: Variant
    view: View

    def file(self, scenario: str, front_end: str) -> str:
        """Return the name of the picture in docs/images/gallery."""
        return f"{scenario}-{self.variant}-{front_end}.webp"


@dataclass(frozen=True, slots=True)
class Report:
    """A public report: its number in docs/seeds.md, its scenario, and what is photographed."""

    number: str
    scenario: str
    settings: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = (Picture("before", "finding"),)

    def record(self, variant: Variant) -> list[str]:
        """Return the arguments of `stepscope` that record a variant in the current folder."""
        settings = (argument for each in self.settings for argument in ("--set", each))
        return ["record", self.scenario, "--variant", variant, *settings, "-o", f"{variant}.trace"]

    @property
    def write_page(self) -> list[str]:
        """The arguments that write the self-contained page of both variants."""
        return ["report", *(f"{each}.trace" for each in VARIANTS), "-o", f"{self.scenario}.html"]

    @property
    def commands(self) -> list[list[str]]:
        """All arguments of `stepscope` by which a reader gets what the gallery shows."""
        return [*map(self.record, VARIANTS), self.write_page]


REPORTS = (
    Report("000", "mix-admission"),
    Report(
        "001",
        "mixed-batches",
        pictures=(Picture("before", "whole"), Picture("after", "whole")),
    ),
    Report("002", "slot-recycling"),
    Report(
        "003",
        "ep-multiplexing",
        ("long_tokens=600", "max_tokens=40", "client_timeout_s=10"),
    ),
    Report(
        "004",
        "fcfs-preemption",
        ("prompt_len=512", "block_size=16", "num_kv_blocks=624"),
    ),
)
BY_SCENARIO = {report.scenario: report for report in REPORTS}


def main(arguments: Sequence[str]) -> int:
    """Write the pictures of some scenarios, of all where none is named."""
    every = Path(arguments[1]) if arguments[:1] == ["--every"] else None
    names = arguments[2:] if every else arguments
    if unknown := [name for name in names if name not in BY_SCENARIO]:
        sys.stderr.write(f"no such scenario: {', '.join(unknown)}; {', '.join(BY_SCENARIO)}\n")
        return 2
    reports = [BY_SCENARIO[name] for name in names] or REPORTS
    with chromium() as browser:
        if browser is None:
            sys.stderr.write(f"{ABSENT}\n")
            return 2
        for report in reports:
            folder = record(report, RECORDINGS)
            if every:
                take_every_view(browser, report, folder, every)
            else:
                take(browser, report, folder, IMAGES)
            sys.stderr.write(f"{report.scenario}\n")
    return 0


def record(report: Report, parent: Path) -> Path:
    """Record both variants of a report anew, and return the folder that they are in."""
    folder = parent / report.scenario
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for variant in VARIANTS:
        run(report.record(variant), folder)
    return folder


def write_reports(parent: Path, reports: Iterable[Report] = REPORTS) -> list[Path]:
    """Record reports and write their self-contained pages; return these."""
    pages = []
    for report in reports:
        folder = record(report, parent)
        run(report.write_page, folder)
        pages.append(folder / f"{report.scenario}.html")
    return pages


def run(arguments: Sequence[str], folder: Path) -> None:
    """Run `stepscope` in a folder; what it prints is shown only where it fails."""
    command = [sys.executable, "-m", "stepscope.app", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"stepscope {' '.join(arguments)}\n{done.stdout}{done.stderr}")


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────


def take(browser: Browser, report: Report, folder: Path, to: Path) -> None:
    """Write the pictures that the gallery shows of a report."""
    to.mkdir(parents=True, exist_ok=True)
    for variant in VARIANTS:
        views = [each.view for each in report.pictures if each.variant == variant]
        for view, front_end, png in photographs(browser, folder / f"{variant}.trace", views):
            name = Picture(variant, view).file(report.scenario, front_end)
            (to / name).write_bytes(as_webp(browser, png))


def take_every_view(browser: Browser, report: Report, folder: Path, to: Path) -> None:
    """Write REPORT-VARIANT-FRONT-VIEW.png of both front ends, at the whole run and at a finding."""
    to.mkdir(parents=True, exist_ok=True)
    for variant in VARIANTS:
        for view, front_end, png in photographs(browser, folder / f"{variant}.trace", VIEWS):
            (to / f"{report.number}-{variant}-{front_end}-{view}.png").write_bytes(png)


def photographs(
    browser: Browser, path: Path, views: Sequence[View]
) -> Iterator[tuple[View, str, bytes]]:
    """Yield view, front end and PNG of each view of a trace."""
    if not views:
        return
    trace = Trace.open(path)
    result = check(trace)
    drawings = draw_terminal(trace, result)
    with served(trace, result) as address:
        page = browser.new_page(viewport=WINDOW, color_scheme="dark")
        page.set_default_timeout(PATIENCE_MS)
        for view in views:
            page.goto(address + ("?go=next-finding" if view == "finding" else ""))
            settled(page)
            yield view, "page", page.screenshot()
            yield view, "terminal", picture_of(page, drawings[view])
        page.close()


def draw_terminal(trace: Trace, result: CheckResult) -> dict[View, str]:
    """Return the timeline page of the terminal in each view, as SVG."""

    async def drawn() -> dict[View, str]:
        app = StepscopeApp(trace, result)
        async with app.run_test(size=TERMINAL) as pilot:
            await settle(pilot)
            await press(pilot, "2")
            whole = app.export_screenshot(title=trace.name)
            await press(pilot, "n")
            return {"whole": whole, "finding": app.export_screenshot(title=trace.name)}

    # Playwright has a loop of its own in this thread.
    drawings: list[dict[View, str]] = []
    thread = threading.Thread(target=lambda: drawings.append(asyncio.run(drawn())))
    thread.start()
    thread.join()
    return drawings[0]


def picture_of(page: Page, svg: str) -> bytes:
    """Return a picture of an SVG that is as wide as a terminal is to be, as PNG."""
    style = f"<style>body {{ margin: 0 }} svg {{ display: block; width: {TERMINAL_PX}px }}</style>"
    page.set_content(style + svg)
    png = page.locator("svg").first.screenshot()
    assert isinstance(png, bytes)
    return png


def as_webp(browser: Browser, png: bytes) -> bytes:
    """Return a PNG as lossless WebP."""
    page = browser.new_page()
    encoded = page.evaluate(AS_WEBP, f"data:image/png;base64,{base64.b64encode(png).decode()}")
    page.close()
    return base64.b64decode(encoded)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
