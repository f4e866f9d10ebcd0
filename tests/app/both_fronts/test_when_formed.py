"""Both fronts stand at a step when its batch was formed, as the step says, else as its rows do."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.app.debug.moments import Moments
from stepscope.app.timeline.composition import Composition
from tests.traces import trace_of

ROW = {"step": 2, "ts_ns": 15, "request": "r", "phase": "decode", "num_tokens": 1}
CASES = [
    pytest.param({"formed_ns": 12}, [ROW], 12, id="the step says it"),
    pytest.param({}, [ROW], 15, id="its rows do"),
    pytest.param({}, [], 20, id="nothing does"),
]


@pytest.mark.parametrize(("more", "rows", "formed_ns"), CASES)
def test_a_step_is_stood_at_when_its_batch_was_formed(
    more: dict[str, Any], rows: list[dict[str, Any]], formed_ns: int
) -> None:
    step = {"step": 2, "ts_ns": 20, "dur_ns": 5, "kind": "decode", **more}
    trace = trace_of(steps=[step], batch_rows=rows)

    assert Moments(trace, 0).step_ns.tolist() == [formed_ns]
    assert Composition.of(trace).formed_ns.tolist() == [formed_ns]
