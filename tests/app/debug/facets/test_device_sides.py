"""What a device holds at any instant: cores with blocks that never began, rings, ready tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.app.debug import Session
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.facets import FACETS
from stepscope.app.debug.facets.look import Look
from stepscope.app.debug.why import why
from stepscope.engine.device.rings import Rings
from stepscope.engine.executors import clusters
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.trace import Trace
from tests.app.debug.test_state import Truth
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SMALL = {"steps": "1", "requests": "3"}


def record(out: Path, observer: Any, fault: str = "", **settings: str) -> Trace:
    options = Options(
        settings={**SMALL, **settings}, faults=frozenset({fault} - {""}), observer=observer
    )
    scenario("mix-admission").record("after", out, options)
    return Trace.open(out)


def side(debugger: Debugger, name: str, ts_ns: int) -> pl.DataFrame | None:
    debugger.session.goto(ts_ns=ts_ns)
    return {facet.name: facet for facet in FACETS}[name].at(Look.of(debugger))


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Truth]:
    truth = Truth()
    out = tmp_path_factory.mktemp("runs") / "run.trace"
    settings = {"steps": "2", "requests": "12", "late_part": "hangs"}
    return record(out, truth, "late-part-hangs", **settings), truth


@slow
def test_a_device_that_hangs_is_at_every_instant_what_it_held(
    hanging: tuple[Trace, Truth],
) -> None:
    trace, truth = hanging
    session = Session(trace)

    for snapshot in truth.snapshots:
        session.goto(ts_ns=snapshot["ts_ns"])
        assert session.state.as_dict() == snapshot


def test_a_block_that_never_began_is_told_and_holds_its_slot_to_the_end(
    hanging: tuple[Trace, Truth],
) -> None:
    trace, truth = hanging
    waits = trace.core_waits.collect()
    session = Session(trace)
    session.goto(ts_ns=truth.snapshots[-1]["ts_ns"])

    assert len(waits) > 0
    cores = session.state.cores or {}
    assert {(row["task"], row["block"]) for row in waits.iter_rows(named=True)} <= {
        block for slots in cores.values() for block in slots.blocks
    }
    core = waits["core"][0]
    assert why(session, f"core {core}").lines()


@slow
@looped("fault", ["", "lost-ring-advance"])
def test_what_is_held_of_each_ring_is_what_the_runtime_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    made: list[Rings] = []
    held: dict[int, tuple[int, int, int]] = {}

    def rings(*args: Any, **kwargs: Any) -> Rings:
        made.append(Rings(*args, **kwargs))
        return made[-1]

    def observer(snapshot: dict[str, Any]) -> None:
        if made:
            each = made[-1]
            held[snapshot["ts_ns"]] = (each.slots.held, each.heap.held, each.entries.held)

    monkeypatch.setattr(clusters, "Rings", rings)
    trace = record(tmp_path / "run.trace", observer, fault, task_slots="64")
    debugger = Debugger(trace)

    assert max(slots for slots, *_ in held.values()) > 32
    # As a batch is formed the rings of the step before it are still there.
    formed = set(trace.steps.collect()["ts_ns"])
    for ts_ns in [each for each in held if each not in formed][::71]:
        shown = side(debugger, "rings", ts_ns)
        assert shown is not None
        assert tuple(shown["held"]) == held[ts_ns]
        assert shown["size"].to_list() == [64, 262144 << 10, 16384]


def test_rings_of_a_trace_that_does_not_tell_what_tasks_hold_are_unknown() -> None:
    task = {"step": 1, "task": 1, "shape": "AIC", "num_blocks": 1, "ts_ns": 10}

    assert side(Debugger(trace_of(tasks=[task])), "rings", 10) is None


def test_a_thread_prepares_what_it_took_cores_for_until_that_is_dispatched() -> None:
    span = {"step": 1, "task": 1, "block": 0, "shape": "AIC", "group": 0, "core": 0, "thread": 2}
    times = {"dispatch_ns": 140, "ts_ns": 160, "end_ns": 170}
    told = Debugger(trace_of(core_spans=[{**span, **times, "claim_ns": 120}]))
    untold = Debugger(trace_of(core_spans=[{**span, **times}]))

    def preparing(debugger: Debugger, ts_ns: int) -> list[Any]:
        shown = side(debugger, "threads", ts_ns)
        assert shown is not None
        return shown.select("thread", "num_preparing").rows()

    # A session stops at nothing before the first time at which anything changed.
    debugger = told
    look = Look.of(debugger)
    at_130 = Look(debugger, look.position._replace(ts_ns=130), look.state)
    threads = {facet.name: facet for facet in FACETS}["threads"].at(at_130)
    assert threads is not None
    assert threads.select("thread", "num_preparing").rows() == [(2, 1)]
    assert preparing(told, 160) == [(2, 0)]
    assert preparing(untold, 160) == [(2, None)]


def turned() -> Debugger:
    """Two MIX, of which the first was put back behind the other, while a thread sleeps."""
    task = {"step": 1, "shape": "MIX", "num_blocks": 2, "ts_ns": 5, "ready_ns": 10, "queue": "MIX"}
    return Debugger(
        trace_of(
            tasks=[{**task, "task": number, "queued_ns": 10} for number in (1, 2)],
            ready_order=[
                {"step": 1, "ts_ns": 20, "queue": "MIX", "index": at, "task": number}
                for at, number in enumerate((2, 1))
            ],
            thread_phases=[
                {"step": 1, "ts_ns": 5, "thread": None, "phase": "exit"},
                {"step": 1, "ts_ns": 20, "thread": 0, "phase": "sleep"},
            ],
            core_spans=[
                {"step": 1, "task": 9, "block": 0, "shape": "AIC", "group": 0, "core": 0,
                 "thread": 0, "dispatch_ns": 1, "claim_ns": 0, "ts_ns": 2, "end_ns": 30}
            ],
        )
    )  # fmt: skip


def test_ready_queues_threads_and_the_orchestrator_are_told_in_full() -> None:
    debugger = turned()
    queues, ready, threads, orchestrator = (
        side(debugger, name, 20) for name in ("queues", "ready", "threads", "orchestrator")
    )

    assert queues is not None
    assert queues.rows() == [("MIX", 2, "2 1")]
    assert ready is not None
    assert ready.select("queue", "place", "task", "left", "waits_ns").rows() == [
        ("MIX", 0, 2, 2, 10), ("MIX", 1, 1, 2, 10),
    ]  # fmt: skip
    assert threads is not None
    start_ns = debugger.bounds_ns[0]
    assert threads.select("thread", "phase", "since_ns").rows() == [(0, "sleep", 20 - start_ns)]
    assert orchestrator is not None
    assert orchestrator.rows() == [("exit", 5 - start_ns)]


def test_queues_and_phases_of_an_older_trace_are_unknown_and_not_empty() -> None:
    task = {"step": 1, "task": 1, "shape": "AIC", "num_blocks": 1, "ts_ns": 5, "ready_ns": 10}
    span = {"step": 1, "task": 2, "block": 0, "shape": "AIC", "group": 0, "core": 0, "thread": 2}
    older = Debugger(trace_of(tasks=[task], core_spans=[{**span, "ts_ns": 10, "end_ns": 30}]))
    ready, threads = side(older, "ready", 10), side(older, "threads", 10)

    assert side(older, "queues", 10) is None
    assert side(older, "orchestrator", 10) is None
    assert ready is not None
    assert ready.select("queue", "place", "task").rows() == [(None, None, 1)]
    assert threads is not None
    assert threads.select("thread", "phase", "since_ns").rows() == [(2, None, None)]
