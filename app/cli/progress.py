"""Progress on stderr: drawn where a person looks, silent where a program reads."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stepscope.app.printable import plain

# Faster than this nobody wants to see a bar come and go.
QUIET_S = 0.4
REDRAW_S = 0.1

Report = Callable[[str, int, int | None], None]


@contextmanager
def progress(clock: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Yield a function (what, done, total or None) that keeps one line of stderr up to date."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    began = drawn = clock()

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal drawn
        now = clock()
        if now - began < QUIET_S or now - drawn < REDRAW_S:
            return
        drawn = now
        sys.stderr.write(f"\r\x1b[K{_line(what, done, total)}")
        sys.stderr.flush()

    try:
        yield report
    finally:
        if drawn != began:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _line(what: str, done: int, total: int | None) -> str:
    if not total:
        return f"{plain(what)}  {done:,}"
    filled = min(20, 20 * done // total)
    return f"{plain(what)}  {'━' * filled}{'╌' * (20 - filled)}  {100 * done // total}%"
