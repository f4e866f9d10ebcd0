"""Both fronts call steps batches only where the trace says what these computed."""

from __future__ import annotations

import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.tui.plot.lane_painter import section_legend
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.wire import notes
from tests.traces import trace_of


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("decode", "batches"),
        ("mixed", "batches, mixed ones split by tokens"),
        ("unknown", "a span for each step"),
    ],
)
def test_steps_are_batches_where_it_is_told_what_they_computed(kind: str, words: str) -> None:
    step = {"step": 1, "ts_ns": 0, "dur_ns": 9, "kind": kind}
    tokens = {"num_prefill_tokens": 8, "num_decode_tokens": 1} if kind == "mixed" else {}
    trace = trace_of(steps=[{**step, **tokens}])
    loaded = LoadedTrace(trace, check(trace))

    assert notes(loaded)["steps"] == words
    assert section_legend("steps", loaded.timeline)[0] == words


def test_a_budget_is_told_beside_them() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 9, "kind": "decode", "token_budget": 8192}]
    )

    told = notes(LoadedTrace(trace, check(trace)))["steps"]

    assert told == "batches, against a budget of 8,192 tokens"
