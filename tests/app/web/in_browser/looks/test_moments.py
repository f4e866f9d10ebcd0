"""What takes no time is seen on the page as well."""

from __future__ import annotations

import pytest

from stepscope.app.palette import MUTED
from tests.app.web.in_browser.hands import Open, colours_in
from tests.traces import trace_of

pytestmark = pytest.mark.web


def test_a_list_of_arrivals_shows_each_of_them(visit: Open) -> None:
    arrivals = [
        {"request": f"req-{at}", "event": "arrive", "ts_ns": at * 1_000_000} for at in range(5)
    ]
    page = visit(trace_of(lifecycle=arrivals)).go()

    for lane in range(5):
        assert MUTED in colours_in(page, lane)
