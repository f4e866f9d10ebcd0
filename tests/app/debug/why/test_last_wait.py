"""Where a request waited last, in traces that do not record its arrival or the step of an event."""

from __future__ import annotations

from stepscope.app.debug import Session
from stepscope.app.debug.why import why
from stepscope.app.debug.why.chain import Chain
from stepscope.app.debug.why.last_wait import last_wait
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event
from tests.looped import looped
from tests.traces import trace_of


def answer(trace: Trace, subject: str) -> Chain:
    session = Session(trace)
    return why(session, subject, last_wait(session, subject))


def test_a_request_without_an_arrival_is_where_it_ended() -> None:
    rows = [event("task 1", "admit", 10), event("task 1", "finish", 90), event("q", "admit", 95)]

    chain = answer(trace_of(lifecycle=rows), "task 1")

    assert chain.root.ends == "not waiting"
    assert "ended" in chain.links[0].says


def test_a_request_without_an_arrival_or_an_end_runs_at_the_end_of_the_trace() -> None:
    rows = [event("task 1", "admit", 10), event("q", "admit", 20), event("q", "finish", 95)]

    chain = answer(trace_of(lifecycle=rows), "task 1")

    assert chain.links[0].says.startswith("task 1 runs")
    assert chain.links[0].proof is not None
    assert chain.links[0].proof.ts_ns == 10


@looped("step", [None, 2])
def test_a_preemption_has_the_decision_just_before_it_whatever_step_its_row_names(
    step: int | None,
) -> None:
    decided = {
        "step": 2, "subject_kind": "request", "subject": "r", "verdict": "preempted",
        "resource": "kv-block", "reason": "no free block for q", "holder": "q",
    }  # fmt: skip
    named = {"step": step, "by_request": "q"}
    life = [
        event("r", "arrive", 1, seq=1), event("r", "admit", 2, seq=2),
        event("r", "preempt", 5, seq=5, **named), event("r", "resume", 6, seq=6),
        event("r", "preempt", 9, seq=9, **named), event("r", "resume", 10, seq=10),
    ]  # fmt: skip
    trace = trace_of(
        lifecycle=life,
        decisions=[{**decided, "ts_ns": at, "seq": at} for at in (4, 8)],
        steps=[{"step": at // 4 + 1, "kind": "decode", "ts_ns": at, "seq": at} for at in (3, 7)],
    )

    chain = answer(trace, "r")

    assert (chain.root.ends, chain.root.proof and chain.root.proof.seq) == ("policy", 8)
    assert "no free block for q" in chain.root.says


def test_a_request_that_runs_is_in_no_batch_only_where_batches_are_recorded() -> None:
    life = [event("r", "arrive", 5), event("r", "admit", 10), event("q", "arrive", 99)]
    row = {"step": 1, "ts_ns": 20, "request": "q", "phase": "decode", "num_tokens": 1}
    steps = [{"step": 1, "kind": "decode", "ts_ns": 20, "dur_ns": 9}]

    with_rows = trace_of(lifecycle=life, steps=steps, batch_rows=[row])
    without = trace_of(lifecycle=life, steps=steps)

    def says(trace: Trace) -> str:
        session = Session(trace)
        return why(session, "r", session.moments.position(90)).links[0].says

    assert says(with_rows) == "r runs, and is in no batch"
    assert says(without) == "r runs, and no batch is recorded"


def test_without_events_a_request_waits_until_its_first_batch_and_runs_in_those_after() -> None:
    steps = [
        {"step": n, "kind": "decode", "ts_ns": 10 * n, "dur_ns": 9, "kv_blocks_free": 6,
         "kv_blocks_total": 8}
        for n in range(1, 9)
    ]  # fmt: skip
    rows = [
        {"step": n, "ts_ns": 10 * n, "request": "q", "phase": "decode", "num_tokens": 1}
        for n in range(4, 7)
    ]
    left_out = {
        "step": 2, "ts_ns": 20, "subject": "q", "subject_kind": "request", "verdict": "deferred",
        "resource": "kv-block", "needed": 3, "available": 2, "reason": "too few KV blocks",
    }  # fmt: skip
    session = Session(trace_of(steps=steps, batch_rows=rows, decisions=[left_out]))

    def says(step: int) -> str:
        return why(session, "q", session.moments.at_step(step - 1)).links[0].says

    assert last_wait(session, "q").step == 3
    assert says(3).startswith("q is deferred: too few KV blocks")
    assert says(5) == "q runs in step 5"
    assert says(8) == "q was in the batch of step 6 last"
