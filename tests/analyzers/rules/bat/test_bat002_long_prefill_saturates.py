"""BAT002: one chunk takes nearly the whole budget while decodes wait."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat002_long_prefill_saturates import LongPrefillSaturates
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.serving_rows import chunk, prefill
from tests.looped import looped
from tests.traces import trace_of


def saturated(num_tokens: int, num_running: int = 7, num_steps: int = 3) -> list[Finding]:
    numbers = range(1, num_steps + 1)
    return LongPrefillSaturates().check(
        trace_of(
            steps=[prefill(n, 100, num_running) for n in numbers],
            batch_rows=[
                *(chunk(n, "long", num_tokens, final=False) for n in numbers),
                *(chunk(n, "short", 100 - num_tokens) for n in numbers if num_tokens < 100),
            ],
        )
    )


def test_a_chunk_that_takes_the_budget_is_found() -> None:
    (found,) = saturated(90)

    assert found.message == (
        "a chunk of one prompt took up to 90% of the budget in 3 steps and left up to 6 decodes "
        "out: first long, 90 of 100 tokens in step 1"
    )
    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("long", 1, 10, 40)


def test_a_chunk_below_the_threshold_is_clean() -> None:
    assert saturated(89) == []


def test_a_chunk_that_nobody_waits_for_is_clean() -> None:
    assert saturated(100, num_running=1) == []


@looped(("num_steps", "num_found"), [(1, 0), (2, 1)])
def test_once_is_clean_and_twice_is_not(num_steps: int, num_found: int) -> None:
    assert len(saturated(100, num_steps=num_steps)) == num_found


@looped(("mixed", "judges"), [(True, True), (False, False), (None, True)])
def test_an_engine_that_declares_that_it_mixes_nothing_is_not_judged(
    mixed: bool | None, judges: bool
) -> None:
    numbers = range(1, 4)
    steps = [prefill(n, 100, 7) for n in numbers]
    rows = [chunk(n, "long", 100, final=False) for n in numbers]
    declared = {"scheduler": {"mixed": mixed}}

    result = check(
        trace_of(steps=steps, batch_rows=rows, config=declared), (LongPrefillSaturates(),)
    )

    assert bool(result.findings) is judges
    assert result.not_applicable == (() if judges else ("BAT002",))


def test_tags_of_a_real_engine_do_not_tell_chunks_apart(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "vllm_prefilldecode_mi300.json.gz")

    assert check(trace, (LongPrefillSaturates(),)).not_applicable == ("BAT002",)


@each_scenario
def test_engines_whose_prompts_fit_easily_are_clean(record: Record, scenario: str) -> None:
    assert LongPrefillSaturates().check(record(scenario)) == []
