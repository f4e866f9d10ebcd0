"""What rows add up to is what steps counted; what a rank does not tell is no empty state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepscope.app.debug import Session
from stepscope.app.debug.verifying.told_by_steps import Mismatch
from stepscope.ingest.errors import TraceError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SMALL_BYTES = 30 << 20
SAMPLES = sorted((ROOT / "sample_traces").glob("*.trace"))
KNOWN = ("waiting", "running", "batch", "slots", "kv_blocks", "cores")


def ranks(trace: Trace) -> list[int]:
    return trace.steps.select("rank").unique().collect()["rank"].sort().to_list()


def known(session: Session) -> list[str]:
    return [name for name in KNOWN if getattr(session.state, name) is not None]


@slow
@looped("path", SAMPLES, ids=lambda path: str(path.name))
def test_the_state_at_every_step_of_a_sample_is_what_the_step_counted(path: Path) -> None:
    trace = Trace.open(path)

    assert [Session(trace, rank).verify() for rank in ranks(trace)] == [[] for _ in ranks(trace)]


@slow
def test_the_state_at_every_step_of_a_real_log_is_what_the_step_counted(shared_data: Path) -> None:
    held = 0
    for path in sorted((shared_data / "logs").iterdir()):
        if not path.is_file() or path.stat().st_size > SMALL_BYTES:
            continue
        try:
            trace = Trace.open(path, cached=False)
        except TraceError:
            continue
        for rank in ranks(trace):
            held += 1
            assert Session(trace, rank).verify() == [], path.name

    assert held > 0


def test_a_step_that_counts_otherwise_is_named_with_both_numbers() -> None:
    trace = trace_of(
        steps=[
            {"step": 4, "ts_ns": 10, "kind": "decode", "num_waiting": 2, "num_running": 0,
             "kv_blocks_free": 7, "kv_blocks_total": 8},
        ],
        lifecycle=[{"step": 4, "ts_ns": 9, "request": "a", "event": "arrive", "queue_index": 0}],
        allocations=[{"step": 4, "ts_ns": 9, "resource": "kv-block", "id": 1, "op": "claim",
                      "owner": "a"}],
    )  # fmt: skip

    assert Session(trace).verify() == [Mismatch(4, "num_waiting", 2, 1)]


def test_a_rank_that_tells_nothing_of_its_requests_has_no_empty_queues() -> None:
    step = {"step": 1, "ts_ns": 5, "kind": "decode", "num_decode_reqs": 2, "num_prefill_reqs": 0}
    trace = trace_of(
        steps=[{**step, "rank": 0}, {**step, "rank": 1}],
        lifecycle=[{"step": 1, "ts_ns": 4, "request": "a", "event": "admit"}],
        batch_rows=[{"step": 1, "ts_ns": 5, "request": "a", "phase": "decode", "num_tokens": 1}],
        core_spans=[{"step": 1, "ts_ns": 5, "task": 1, "block": 0, "shape": "AIC", "group": 0,
                     "core": 0}],
    )  # fmt: skip

    assert known(Session(trace, 0)) == ["waiting", "running", "batch", "cores"]
    assert known(Session(trace, 1)) == []


def test_events_that_name_no_request_tell_of_no_queue() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 5, "kind": "decode", "num_waiting": 9, "num_running": 67}],
        lifecycle=[{"step": 1, "ts_ns": 4, "request": None, "event": "preempt"}],
    )

    assert known(Session(trace)) == []
    assert Session(trace).verify() == []


def test_a_rank_whose_steps_say_that_nobody_waits_or_runs_has_empty_queues() -> None:
    idle = {"step": 1, "ts_ns": 5, "kind": "idle", "num_waiting": 0, "num_running": 0}

    assert Session(trace_of(steps=[idle])).state.waiting == ()


def slots_after(*rows: dict[str, Any]) -> dict[int, str] | None:
    allocations = [
        {"step": 1, "ts_ns": place, "resource": "slot", "owner": "a", **row}
        for place, row in enumerate(rows)
    ]
    session = Session(trace_of(allocations=allocations))
    session.goto(ts_ns=len(rows))
    slots = session.state.slots
    return None if slots is None else dict(slots)


@looped("told", [{"source": 5}, {}], ids=["told", "not told"])
def test_who_was_moved_has_its_new_slot_and_no_longer_the_old_one(told: dict[str, Any]) -> None:
    claimed = {"id": 5, "op": "claim"}
    moved = {"id": 2, "op": "move", **told}

    assert slots_after(claimed, moved) == {2: "a"}
    assert slots_after(claimed, moved, {"id": 2, "op": "release"}) == {}
    assert slots_after(claimed, moved, {"id": 5, "op": "claim", "owner": "b"}) == {2: "a", 5: "b"}


def test_a_batch_that_the_recording_was_cut_off_in_is_being_formed_and_no_step(
    tmp_path: Path,
) -> None:
    rec = Recorder(tmp_path / "run.trace", producer="test")
    begin, complete = rec.in_two("steps", ("step", "ts_ns", "kind"), ("dur_ns",))
    for step in (1, 2, 3):
        rec.batch_rows(step, 10 * step, 0, "a", "decode", None, 1)
        if step < 3:
            complete(begin(step, 10 * step, "decode"), 10)

    session = Session(Trace.open(tmp_path / "run.trace"))
    rec.close()

    assert session.moments.steps == [1, 2]
    session.goto(step=2)
    assert session.next("seq")
    assert session.state.forming is not None
    assert session.state.forming.step == 3
    assert [entry.request for entry in session.state.forming.batch] == ["a"]
    assert session.state.step == 2


def test_of_steps_with_one_time_each_has_a_state_of_its_own() -> None:
    event = {"ts_ns": 10, "event": "admit"}
    trace = trace_of(
        steps=[{"step": step, "ts_ns": 10, "dur_ns": 0, "kind": "decode"} for step in (1, 2)],
        lifecycle=[{**event, "step": 1, "request": "a"}, {**event, "step": 2, "request": "b"}],
    )
    session = Session(trace)

    told = [session.state.running]
    for move in (session.next, session.back):
        assert move()
        told.append(session.state.running)

    assert told == [("a",), ("a", "b"), ("a",)]
