"""KVB004: recomputed tokens outweigh new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb004_preemption_thrash import PreemptionThrash
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, event
from tests.analyzers.serving_rows import chunk, row
from tests.looped import looped
from tests.traces import trace_of


def thrash(*rows: Row, preempted: int = 2) -> list[Finding]:
    """Request `a`, preempted after each of its first batches."""
    preemptions = [event("a", "preempt", 15 + 10 * n) for n in range(preempted)]
    life = [event("a", "arrive", 0), *preemptions]
    return PreemptionThrash().check(trace_of(batch_rows=rows, lifecycle=life))


def again(*numbers: int) -> list[Row]:
    return [chunk(n, "a", 40, num_computed=0, is_recompute=n > numbers[0]) for n in numbers]


def test_a_request_that_is_computed_from_its_start_for_the_third_time_is_found() -> None:
    (found,) = thrash(*again(1, 2, 3), row(4, "a", num_computed=40))

    assert found.message == (
        "1 request computed 80 tokens again and 41 anew: a (80 and 41, preempted 2 times)"
    )
    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("a", 2, 20, 30)


def test_one_recompute_is_clean() -> None:
    assert thrash(*again(1, 2), row(3, "a", num_computed=40)) == []


def test_a_few_tokens_of_a_short_request_are_not_thrashing() -> None:
    short = [chunk(n, "a", 15, num_computed=0) for n in (1, 2, 3)]

    assert thrash(*short) == []
    assert len(thrash(*short, *again(4))) == 1


def test_a_request_that_thrashes_says_what_that_is_of_the_run() -> None:
    others = [chunk(n, f"r{n}", 100, num_computed=0) for n in range(4, 11)]

    (found,) = thrash(*again(1, 2, 3), *others)

    assert (found.evidence["requests"], found.evidence["run_tokens"]) == (1, 820)


def test_chunks_of_one_prompt_are_not_recomputed() -> None:
    assert thrash(*(chunk(n, "a", 10, num_computed=10 * n) for n in range(9))) == []


def test_where_rows_do_not_say_where_they_begin_the_mark_counts() -> None:
    rows = [chunk(n, "a", 40, is_recompute=n > 1) for n in (1, 2, 3)]

    assert [each.evidence["recomputed_tokens"] for each in thrash(*rows)] == [80]
    assert thrash(*(chunk(n, "a", 40) for n in (1, 2, 3))) == []


def test_drafts_that_are_refused_are_not_recomputed() -> None:
    rows = [row(n, "a", 4, num_computed=20 + n, num_draft=3) for n in range(9)]

    assert thrash(*rows) == []


def test_drafts_that_are_known_to_be_accepted_are_recomputed_like_any_token() -> None:
    ran = row(1, "a", 40, num_computed=0, num_draft=9, num_accepted=7)
    life = [event("a", "preempt", 15), event("a", "preempt", 25)]

    (found,) = PreemptionThrash().check(trace_of(batch_rows=[ran, *again(2, 3)], lifecycle=life))

    assert found.evidence["recomputed_tokens"] == 38 + 40


def test_the_worst_five_are_named() -> None:
    names = [f"r{n}" for n in range(8)]
    rows = [each | {"request": name} for name in names for each in again(1, 2, 3)]
    life = [event(name, "preempt", ts_ns) for name in names for ts_ns in (15, 25)]

    (found,) = PreemptionThrash().check(trace_of(batch_rows=rows, lifecycle=life))

    assert found.count == 8
    assert found.message.endswith("r4 (80 and 40, preempted 2 times), ...")


def test_a_request_that_was_never_preempted_does_not_thrash() -> None:
    assert thrash(*again(1, 2, 3), preempted=0) == []


def test_what_a_reset_throws_away_is_not_counted_for_the_preemption_before_it() -> None:
    life = [event("a", "preempt", 15)]
    rows = [*again(1, 2, 3, 4), row(5, "a", num_computed=40)]

    assert PreemptionThrash().check(trace_of(batch_rows=rows, lifecycle=life)) == []


@looped("variant", ["before", "order-only"])
def test_preempting_whoever_is_in_another_bucket_thrashes(record: Record, variant: str) -> None:
    (found,) = PreemptionThrash().check(record("fcfs-preemption", variant))

    assert found.evidence["recomputed_tokens"] == 54_340
    assert found.evidence["new_tokens"] == 5_054


@looped("variant", ["after"])
def test_a_few_preemptions_for_blocks_are_clean(record: Record, variant: str) -> None:
    assert PreemptionThrash().check(record("fcfs-preemption", variant)) == []


def test_a_real_engine_that_preempted_does_not_say_whom_in_its_tags(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz")

    assert check(trace, (PreemptionThrash(),)).not_applicable == ("KVB004",)


def test_drafts_that_a_verify_refuses_are_not_recomputed(record: Record) -> None:
    pytest.importorskip("torch")
    trace = record("ep-multiplexing", verify_width="4", stagger="4")

    assert PreemptionThrash(min_tokens=1).check(trace) == []
