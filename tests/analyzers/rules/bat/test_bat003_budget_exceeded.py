"""BAT003: tokens or requests above the limit, or the reserve does not add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat003_budget_exceeded import BudgetExceeded
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import chunk, decode, prefill, row
from tests.looped import looped
from tests.traces import trace_of


def exceeded(*steps: Row, rows: list[Row] | None = None, max_num_seqs: int = 50) -> list[Finding]:
    config = {"engine": {"max_num_seqs": max_num_seqs}}
    return BudgetExceeded().check(trace_of(steps=steps, batch_rows=rows or [], config=config))


def test_more_tokens_than_the_budget_are_found() -> None:
    (found,) = exceeded(prefill(1, 100, 1), prefill(2, 101, 1), prefill(3, 140, 1))

    assert found.message == (
        "batches held more than 100 tokens in 2 steps: worst step 3, 140 tokens"
    )
    assert (found.step, found.ts_ns, found.count) == (3, 30, 2)


def test_rows_that_are_more_than_the_step_says_count() -> None:
    rows = [chunk(1, "a", 60), chunk(1, "b", 60)]

    (found,) = exceeded(prefill(1, 60, 2), rows=rows)

    assert found.evidence["worst"] == 120


def test_more_requests_than_running_slots_are_found() -> None:
    (found,) = exceeded(decode(1, 3), decode(2, 4), max_num_seqs=3)

    assert found.message == (
        "batches held more than 3 requests in 1 step: worst step 2, 4 requests"
    )


def test_two_rows_of_one_request_take_one_running_slot() -> None:
    rows = [row(1, name) for name in ("a", "b", "b")]

    assert exceeded(decode(1, 2), rows=rows, max_num_seqs=2) == []


def test_prompts_that_take_what_is_reserved_are_found() -> None:
    (found,) = exceeded(*(prefill(n, 80 + n, 30, reserved_tokens=18) for n in (1, 2, 3, 4)))

    assert found.message == (
        "prompts took more than the 82 tokens that the reserve leaves them in 2 steps: "
        "worst step 4, 84 tokens with 18 of 100 reserved"
    )


@looped("reserved", [101, -1])
def test_a_reserve_that_does_not_fit_the_budget_is_found(reserved: int) -> None:
    (found,) = exceeded(decode(1, 3, reserved_tokens=reserved))

    assert found.message.startswith("the reserve does not fit the budget in 1 step: worst step 1")


@looped(
    "more",
    [{"reserved_tokens": 0}, {"reserved_tokens": None}, {"token_budget": None}, {}],
    ids=["no reserve", "no reserve is known", "no budget is known", "all is spent"],
)
def test_a_batch_that_is_just_full_is_clean(more: dict[str, Any]) -> None:
    assert exceeded(prefill(1, 100, 1, **more), max_num_seqs=1) == []


@looped("name", ["vllm_cpu_tiny_llama_preemptions", "vllm_prefilldecode_mi300"])
def test_tags_do_not_tell_limits_so_nothing_is_said(shared_data: Path, name: str) -> None:
    assert BudgetExceeded().check(Trace.open(shared_data / "kineto" / f"{name}.json.gz")) == []


@looped(
    ("scenario", "variant"),
    [
        ("fcfs-preemption", "before"), ("fcfs-preemption", "after"), ("slot-recycling", "before"),
        ("slot-recycling", "after"), ("mix-admission", "after"),
    ],
)  # fmt: skip
def test_the_engines_limits_hold(record: Record, scenario: str, variant: str) -> None:
    assert BudgetExceeded().check(record(scenario, variant)) == []
