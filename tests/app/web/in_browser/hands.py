"""What a test does to a page and sees on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page

from stepscope.ingest.trace import Trace
from tests.app.web.in_browser.conftest import Visit
from tests.app.web.small_traces import conflict_trace
from tests.conftest import ROOT

Open = Callable[[Trace], Visit]
OpenBoth = Callable[[Trace, Trace], Visit]
SMALL = conflict_trace()


@cache
def sample(name: str) -> Trace:
    """A sample trace, opened once, so that it is checked and served once for all tests."""
    return Trace.open(ROOT / "sample_traces" / name)


def address(page: Page) -> dict[str, str]:
    return {name: texts[-1] for name, texts in parse_qs(urlsplit(page.url).query).items()}


def view(page: Page) -> dict[str, Any]:
    shown: dict[str, Any] = page.evaluate(
        "async () => ({...(await import('/assets/stage.js')).state()})"
    )
    return shown


def rows(page: Page) -> list[tuple[str, str, list[int]]]:
    """The rows below the pinned ones: what each is, its name and its lanes."""
    found = page.evaluate(
        "async () => (await import('/assets/stage.js')).rows()"
        ".map((row) => [row.kind, row.group, row.lanes])"
    )
    return [(kind, group, lanes) for kind, group, lanes in found]


def shown_range(page: Page) -> tuple[float, float]:
    state = view(page)
    return state["t0"], state["t1"]


def press(visit: Visit, keys: str) -> None:
    for key in keys.split():
        visit.page.keyboard.press(key)
        visit.settle()


def colours_in(page: Page, lane: int) -> list[str]:
    """Colours that are painted in a lane's row, the most frequent first."""
    return colours_beside(page, page.locator(f'#names [data-lane="{lane}"]').first)


def colours_beside(page: Page, name: Locator) -> list[str]:
    """Colours that are painted in the row that has this name, the most frequent first."""
    found: list[str] = page.evaluate(COLOURS, name.element_handle())
    return found


COLOURS = """(name) => {
  const row = name.getBoundingClientRect();
  const canvas = document.getElementById("canvas");
  const top = row.top - canvas.getBoundingClientRect().top;
  const copy = new OffscreenCanvas(canvas.width, row.height - 8);
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, -top - 4);
  const pixels = pen.getImageData(0, 0, copy.width, copy.height).data;
  const seen = new Map();
  for (let i = 0; i < pixels.length; i += 4) {
    const hex = "#" + [0, 1, 2].map((k) => pixels[i + k].toString(16).padStart(2, "0")).join("");
    seen.set(hex.toUpperCase(), (seen.get(hex.toUpperCase()) || 0) + 1);
  }
  return [...seen].sort((a, b) => b[1] - a[1]).map(([hex]) => hex);
}"""
