"""BAT001: runnable decodes are left out while prefill takes the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat001_mixed_never_forms import MixedNeverForms
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import decode, prefill
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of


def left_out(*steps: Row) -> list[Finding]:
    return MixedNeverForms().check(trace_of(steps=steps))


def test_prompts_that_take_the_budget_of_step_after_step_are_found() -> None:
    mixed = prefill(9, 40, 7, kind="mixed", num_decode_reqs=6)

    (found,) = left_out(*(prefill(n, 100, n) for n in range(1, 9)), mixed)

    assert found.message == (
        "7 prefill steps running (2 to 8) took 100% of the budget and left up to 7 decodes out; "
        "1 mixed step formed in all"
    )
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (2, 20, 90, 1)
    assert found.evidence["steps"] == 7


@looped(
    "sound",
    [
        pytest.param({"num_prefill_tokens": 79}, id="the budget is not spent"),
        pytest.param({"num_running": 1}, id="nobody else runs"),
        pytest.param({"num_decode_reqs": 1}, id="a decode is in it"),
        pytest.param({"token_budget": None}, id="no budget is known"),
    ],
)
def test_steps_that_leave_no_decode_out_for_a_prompt_are_clean(sound: dict[str, Any]) -> None:
    assert left_out(*(prefill(n, 100, 7) | sound for n in range(1, 20))) == []


def test_four_fifths_of_the_budget_are_enough_to_leave_decodes_out() -> None:
    assert len(left_out(*(prefill(n, 80, 7) for n in range(1, 9)))) == 1


def test_a_budget_of_nothing_is_not_taken_whole() -> None:
    none = {"token_budget": 0, "num_prefill_tokens": 0}

    assert left_out(*(prefill(n, 100, 7) | none for n in range(1, 9))) == []


@looped(("mixed", "judges"), [(True, True), (False, False), (None, True)])
def test_an_engine_that_declares_that_it_mixes_nothing_cannot_fail_to(
    mixed: bool | None, judges: bool
) -> None:
    steps = [prefill(n, 100, 7) for n in range(1, 9)]
    trace = trace_of(steps=steps, config={"scheduler": {"mixed": mixed}})

    result = check(trace, (MixedNeverForms(),))

    assert bool(result.findings) is judges
    assert result.not_applicable == (() if judges else ("BAT001",))


def test_a_decode_step_in_between_ends_the_run() -> None:
    steps = [prefill(n, 100, 7) for n in (1, 2, 3, 4, 6, 7, 8, 9)]

    assert left_out(*steps, decode(5, 7)) == []


@looped("name", ["vllm_cpu_tiny_llama_preemptions", "vllm_prefilldecode_mi300"])
def test_a_real_engine_that_mixes_is_clean(shared_data: Path, name: str) -> None:
    trace = Trace.open(shared_data / "kineto" / f"{name}.json.gz")

    assert "mixed" in trace.steps.collect()["kind"].to_list()
    assert MixedNeverForms(max_steps=0).check(trace) == []


@slow
@each_scenario
def test_engines_whose_prompts_fit_easily_are_clean(record: Record, scenario: str) -> None:
    assert MixedNeverForms().check(record(scenario)) == []
