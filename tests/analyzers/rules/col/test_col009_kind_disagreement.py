"""COL009: data-parallel ranks ran different kinds in one step."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col009_kind_disagreement import KindDisagreement
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import collective
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import row, step
from tests.looped import looped
from tests.traces import trace_of

SCHEDULED = [row(1, "a"), row(1, "b", rank=1)]


def pair(number: int, ours: str, theirs: str, path: str | None = None) -> list[Row]:
    return [step(number, ours), step(number, theirs, rank=1, executed_path=path)]


LOCK_STEP = pair(1, "decode", "dummy", "dummy-decode")


def disagreed(*rows: Row, scheduled: list[Row] | None = None, **tables: Any) -> list[Finding]:
    trace = trace_of(steps=rows, batch_rows=SCHEDULED if scheduled is None else scheduled, **tables)
    return KindDisagreement().check(trace)


def test_ranks_that_ran_prefills_and_decodes_in_one_step_are_found() -> None:
    (found,) = disagreed(*LOCK_STEP, *pair(2, "mixed", "decode"), *pair(3, "decode", "prefill"))

    assert found.message == (
        "ranks ran different kinds in 2 steps: first step 2, rank 0 mixed, rank 1 decode"
    )
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (2, 20, 40, 2)


def test_a_dummy_of_another_kind_is_found() -> None:
    (found,) = disagreed(*pair(1, "prefill", "dummy", "simulated-dummy-decode"))

    assert found.message.endswith("rank 0 prefill, rank 1 dummy decode")


@looped(
    "rows",
    [
        pair(2, "mixed", "prefill"), pair(2, "decode", "decode"), pair(2, "mixed", "idle"),
        pair(2, "mixed", "dummy", "dummy-prefill"), pair(2, "mixed", "dummy"),
        [step(2, "prefill"), step(3, "decode", rank=1)],
    ],
)  # fmt: skip
def test_ranks_of_one_kind_are_clean(rows: list[Row]) -> None:
    assert disagreed(*LOCK_STEP, *rows) == []


def test_ranks_that_do_not_run_in_lock_step_are_clean() -> None:
    assert disagreed(*pair(2, "mixed", "decode")) == []


def test_ranks_that_meet_in_collectives_are_in_lock_step() -> None:
    met = [collective(0, 1), collective(1, 1)]

    assert len(disagreed(*pair(2, "mixed", "decode"), collectives=met)) == 1


def test_a_worker_that_schedules_nothing_has_steps_of_its_own() -> None:
    met = [collective(0, 1), collective(1, 1)]

    assert disagreed(*pair(2, "mixed", "decode"), scheduled=SCHEDULED[:1], collectives=met) == []


def test_a_rank_that_foretells_from_its_queue_alone_is_found(record: Record) -> None:
    (found,) = KindDisagreement().check(
        record("mixed-batches", "data-parallel", "peer-kind-from-queue")
    )

    assert found.message == (
        "ranks ran different kinds in 1 step: first step 42, rank 0 mixed, rank 1 decode"
    )


def test_ranks_that_agree_before_they_form_a_batch_are_clean(record: Record) -> None:
    small = {"requests": "9", "prompt_len": "512", "max_tokens": "32", "budget": "256"}

    assert KindDisagreement().check(record("mixed-batches", "data-parallel", **small)) == []


def test_head_and_worker_are_no_data_parallel_ranks(record: Record) -> None:
    pytest.importorskip("torch")

    assert KindDisagreement().check(record("ep-multiplexing", max_tokens="5")) == []


def test_a_step_that_a_rank_has_twice_says_nothing() -> None:
    assert disagreed(*LOCK_STEP, step(2, "prefill"), *pair(2, "decode", "decode")) == []
