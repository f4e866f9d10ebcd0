"""How often a request was left out for want of KV blocks, as the engine counts it itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.facets import FACETS
from stepscope.app.debug.facets.look import Look
from stepscope.engine.runs.rerun import run_to_its_end
from stepscope.engine.scenarios import Options, scenario
from stepscope.engine.state import State
from stepscope.ingest.trace import Trace
from tests.app.debug.facets.test_sides import rows
from tests.app.debug.test_state import Truth
from tests.tiers import sampled, slow
from tests.traces import trace_of

FACET = next(facet for facet in FACETS if facet.name == "requests")
RUNS: list[tuple[str, str, dict[str, str]]] = [
    ("fcfs-preemption", "before", {}),
    ("fcfs-preemption", "after", {}),
    ("fcfs-preemption", "after", {"requests": "24", "num_kv_blocks": "40", "patience": "2"}),
    ("waiting-queue", "after", {"max_passes": "2"}),
]


@slow
@pytest.mark.parametrize("run", sampled(RUNS, RUNS[2:]), ids=str)
def test_deferrals_at_every_step_are_those_that_the_engine_counts(
    run: tuple[str, str, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, variant, settings = run
    snapshot = State.snapshot

    def with_deferrals(state: State, ts_ns: int) -> dict[str, Any]:
        here = [*state.waiting, *state.running]
        counts = {request.id: request.num_deferrals for request in here}
        return {**snapshot(state, ts_ns), "deferrals": counts}

    monkeypatch.setattr(State, "snapshot", with_deferrals)
    truth, out = Truth(), tmp_path / "run.trace"
    options = Options(settings=settings, observer=truth)
    run_to_its_end(scenario(name), variant, out, options)
    debugger = Debugger(Trace.open(out))
    most = 0

    for held in truth.of_steps():
        debugger.session.goto(step=held["step"])
        shown = FACET.at(Look.of(debugger))
        assert shown is not None
        assert dict(shown.select("request", "num_deferrals").iter_rows()) == held["deferrals"]
        most = max(most, *held["deferrals"].values())
    assert most > 1


def lacking(**decided: Any) -> Trace:
    """One that waits through three steps, at 100, 200 and 300, and what was decided about it."""
    row = {"request": "b", "phase": "decode", "num_tokens": 1}
    return trace_of(
        steps=[{"step": step, "ts_ns": 100 * step, "kind": "decode"} for step in (1, 2, 3)],
        batch_rows=[{**row, "step": step, "ts_ns": 100 * step} for step in (1, 2, 3)],
        lifecycle=[{"request": "a", "event": "arrive", "ts_ns": 50}],
        **decided,
    )


def test_a_decision_that_is_not_told_again_stands_for_every_step_behind_it() -> None:
    deferred = {"subject_kind": "request", "subject": "a", "verdict": "deferred", "ts_ns": 99}
    trace = lacking(decisions=[{**deferred, "resource": "kv-block"}])

    counts = [rows(trace, "requests", step) or [] for step in ("1", "2", "3")]
    assert [[row["num_deferrals"] for row in each] for each in counts] == [[1], [2], [3]]


def test_who_lacks_something_else_was_not_deferred_for_kv_blocks() -> None:
    deferred = {"subject_kind": "request", "subject": "a", "verdict": "deferred", "ts_ns": 99}
    trace = lacking(decisions=[{**deferred, "resource": "seat"}])

    assert [row["num_deferrals"] for row in rows(trace, "requests", "3") or []] == [0]


def test_deferrals_are_unknown_where_no_decision_was_recorded() -> None:
    assert [row["num_deferrals"] for row in rows(lacking(), "requests", "3") or []] == [None]
