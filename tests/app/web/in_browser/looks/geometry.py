"""Where text stands on a page: what lies over other text, and what is cut without saying so."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from playwright.sync_api import Page

MUDDLED = Path(__file__).with_name("muddled.js").read_text("utf-8")


Ground = Literal["dark", "light"]
GROUNDS: tuple[Ground, Ground] = ("dark", "light")


def grounds_at(number: int, num_grounds: int) -> tuple[Ground, ...]:
    """The grounds on which a tab is looked at, in an order in which few have to be changed."""
    return GROUNDS[:: -1 if number % 2 else 1][:num_grounds]


def muddled(page: Page) -> list[str]:
    """What cannot be read: texts that overlap, and texts that are cut without an ellipsis."""
    found: list[str] = page.evaluate(MUDDLED)
    return found
