"""What rules of batches say of recordings, against their rows one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.bat.bat001_mixed_never_forms import MixedNeverForms
from stepscope.analyzers.rules.bat.bat002_long_prefill_saturates import LongPrefillSaturates
from stepscope.analyzers.rules.bat.bat003_budget_exceeded import BudgetExceeded
from stepscope.analyzers.rules.stv.stv011_decode_starved import DecodeStarved
from tests.analyzers.samples.conftest import DECLARED, EngineRun, Sample, copied
from tests.analyzers.samples.raw_trace import RawTrace, Row, runs_of
from tests.tiers import slow

TRIED = frozenset(
    {"STV011", "BAT001", "BAT002", "BAT003", "BAT004", "BAT005", "BAT013"}
)  # fmt: skip
LONG = {"requests": "12", "prompt_len": "4000", "max_tokens": "12", "threshold": "2048"}
"""Prompts that fill the budget of step after step."""
STRICT = (
    DecodeStarved(max_steps=0),
    MixedNeverForms(max_steps=0, min_share=0.0),
    LongPrefillSaturates(min_share=0.0, at_least=1),
)
"""One step, however few tokens it has, is enough for a finding."""


@pytest.fixture(scope="module")
def starved(engine_run: EngineRun) -> Sample:
    return engine_run("mixed-batches", "before", **LONG)


def left_out(raw: RawTrace, step: Row) -> set[str]:
    """Who runs, has a first token, and is not in the batch of a step."""
    rows = raw.batches[step["step"]]
    formed_ns, batch = min(row["ts_ns"] for row in rows), {row["request"] for row in rows}
    first = raw.first("first-token")
    return {
        request
        for request in raw.arrivals
        if request in first
        and first[request]["ts_ns"] <= formed_ns
        and raw.runs_at(request, formed_ns)
        and request not in batch
    }


def num_of(raw: RawTrace, step: Row, phase: str) -> int:
    return sum(row["phase"] == phase for row in raw.batches[step["step"]])


@slow
def test_no_step_of_vllm_leaves_a_decode_out(of_vllm: list[Sample]) -> None:
    """STV011, BAT001 and BAT002 have nothing to find, though prompts ran beside decodes."""
    for sample in of_vllm:
        raw = sample.raw
        steps = [row for row in raw.steps if raw.batches[row["step"]]]
        mixed = [row for row in steps if num_of(raw, row, "prefill") and num_of(raw, row, "decode")]

        assert [row["step"] for row in steps if left_out(raw, row)] == []
        assert check(sample.trace, STRICT).counts == {rule.code: 0 for rule in STRICT}
        assert {sample.checked.counts[rule.code] for rule in STRICT} == {0}
        assert len(mixed) == sum(row["kind"] == "mixed" for row in raw.steps) > 19


@slow
def test_stv011_and_bat001_find_the_prefills_that_left_decodes_out_step_by_step(
    starved: Sample,
) -> None:
    raw = starved.raw
    hungry = {
        row["step"]: len(left_out(raw, row))
        for row in raw.steps
        if num_of(raw, row, "prefill") and not num_of(raw, row, "decode") and left_out(raw, row)
    }
    runs = runs_of(raw.steps, set(hungry))
    longest = max(runs, key=len)
    prompts = sum(row["num_prefill_tokens"] for row in longest)
    budget = sum(row["token_budget"] for row in longest)

    (decodes,) = starved.findings(STRICT[0])
    (mixed,) = starved.findings(STRICT[1])

    assert decodes.evidence["longest run_steps"] == mixed.evidence["longest run_steps"]
    assert decodes.evidence["longest run_steps"] == len(longest) > 16
    assert decodes.evidence["steps"] == mixed.evidence["steps"] == len(hungry)
    assert decodes.evidence["ready to decode at most"] == max(hungry.values())
    assert decodes.evidence["prefill_tokens"] == prompts
    assert mixed.evidence["budget_share"] == pytest.approx(prompts / budget, abs=1e-4)
    assert mixed.evidence["mixed steps in all"] == sum(row["kind"] == "mixed" for row in raw.steps)
    assert {"STV011", "BAT001"} <= {each.code for each in starved.checked.findings}


def test_bat002_finds_the_steps_that_a_chunk_of_one_prompt_filled(starved: Sample) -> None:
    raw = starved.raw
    chunks = {}
    for step in raw.steps:
        rows = [row for row in raw.batches[step["step"]] if row["phase"] == "prefill"]
        chunk = max((row["num_tokens"] for row in rows), default=0)
        if 10 * chunk >= 9 * step["token_budget"] and left_out(raw, step):
            chunks[step["step"]] = chunk

    (found,) = starved.findings(LongPrefillSaturates())

    assert (found.evidence["steps"], found.step) == (len(chunks), min(chunks))
    assert found.evidence["chunk_tokens"] == chunks[min(chunks)]
    assert len(chunks) > 10


@slow
def test_bat003_finds_the_steps_with_more_tokens_or_requests_than_allowed(
    declared: Sample, tmp_path: Path
) -> None:
    """What ran is within its limits; were these lower, as many steps were not."""
    batches = declared.raw.batches
    tokens = {step: sum(row["num_tokens"] for row in rows) for step, rows in batches.items()}
    widths = {step: len({row["request"] for row in rows}) for step, rows in batches.items()}
    (budget,) = {row["token_budget"] for row in declared.raw.steps}

    narrow = copied(declared, tmp_path, engine={**DECLARED, "max_num_seqs": 5})
    (found,) = narrow.findings(BudgetExceeded())

    wide = [width for width in widths.values() if width > 5]
    assert (found.evidence["steps"], found.evidence["worst"]) == (len(wide), max(wide))
    assert len(wide) > 50
    assert declared.checked.counts["BAT003"] == 0
    assert (max(tokens.values()), max(widths.values())) == (budget, 8)


def test_bat004_finds_no_request_twice_in_a_batch_nor_one_that_waits(
    of_vllm: list[Sample],
) -> None:
    for sample in of_vllm:
        raw = sample.raw
        scheduled = [(step, row) for step, rows in raw.batches.items() for row in rows]
        times = Counter((step, row["request"]) for step, row in scheduled)
        preempted = [row for row in raw.events if row["event"] == "preempt"]
        evicted = [row for row in preempted if (row["step"], row["request"]) in times]

        assert (max(times.values()), evicted) == (1, [])
        assert sample.checked.counts["BAT004"] == 0
        assert len(preempted) == {"vllm_crowd": 6, "vllm_prefixes": 1}.get(sample.name, 0)


def test_bat005_and_bat013_find_every_token_due_to_whom_it_was_sampled_for(
    of_vllm: list[Sample],
) -> None:
    num_parts = 0
    for sample in of_vllm:
        raw = sample.raw
        rows = {(step, row["request"]): row for step, rows in raw.batches.items() for row in rows}
        parts = {key for key, row in rows.items() if row["is_final_chunk"] is False}
        came_from = [(row["source_step"], row["request"]) for row in raw.tokens]
        caps = {request: row["max_tokens"] for request, row in raw.arrivals.items()}
        late = [row for row in raw.tokens if row["position"] >= caps[row["request"]]]

        assert sample.checked.counts["BAT005"] == len(set(came_from) & parts) + len(late) == 0
        assert sample.checked.counts["BAT013"] == len(set(came_from) - set(rows)) == 0
        assert Counter(row["request"] for row in raw.tokens) == Counter(caps)
        num_parts += len(parts)
    assert num_parts > 0
