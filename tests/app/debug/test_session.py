"""A session moves through a trace and says what it knows there, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.debug import BatchEntry, CoreSlots, Session
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.tiers import slow
from tests.traces import trace_of


def a_trace() -> Trace:
    """Two steps; `b` waits through the first and is admitted in the second."""
    event = {"step": 1, "request": "a"}
    row = {"phase": "decode", "num_tokens": 1}
    return trace_of(
        steps=[
            {"step": 1, "ts_ns": 10, "dur_ns": 20, "kind": "decode"},
            {"step": 2, "ts_ns": 30, "dur_ns": 20, "kind": "decode"},
        ],
        lifecycle=[
            {**event, "ts_ns": 5, "event": "arrive", "queue_index": 0},
            {**event, "ts_ns": 6, "event": "arrive", "queue_index": 1, "request": "b"},
            {**event, "ts_ns": 10, "event": "admit"},
            {**event, "ts_ns": 20, "event": "arrive", "queue_index": 0, "request": "c"},
            {**event, "ts_ns": 30, "event": "admit", "step": 2, "request": "b"},
        ],
        batch_rows=[
            {**row, "step": 2, "ts_ns": 30, "row": 1, "request": "b"},
            {**row, "step": 2, "ts_ns": 30, "row": 0, "request": "a"},
            {**row, "step": 1, "ts_ns": 10, "row": 0, "request": "a"},
        ],
        decisions=[
            {
                "step": 1, "ts_ns": 10, "subject_kind": "request", "subject": "b",
                "verdict": "deferred", "reason": "too few blocks", "resource": "kv-block",
                "needed": 3, "available": 1, "holder": "a", "instead": "a",
            },
        ],
    )  # fmt: skip


def where(session: Session) -> tuple[int, int | None]:
    return session.position.ts_ns, session.position.step


def test_a_session_begins_at_the_first_step() -> None:
    session = Session(a_trace())

    assert where(session) == (10, 1)
    assert session.state.batch == (BatchEntry("a", "decode", 1),)
    assert (session.state.waiting, session.state.running) == (("b",), ("a",))


def test_next_and_back_go_step_by_step_and_stop_at_the_ends() -> None:
    session = Session(a_trace())

    moved = [session.next(), session.next(), session.back(), session.back()]

    assert moved == [True, False, True, False]
    assert where(session) == (10, 1)


def test_events_lie_between_steps_and_a_step_back_goes_to_where_the_step_began() -> None:
    session = Session(a_trace())

    session.next("event")
    inside = where(session)
    session.back()

    assert inside == (20, 1)
    assert where(session) == (10, 1)


def test_before_the_first_step_there_is_no_step() -> None:
    session = Session(a_trace())

    session.goto(ts_ns=6)

    assert where(session) == (6, None)
    assert session.state.waiting == ("a", "b")
    assert session.state.batch == ()
    assert session.next()
    assert where(session) == (10, 1)


def test_a_time_outside_the_trace_goes_to_its_nearest_end() -> None:
    session = Session(a_trace())

    assert session.goto(ts_ns=-(10**30))
    assert where(session) == (5, None)
    assert session.goto(ts_ns=10**30)
    assert session.position.step == 2
    assert not session.goto(ts_ns=10**30)


def test_wrong_places_are_refused_and_the_session_stays_where_it_is() -> None:
    session = Session(a_trace())

    with pytest.raises(ConfigError, match="has no step 9; it has steps 1 to 2"):
        session.goto(step=9)
    with pytest.raises(ConfigError, match="a step, a seq or a time"):
        session.goto()
    with pytest.raises(ConfigError, match="no grain is called 'token'"):
        session.next("token")
    assert where(session) == (10, 1)


def test_what_a_trace_does_not_record_is_not_in_the_state() -> None:
    state = Session(a_trace()).state

    assert state.as_dict() == {
        "ts_ns": 10,
        "step": 1,
        "waiting": ["b"],
        "running": ["a"],
        "batch": [["a", "decode", 1]],
    }


def test_an_empty_trace_has_a_session_that_goes_nowhere() -> None:
    session = Session(trace_of())

    assert session.state.as_dict() == {"ts_ns": 0, "step": None}
    assert not session.next()
    assert not session.back("event")
    assert not session.goto(ts_ns=5)
    assert session.left_out() == []
    assert session.detail().tables() == ()
    with pytest.raises(ConfigError, match="it has no steps"):
        session.goto(step=0)


def test_the_first_and_last_moments_of_an_int64_can_be_visited() -> None:
    events = [
        {"ts_ns": ts_ns, "request": "a", "event": event}
        for ts_ns, event in ((-(2**63), "arrive"), (2**63 - 1, "finish"))
    ]
    session = Session(trace_of(lifecycle=events))

    assert session.state.waiting == ("a",)
    assert session.detail().before.waiting == ("a",)
    assert session.goto(ts_ns=2**70)
    assert session.state.as_dict()["waiting"] == []


def test_each_rank_has_a_session_of_its_own() -> None:
    step = {"step": 1, "kind": "decode", "dur_ns": 5}
    trace = trace_of(steps=[{**step, "rank": 3, "ts_ns": 7}, {**step, "rank": 5, "ts_ns": 9}])

    assert where(Session(trace)) == (7, 1)
    assert where(Session(trace, rank=5)) == (9, 1)


def test_a_step_without_a_row_in_steps_is_known_by_its_batch() -> None:
    row = {"step": 4, "ts_ns": 12, "request": "a", "phase": "prefill", "num_tokens": 9}

    session = Session(trace_of(batch_rows=[row]))

    assert where(session) == (12, 4)


def test_a_core_holds_a_block_from_its_dispatch_and_a_queued_one_until_it_begins() -> None:
    span = {"block": 0, "shape": "AIC", "group": 0, "core": 0}
    trace = trace_of(
        core_spans=[
            {**span, "task": 1, "slot": "running", "dispatch_ns": 10, "ts_ns": 12, "end_ns": 20},
            {**span, "task": 2, "slot": "pending", "dispatch_ns": 15, "ts_ns": 20, "end_ns": 30},
            {**span, "task": 3, "core": 1, "ts_ns": 40, "end_ns": None},
        ]
    )
    session = Session(trace)

    seen = {}
    for ts_ns in (10, 15, 20, 30, 40):
        session.goto(ts_ns=ts_ns)
        seen[ts_ns] = session.state.cores

    idle = CoreSlots()
    assert seen == {
        10: {0: CoreSlots((1, 0), state="held"), 1: idle},
        15: {0: CoreSlots((1, 0), (2, 0), "running"), 1: idle},
        20: {0: CoreSlots((2, 0), state="running"), 1: idle},
        30: {0: idle, 1: idle},
        40: {0: idle, 1: CoreSlots((3, 0), state="running")},
    }


@slow
def test_a_real_profile_has_steps_to_walk_and_invents_no_queue(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz")
    session = Session(trace)

    num_steps = 1
    while session.next():
        num_steps += 1

    assert num_steps == 133
    assert session.state.as_dict().keys() == {"ts_ns", "step"}
    header = {row[0]: row[1] for row in session.detail().tables()[0].rows}
    assert header["kind"] == "decode"
    assert "inferred" in header


def header_of(**step: object) -> dict[str, str]:
    row = {"step": 7, "ts_ns": 1_000_005_000, "dur_ns": 5, "kind": "prefill", **step}
    earliest = {"ts_ns": 1_000_000_000, "request": "a", "event": "arrive"}
    session = Session(trace_of(steps=[row], lifecycle=[earliest]))
    return {str(row[0]): str(row[1]) for row in session.detail().tables()[0].rows}


def test_a_step_began_at_a_time_since_the_trace_did() -> None:
    assert header_of()["began"] == "0.005 ms"


def test_tokens_and_requests_of_which_nothing_is_told_are_not_none() -> None:
    told = header_of(num_prefill_tokens=9, num_decode_reqs=2, token_budget=64)

    assert told["tokens"] == "9 prefill, decode unknown, budget 64"
    assert told["requests"] == "2 decode, prefill unknown"
