"""The root of a wait is the one that the description of the scenario or of the fault gives.

The roots below are written down by hand from `docs/engine.md` and `docs/reference/faults.md`; the
settings are those under which each shows itself soon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from stepscope.app.debug import Session, State
from stepscope.app.debug.why import Chain, Link, why
from stepscope.engine.scenarios import Options
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped

BURSTS = {
    "burst": "16", "gap_ms": "4000", "prompt_len": "64", "num_kv_blocks": "120", "block_size": "32",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A run, who waits in which of its steps, and how the chain has to end."""

    name: str
    of: str
    step: int
    subject: str
    ends: str
    says: str
    settings: Mapping[str, str] = field(default_factory=dict)


CASES = (
    # Buckets of one length run one after another: whoever is in another one waits or is thrown out.
    Case("before", "fcfs-preemption", 67, "req-29", "policy", "shortest goes first"),
    # Whose bucket is the shortest goes first, and not the oldest: with their blocks kept, all wait.
    Case("shortest-bucket", "fcfs-preemption", 75, "req-30", "policy", "shortest goes first",
         {**BURSTS, "completions": "bucketed"}),
    # Preempted for another bucket, with more blocks free than that needs.
    Case("bucket-preemption-with-free-blocks", "fcfs-preemption", 76, "req-16", "policy",
         "bucket", {**BURSTS, "completions": "bucketed"}),
    # Images are put back on the queue that is being drained.
    Case("incompatible-requeued-on-drained-queue", "fcfs-preemption", 2, "req-03", "policy",
         "bucket", {"images": "every-4", "requests": "8"}),
    # The last step began and was never told to have ended.
    Case("executor-dies", "fcfs-preemption", 5, "req-00", "silent", "not told to have ended"),
    # A slot is free again when its owner ends.
    Case("before", "slot-recycling", 2, "req-03", "running until", "req-00 runs until"),
    Case("before", "ep-multiplexing", 2, "req-03", "running until", "req-00 runs until"),
    # A freed slot stays idle until all others are free as well.
    Case("refill-when-drained", "slot-recycling", 12, "req-03", "policy", "with 1 slots free"),
    Case("one-slot-used", "slot-recycling", 1, "req-02", "policy", "with 2 slots free"),
    # Decodes run when no prompt can, and with a stream of prompts one always can.
    Case("prompts-always-first", "waiting-queue", 3, "req-00", "policy", "prefill goes first",
         {"workload": "stream", "requests": "40"}),
    # The last chunk counted as one request more, and the batch as full until somebody ends.
    Case("full-since-the-last-chunk", "waiting-queue", 10, "req-03", "policy", "3 of 4 are",
         {"workload": "four-prompts"}),
    # It is ready, and is looked at by steps that let somebody in alone.
    Case("ready-not-looked-at", "waiting-queue", 3, "json-00", "silent", "nobody looked at it",
         {"workload": "parked"}),
    # All that fit pass the one that lacks KV blocks.
    Case("passed-without-bound", "waiting-queue", 45, "heavy", "policy", "came after it",
         {"workload": "heavy-head"}),
    Case("half-the-pool-each", "waiting-queue", 100, "req-01", "wait cycle", "waits for",
         {"workload": "half-the-pool"}),
    Case("never-fits-and-waits", "waiting-queue", 18, "req-00", "policy", "2,288 in all",
         {"workload": "too-long", "timeout_s": "5"}),
    # Once anybody decodes all of the budget is kept for decodes.
    Case("reserve-for-max-num-seqs", "mixed-batches", 18, "req-02", "policy", "256 of the token",
         {"requests": "4", "max_tokens": "32"}),
    Case("prefill-eats-the-budget", "mixed-batches", 5, "req-04", "policy", "(prefill)",
         {"requests": "8", "max_tokens": "8"}),
    Case("before", "mixed-batches", 5, "req-04", "policy", "(prefill)",
         {"requests": "8", "max_tokens": "8"}),
    # Two have half of the pool each, and wait for the rest of it.
    Case("before", "waiting-queue", 100, "req-00", "wait cycle", "req-00 waits for req-01"),
    # The last block of each that finishes is never released.
    Case("block-leaked", "fcfs-preemption", 109, "req-35", "leak", "20 KV blocks were never"),
    # Once the head did not fit nobody looks again, whatever has become free.
    Case("batch-full-latched", "fcfs-preemption", 130, "req-21", "silent", "nothing was decided"),
    # All that run keep their blocks and wait for those of the others.
    Case("nobody-gives-way", "fcfs-preemption", 71, "req-17", "wait cycle", "waits for",
         {**BURSTS, "num_kv_blocks": "60"}),
    # Longer than the pool, and neither let in nor turned away.
    Case("too-long-is-held", "fcfs-preemption", 2, "req-01", "policy", "needs 7 KV blocks",
         {**BURSTS, "num_kv_blocks": "5", "prompt_len": "200", "requests": "6"}),
)  # fmt: skip


def asked(case: Case, runs: RecordedOnce) -> tuple[Session, Chain]:
    is_fault = case.name != "before"
    options = Options(settings=case.settings, faults=frozenset({case.name} if is_fault else ()))
    session = Session(runs.trace(case.of, "after" if is_fault else case.name, options))
    session.goto(step=case.step)
    return session, why(session, case.subject)


@looped("case", CASES, ids=lambda case: f"{case.of}-{case.name}")
def test_the_root_is_what_was_made_to_go_wrong_and_no_holder_is_stale(
    case: Case, recorded_once: RecordedOnce
) -> None:
    session, chain = asked(case, recorded_once)

    assert (chain.root.ends, case.says in chain.root.says) == (case.ends, True), chain.first_line
    assert all(link.proof is not None for link in chain.links)
    for link in chain.links:
        assert link.holder is None or holds(session.state, link), link


def test_blocks_that_came_back_after_a_step_had_looked_are_held_by_nobody(
    recorded_once: RecordedOnce,
) -> None:
    trace = recorded_once.trace("fcfs-preemption", "after")
    session = Session(trace)
    total = trace.steps.select(pl.col("kv_blocks_total").max()).collect().item()
    last = trace.lifecycle.select(pl.col("seq").max()).collect().item()
    came_back = 0
    for seq in range(1, last, 29):
        session.goto(seq=seq)
        for name in (session.state.waiting or ())[:4]:
            chain = why(session, name)
            link = chain.links[-1]
            if link.resource == "kv-block" and link.needed is not None:
                free = total - len(session.state.kv_blocks or {})
                is_there = free >= link.needed
                assert "are held by" not in chain.root.says or not is_there, chain.first_line
                assert "came back after" not in chain.root.says or is_there, chain.first_line
                came_back += "came back after" in chain.root.says

    assert came_back > 4


def holds(state: State, link: Link) -> bool:
    """Whether the holder of a link really has some of what is short, in the state."""
    assert link.holder is not None
    name = link.holder.name
    if link.resource == "queue":
        waiting = state.waiting or ()
        return name in waiting[: waiting.index(link.subject.name)]
    if link.resource in {"bucket", "phase", "token-budget"}:
        return name in {entry.request for entry in state.batch or ()}
    held = {"kv-block": state.kv_blocks, "slot": state.slots}.get(link.resource or "")
    return name in (set((held or {}).values()) if held is not None else set(state.running or ()))


def test_where_the_decisions_were_removed_nothing_is_blamed(recorded_once: RecordedOnce) -> None:
    trace = recorded_once.trace("fcfs-preemption", "before", Options(settings={"requests": "32"}))
    kept = {name: trace.table(name).collect() for name in ("steps", "batch_rows", "lifecycle")}
    kept["allocations"] = trace.table("allocations").collect()
    kept["decisions"] = trace.decisions.filter(pl.col("subject") != "req-30").collect()
    session = Session(Trace.from_tables(kept, trace.manifest, name="cut"))
    session.goto(step=40)

    assert why(Session(trace), "req-30", session.position).root.ends != "not recorded"
    assert why(session, "req-30").root.ends == "not recorded"


def test_who_holds_blocks_is_not_said_where_a_release_may_be_missing(
    recorded_once: RecordedOnce,
) -> None:
    trace = recorded_once.trace("fcfs-preemption", "before", Options(settings={"requests": "32"}))
    kept = {name: trace.table(name).collect() for name in ("steps", "lifecycle", "decisions")}
    kept["allocations"] = trace.allocations.filter(pl.col("step") > 1).collect()
    session = Session(Trace.from_tables(kept, trace.manifest, name="torn"))
    session.goto(step=40)

    chain = why(session, "req-30")

    assert chain.root.ends == "not recorded"
    assert all(link.holder is None for link in chain.links)
