"""Tasks that wait for cores, and ranks that wait for one another."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.app.debug import Session
from stepscope.app.debug.why import Chain, why
from stepscope.app.debug.why.last_wait import last_wait
from stepscope.engine.faults import FAULTS
from stepscope.engine.scenarios import Options
from stepscope.ingest.errors import ConfigError
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.traces import trace_of

COLLECTIVE = {
    "op": "all-reduce", "group": "ep", "expected_ranks": "0,1", "stream": "comm", "ordinal": 0,
}  # fmt: skip


def recorded(runs: RecordedOnce, name: str, fault: str | None = None) -> Session:
    known = [each for each in FAULTS if each.name == fault]
    options = Options(faults=frozenset(each.name for each in known))
    return Session(runs.trace(name, known[0].variant if known else "before", options))


def test_a_mix_that_landed_on_busy_vector_cores_was_admitted_without_a_look_at_them(
    recorded_once: RecordedOnce,
) -> None:
    session = recorded(recorded_once, "mix-admission")

    chain = why(session, "task 1154", last_wait(session, "task 1154"))

    assert chain.root.ends == "policy"
    assert "AIVs not consulted: task" in chain.root.says


WAITING = [
    {"step": 1, "ts_ns": 0, "task": number, "name": f"cube {number}", "shape": "AIC",
     "num_blocks": 1, "ready_ns": 0}
    for number in range(4)
]  # fmt: skip
RUNS = {"step": 1, "shape": "AIC", "group": 0, "core": 0, "core_kind": "AIC", "block": 0}
DECIDED = {"step": 1, "subject_kind": "task", "verdict": "deferred", "thread": 0}


def asked_of_queue(subject: str) -> Chain:
    """Task 0 runs, task 1 is first in the queue, as the row of 2 says; 3 was told of 0 then."""
    spans = [
        {**RUNS, "task": 0, "ts_ns": 10, "dispatch_ns": 5, "end_ns": 90},
        *({**RUNS, "task": n, "ts_ns": n * 100, "dispatch_ns": n * 100, "end_ns": n * 100 + 90}
          for n in (1, 2, 3)),
    ]  # fmt: skip
    of_core = {"resource": "core", "needed": 1, "available": 0, "core": 0, "reason": "none is free"}
    of_queue = {"resource": "queue", "reason": "waits behind the first"}
    decisions = [
        {**DECIDED, **of_core, "ts_ns": 20, "subject": "1", "holder": "0"},
        {**DECIDED, **of_queue, "ts_ns": 20, "subject": "2", "holder": "1"},
        {**DECIDED, **of_queue, "ts_ns": 20, "subject": "3", "holder": "0"},
    ]
    session = Session(trace_of(tasks=WAITING, core_spans=spans, decisions=decisions))
    return why(session, subject, session.moments.position(50)._replace(ts_ns=50))


def test_a_task_on_single_cores_waits_for_the_recorded_reason_and_ends_with_who_runs() -> None:
    chain = asked_of_queue("task 2")

    assert [link.resource for link in chain.links[:2]] == ["queue", "core"]
    assert "waits behind the first" in chain.links[0].says
    assert [str(link.subject) for link in chain.links] == ["task 2", "task 1", "task 0"]
    assert all(link.proof and link.proof.table == "decisions" for link in chain.links[:2])
    assert (chain.root.ends, str(chain.root.subject)) == ("running until", "task 0")


def test_who_was_first_and_has_all_its_cores_is_not_blamed_but_who_is_first_now() -> None:
    link = asked_of_queue("task 3").links[0]

    assert (str(link.holder), link.recorded_holder) == ("task 1", "task 0")


@looped("shape", ["AIC", "AIV"])
def test_whoever_waits_long_on_a_recorded_run_has_a_recorded_reason(
    recorded_once: RecordedOnce, shape: str
) -> None:
    session = recorded(recorded_once, "mix-admission")
    first = session.trace.core_spans.group_by("task").agg(pl.col("dispatch_ns").min())
    waits = session.trace.tasks.filter(pl.col("shape") == shape).join(first, on="task").filter(
        pl.col("dispatch_ns") > pl.col("ready_ns") + 5_000
    )  # fmt: skip
    rows = waits.sort("task").collect().gather_every(40).to_dicts()

    assert len(rows) > 5
    for row in rows:
        chain = why(
            session, f"task {row['task']}", session.moments.position(row["dispatch_ns"] - 1)
        )
        shown = chain.links[0].proof
        assert shown is not None
        assert (shown.table, chain.links[0].resource in {"core", "queue"}) == ("decisions", True)
        assert chain.links[0].site is not None


def test_a_task_behind_one_that_never_ends_is_told_so(recorded_once: RecordedOnce) -> None:
    session = recorded(recorded_once, "mix-admission", "late-part-hangs")

    chain = why(session, "task 1154", last_wait(session, "task 1154"))

    assert chain.root.ends == "silent"
    assert chain.root.says.endswith("never ended")
    assert chain.root.subject == chain.links[-1].subject


def test_ranks_that_wait_in_different_collectives_wait_for_one_another(
    recorded_once: RecordedOnce,
) -> None:
    session = recorded(recorded_once, "ep-multiplexing", "preambles-up-front")

    chain = why(session, "rank 0", last_wait(session, "rank 0"))

    assert chain.root.ends == "wait cycle"
    assert chain.root.says == "rank 0 waits for rank 1, rank 1 waits for rank 0"
    assert "broadcast slot" in chain.links[0].says
    assert "all-reduce decode" in chain.links[1].says


def two_ranks(joins: int | None) -> Chain:
    own = {**COLLECTIVE, "step": 1, "rank": 0, "ts_ns": 10, "dur_ns": 90}
    other = [{**COLLECTIVE, "step": 1, "rank": 1, "ts_ns": joins, "dur_ns": 5}] if joins else []
    steps = [{"step": 1, "rank": 0, "ts_ns": 0, "dur_ns": 100, "kind": "decode"}]
    session = Session(trace_of(steps=steps, collectives=[own, *other], ranks=(0, 1)), 0)
    return why(session, "rank 0", session.moments.position(50)._replace(ts_ns=50))


@looped(("joins", "says"), [(95, "comes only at"), (None, "never joins")])
def test_a_rank_waits_for_the_one_that_comes_late_or_never(joins: int | None, says: str) -> None:
    root = two_ranks(joins).root

    assert (root.ends, str(root.subject)) == ("another rank", "rank 1")
    assert says in root.says


def test_a_rank_in_a_collective_of_no_named_group_waits_for_others_in_such_ones() -> None:
    alike = {**COLLECTIVE, "group": None, "expected_ranks": None, "step": 1}
    rows = [
        {**alike, "rank": 0, "ts_ns": 10, "dur_ns": 90},
        {**alike, "rank": 1, "ts_ns": 95, "dur_ns": 5},
    ]
    steps = [{"step": 1, "rank": 0, "ts_ns": 0, "dur_ns": 100, "kind": "decode"}]
    session = Session(trace_of(steps=steps, collectives=rows, ranks=(0, 1)), 0)

    root = why(session, "rank 0", session.moments.position(50)._replace(ts_ns=50)).root

    assert (root.ends, str(root.subject)) == ("another rank", "rank 1")


def test_who_is_not_there_is_told_with_who_is() -> None:
    trace = trace_of(steps=[{"step": 1, "ts_ns": 0, "dur_ns": 9, "kind": "idle"}])

    with pytest.raises(ConfigError, match="no rank 7"):
        why(Session(trace), "rank 7")
    with pytest.raises(ConfigError, match="no request 'nobody'"):
        why(Session(trace), "nobody")


def a_dummy_for(rank: int | None) -> Session:
    """A rank that decodes nothing in its second step, as another one runs a prompt."""
    steps = [
        {"step": 1, "ts_ns": 10, "kind": "prefill"},
        {"step": 2, "ts_ns": 20, "kind": "dummy", "by_rank": rank},
    ]
    held = {"subject_kind": "request", "subject": "a", "verdict": "deferred", "resource": "phase",
            "instead": "prefill"}  # fmt: skip
    let_in = {"step": 1, "ts_ns": 9, "request": "a", "event": "admit"}
    session = Session(
        trace_of(steps=steps, lifecycle=[let_in], decisions=[{"step": 2, "ts_ns": 20, **held}])
    )
    session.goto(step=2)
    return session


@looped(("rank", "ends"), [(1, "another rank"), (None, "policy")])
def test_who_waits_for_a_step_of_another_rank_is_kept_by_that_rank_where_it_is_told(
    rank: int | None, ends: str
) -> None:
    root = why(a_dummy_for(rank), "a").root

    assert root.ends == ends
    assert ("rank 1 runs prefill" in root.says) == (rank is not None)
