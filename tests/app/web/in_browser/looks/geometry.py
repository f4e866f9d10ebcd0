"""Where text stands on a page: what lies over other text, and what is cut without saying so."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

MUDDLED = Path(__file__).with_name("muddled.js").read_text("utf-8")


def muddled(page: Page) -> list[str]:
    """What cannot be read: texts that overlap, and texts that are cut without an ellipsis."""
    found: list[str] = page.evaluate(MUDDLED)
    return found
