"""The load of traces that tell of requests alone, against a count by hand."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.app import palette
from stepscope.app.timeline import Timeline
from tests.traces import trace_of


def told(request: str, event: str, ts_ns: int) -> dict[str, Any]:
    return {"request": request, "event": event, "ts_ns": ts_ns}


def test_the_load_of_a_list_of_arrivals_is_how_many_arrived() -> None:
    times = (0, 10, 11, 12, 55, 99)

    load = Timeline.of(
        trace_of(lifecycle=[told(f"r{at}", "arrive", ts) for at, ts in enumerate(times)])
    ).load(10)

    assert (load.what, load.states) == ("arrivals", (palette.WAITING,))
    assert (load.shares[0] * 3).round().tolist() == [1, 3, 0, 0, 0, 1, 0, 0, 0, 1]


def test_the_load_of_requests_without_steps_is_how_many_there_are_in_each_state() -> None:
    rows = [
        told("a", "arrive", 0), told("a", "admit", 50_000), told("a", "finish", 100_000),
        told("b", "arrive", 25_000), told("b", "admit", 50_000), told("b", "finish", 75_000),
    ]  # fmt: skip

    load = Timeline.of(trace_of(lifecycle=rows)).load(4)

    assert load.what == "requests"
    waiting = load.shares[load.states.index(palette.WAITING)]
    assert waiting.tolist() == pytest.approx([0.5, 1, 0, 0], abs=1e-3)
    assert load.shares.sum(axis=0).tolist() == pytest.approx([0.5, 1, 1, 0.5], abs=1e-3)
