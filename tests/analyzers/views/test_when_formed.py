"""When a batch was formed: what says it best is believed."""

from __future__ import annotations

import pytest

from stepscope.analyzers.views.batches import when_formed
from tests.analyzers.rows import Row, decision
from tests.looped import looped
from tests.traces import trace_of

ROW = {"step": 2, "ts_ns": 15, "request": "r", "phase": "decode", "num_tokens": 1}
TOLD = decision("request", "q", "deferred", 13, step=2)
CASES = [
    pytest.param({"formed_ns": 12}, [ROW], [TOLD], 12, id="the step says it"),
    pytest.param({}, [ROW], [TOLD], 15, id="its rows do"),
    pytest.param({}, [], [TOLD], 13, id="what was decided does"),
    pytest.param({}, [], [], 20, id="nothing does"),
]


@looped(("more", "rows", "decisions", "formed_ns"), CASES)
def test_what_says_best_when_a_batch_was_formed_is_believed(
    more: Row, rows: list[Row], decisions: list[Row], formed_ns: int
) -> None:
    steps = [{"step": 2, "ts_ns": 20, "dur_ns": 5, "kind": "decode", **more}]
    trace = trace_of(steps=steps, batch_rows=rows, decisions=decisions)

    assert when_formed(trace).collect().rows() == [(0, 2, formed_ns)]
