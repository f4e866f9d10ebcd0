from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from stepscope.engine.config import EngineConfig
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.workloads.workload import RequestSpec
from tests.engine.drawn_requests import knobs, requests, sizes
from tests.engine.rows import Row, Rows
from tests.engine.small_engines import serve
from tests.engine.state_of_rows import state_at
from tests.tiers import examples

Snapshot = dict[str, Any]
TURNS = {"arrive", "admit", "resume", "preempt"}


@given(requests, knobs, sizes)
@settings(max_examples=examples(60))
def test_the_rows_alone_tell_the_state_at_every_step(
    specs: list[RequestSpec], scheduler: Bucketed, config: EngineConfig
) -> None:
    held: list[Snapshot] = []
    _, rows = serve(specs, scheduler, config, observer=held.append)
    has_slots = config.num_slots > 0
    assert [state_at(rows, snapshot["step"], has_slots=has_slots) for snapshot in held] == held


@given(requests, knobs, sizes)
@settings(max_examples=examples(60))
def test_a_decision_since_its_turn_began_explains_every_request_left_out_of_a_step(
    specs: list[RequestSpec], scheduler: Bucketed, config: EngineConfig
) -> None:
    held: list[Snapshot] = []
    _, rows = serve(specs, scheduler, config, observer=held.append)
    for snapshot in held:
        for request in _left_out(snapshot):
            told = _told(rows, request, snapshot["ts_ns"])
            assert told, f"{request} in {snapshot}"
            assert told[-1]["verdict"] in {"deferred", "preempted"}


@given(requests, knobs, sizes)
@settings(max_examples=examples(30))
def test_rows_of_a_table_are_in_order_of_time(
    specs: list[RequestSpec], scheduler: Bucketed, config: EngineConfig
) -> None:
    _, rows = serve(specs, scheduler, config)
    for table in rows.tables.values():
        times = [row["ts_ns"] for row in table]
        assert times == sorted(times)


def _told(rows: Rows, request: str, ts_ns: int) -> list[Row]:
    """Return the decisions since the request began to wait, or to run."""
    turns = [row["ts_ns"] for row in rows.of("lifecycle", request=request) if row["event"] in TURNS]
    began_ns = max(turn for turn in turns if turn <= ts_ns)
    about = rows.of("decisions", subject=request)
    return [row for row in about if began_ns <= row["ts_ns"] <= ts_ns]


def _left_out(snapshot: Snapshot) -> list[str]:
    scheduled = {request for request, _, _ in snapshot["batch"]}
    return [each for each in snapshot["waiting"] + snapshot["running"] if each not in scheduled]
