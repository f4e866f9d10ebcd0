"""A headless Chromium that reaches nothing but this machine, wherever the system keeps one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
ABSENT = "chromium is not installed; it is Debian's package of that name"


@contextmanager
def chromium() -> Iterator[Browser | None]:
    """Yield a browser with an empty profile, or None where none is installed."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), headless=True)
        yield browser
        browser.close()
