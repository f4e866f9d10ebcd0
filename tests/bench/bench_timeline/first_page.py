"""From `stepscope web FILE` to lanes in a browser that is open: what somebody waits who opens it.

`python -m tests.bench.bench_timeline.first_page FILE` prints it as JSON: seconds until the server
says its address, until lanes are painted, until all of the page is there with its charts, and until
the rules have run. Nothing is cached, neither of the file nor by the browser.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import Page

from tests.app.web.in_browser.browser import ABSENT, chromium

PATIENCE_MS = 300_000
READY = {
    "lanes_s": "() => document.getElementById('position')?.textContent",
    "page_s": "() => document.getElementById('page').ariaBusy === 'false'",
    "checked_s": "() => !/…|^$/.test(document.getElementById('count-findings').textContent)",
}
"""What is there when each of the times has come, in their order."""
SERVE = "from stepscope.app.cli import main; main()"


def measure_page(path: str) -> dict[str, float]:
    """Seconds from the start of the server."""
    with chromium() as browser, tempfile.TemporaryDirectory() as cache:
        if browser is None:
            sys.exit(ABSENT)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-u", "-c", SERVE, "web", path, "--port", "0"],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "STEPSCOPE_CACHE": cache},
        ) as server:  # fmt: skip
            try:
                assert server.stdout is not None
                told = next((line for line in server.stdout if "http://" in line), "")
                address_s = time.perf_counter() - began
                return {"address_s": address_s, **_seen(page, told, began)}
            finally:
                server.terminate()


def _seen(page: Page, told: str, began: float) -> dict[str, float]:
    if not told:
        sys.exit("the server did not say its address")
    page.goto(told[told.index("http://") :].split(maxsplit=1)[0], wait_until="commit")
    seen = {}
    for name, ready in READY.items():
        page.wait_for_function(ready, timeout=PATIENCE_MS)
        seen[name] = time.perf_counter() - began
    return seen


if __name__ == "__main__":
    print(json.dumps(measure_page(sys.argv[1])))
