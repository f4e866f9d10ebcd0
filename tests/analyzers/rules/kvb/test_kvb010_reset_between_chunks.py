"""KVB010: a request goes back to an earlier position and was not preempted."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb004_preemption_thrash import PreemptionThrash
from stepscope.analyzers.rules.kvb.kvb010_reset_between_chunks import ResetBetweenChunks
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, event
from tests.analyzers.serving_rows import chunk, row
from tests.looped import looped
from tests.traces import trace_of


def chunks(*begins: int, request: str = "a", **more: Any) -> list[Row]:
    """Chunks of 100 tokens, one in each step, that begin at these positions."""
    return [chunk(n, request, 100, num_computed=begin, **more) for n, begin in enumerate(begins, 1)]


def trace(*rows: Row, preempted_ns: tuple[int, ...] = (), **more: Any) -> Trace:
    life = [event("a", "arrive", 0), *(event("a", "preempt", ts_ns) for ts_ns in preempted_ns)]
    return trace_of(batch_rows=rows, lifecycle=life, **more)


def resets(*rows: Row, preempted_ns: tuple[int, ...] = ()) -> list[Finding]:
    return ResetBetweenChunks().check(trace(*rows, preempted_ns=preempted_ns))


def test_a_prompt_that_begins_again_between_two_chunks_is_found() -> None:
    (found,) = resets(*chunks(0, 100, 0, 100, 200, 0))

    assert found.message == (
        "1 request computed 300 tokens again and was not preempted: a (300 again, 2 times, first "
        "back from 200 to 0 in step 3)"
    )
    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("a", 3, 30, 60)


def test_it_is_no_thrashing_by_preemptions() -> None:
    again = trace(*chunks(0, 0, 0, 0))

    assert PreemptionThrash().check(again) == []
    assert len(ResetBetweenChunks().check(again)) == 1


def test_a_reset_of_a_request_that_was_preempted_before_is_found_alone() -> None:
    (found,) = resets(*chunks(0, 100, 0, 100, 0), preempted_ns=(25,))

    assert (found.step, found.evidence["resets"], found.evidence["recomputed_tokens"]) == (
        5,
        1,
        100,
    )


def test_the_worst_five_are_named() -> None:
    rows = [each for n in range(8) for each in chunks(0, 0, request=f"r{n}")]

    (found,) = resets(*rows)

    assert (found.count, found.evidence["recomputed_tokens"]) == (8, 800)
    assert found.message.endswith("r4 (100 again, 1 time, first back from 100 to 0 in step 2), ...")


@looped(
    ("rows", "preempted_ns"),
    [
        (chunks(0, 100, 200), ()),
        (chunks(0, 100, 0, 100, 200), (25,)),
        (chunks(0, 100, 0, 100, 200), (20,)),
        (chunks(0, 69, 138), ()),
        ([row(n, "a", 40, num_computed=n, num_draft=39) for n in range(9)], ()),
        ([chunk(n, "a", 100, is_recompute=n > 1) for n in range(1, 4)], ()),
    ],
    ids=["goes on", "was preempted", "in the step before", "by less than two blocks",
         "refused drafts", "does not say where rows begin"],
)  # fmt: skip
def test_what_engines_do_is_clean(rows: list[Row], preempted_ns: tuple[int, ...]) -> None:
    assert resets(*rows, preempted_ns=preempted_ns) == []


@looped("table", ["batch_rows", "lifecycle"])
def test_where_rows_or_events_are_missing_nothing_is_said(table: str) -> None:
    partial = trace(*chunks(0, 0), tables={table: "partial"})

    assert check(partial, (ResetBetweenChunks(),)).not_applicable == ("KVB010",)


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert ResetBetweenChunks().check(record(scenario)) == []


def test_preemptions_of_the_reference_engine_are_no_resets(record: Record) -> None:
    assert ResetBetweenChunks().check(record("fcfs-preemption", "before")) == []
