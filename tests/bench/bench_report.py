"""What a report costs: its size, and the time to write it and to open it in headless Chromium.

One is of a run of the reference engine laid end to end, with findings all over it; the other of a
profile's spans, too many to list, in which no rule finds anything.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from stepscope.analyzers.check.run import check
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.report.document import document
from stepscope.ingest.trace import Trace
from tests.app.web.in_browser.browser import ABSENT, chromium
from tests.bench.bench_web import spans_of
from tests.bench.long_runs import num_rows, of_rows, recorded

ROWS = 1_000_000


def measure(rows: int = ROWS) -> list[dict[str, Any]]:
    """Return a row for each trace: its events, the report's bytes, seconds to write and to open."""
    traces = {
        "fcfs-preemption": of_rows(recorded("fcfs-preemption", "before"), rows),
        "mix-admission": of_rows(recorded("mix-admission", "before"), rows),
        "profile": spans_of(rows),
    }
    with chromium() as browser:
        page = (
            None if browser is None else browser.new_page(viewport={"width": 1440, "height": 900})
        )
        return [_row(name, trace, page) for name, trace in traces.items()]


def _row(name: str, trace: Trace, page: Page | None) -> dict[str, Any]:
    began = time.perf_counter()
    result = check(trace)
    checked_s = time.perf_counter() - began
    made = document([LoadedTrace(trace, result)], lambda _what, _done, _total: None)
    written_s = time.perf_counter() - began - checked_s
    told = {
        "report of": name, "events": num_rows(trace), "findings": len(result.findings),
        "bytes": len(made.encode()), "check_s": checked_s, "write_s": written_s,
    }  # fmt: skip
    return {**told, "open_ms": ABSENT if page is None else _opened_ms(page, made)}


def _opened_ms(page: Page, made: str) -> float:
    """From asking for the file to the timeline that is drawn."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(made, encoding="utf-8")
        began = time.perf_counter()
        page.goto(file.as_uri())
        page.wait_for_selector("#page[aria-busy=false] #names .row")
        return 1000 * (time.perf_counter() - began)
