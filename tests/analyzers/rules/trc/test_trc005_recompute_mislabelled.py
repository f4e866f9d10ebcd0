"""TRC005: a step labelled as generation computes more tokens than it has rows."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.trc.trc005_recompute_mislabelled import RecomputeMislabelled
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row
from tests.traces import trace_of


def step(number: int, rows: int, tokens: int, tag: str | None = None) -> Row:
    return {
        "step": number, "ts_ns": 10 * number, "kind": "decode", "num_prefill_reqs": 0,
        "num_decode_reqs": rows, "num_decode_tokens": tokens, "dur_ns": 5, "tag": tag,
    }  # fmt: skip


def test_the_four_steps_of_a_real_engine_that_recompute(shared_data: Path) -> None:
    file = shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz"

    (found,) = RecomputeMislabelled().check(Trace.open(file))

    assert (found.count, found.step) == (4, 58)
    assert found.message == (
        "4 of 132 steps labelled as generation recompute: at worst 6 rows with 64 tokens "
        "(execute_context_0(0)_generation_6(64))"
    )


def test_a_step_to_which_a_row_comes_back_with_more_tokens_than_rows_is_found() -> None:
    steps = [step(1, 3, 3), step(2, 4, 40), step(3, 4, 7), step(4, 4, 4), step(5, 4, 4)]

    (found,) = RecomputeMislabelled().check(trace_of(steps=steps))

    assert (found.step, found.count) == (2, 2)
    assert found.evidence["tokens in excess"] == 39


def test_a_row_that_comes_from_prefill_does_not_come_back() -> None:
    prefill = step(1, 3, 3) | {"num_prefill_reqs": 1, "kind": "mixed"}
    trace = trace_of(steps=[prefill, step(2, 4, 12), step(3, 4, 4)])

    assert check(trace, (RecomputeMislabelled(),)).not_applicable == ("TRC005",)


def test_steps_that_may_be_speculation_are_not_judged() -> None:
    """Every third step has drafts, and nothing tells so: neither clean nor found."""
    steps = [step(n, 4, 4 + 5 * (n % 3 == 0)) for n in range(1, 131)]

    assert check(trace_of(steps=steps), (RecomputeMislabelled(),)).not_applicable == ("TRC005",)


def test_beside_speculation_only_what_no_draft_explains_is_found() -> None:
    steps = [step(1, 4, 4), step(2, 4, 12), step(3, 4, 4), step(4, 4, 500), step(5, 4, 12)]

    (found,) = RecomputeMislabelled().check(trace_of(steps=steps))

    assert (found.step, found.count) == (4, 1)


def test_rows_with_drafts_are_speculation() -> None:
    drafts = {"step": 2, "request": "a", "phase": "decode", "num_tokens": 3, "num_draft": 2}
    steps = [step(1, 1, 1), step(2, 1, 3), step(3, 1, 1)]
    trace = trace_of(steps=steps, batch_rows=[drafts])

    assert check(trace, (RecomputeMislabelled(),)).not_applicable == ()
    assert RecomputeMislabelled().check(trace) == []


def test_what_is_recomputed_beside_drafts_that_are_told_is_found() -> None:
    drafts = {"step": 2, "request": "a", "phase": "decode", "num_tokens": 3, "num_draft": 2}
    steps = [step(1, 1, 1), step(2, 2, 40), step(3, 2, 2)]

    (found,) = RecomputeMislabelled().check(trace_of(steps=steps, batch_rows=[drafts]))

    assert found.evidence["tokens in excess"] == 36


def test_a_tag_that_says_how_much_is_speculated_is_believed() -> None:
    steps = [step(1, 4, 4), step(2, 4, 12, "decode[bs=4 tok=12 spec=2]"), step(3, 4, 4)]

    assert RecomputeMislabelled().check(trace_of(steps=steps)) == []


def test_one_token_a_row_is_clean() -> None:
    trace = trace_of(steps=[step(1, 4, 4), step(2, 9, 9)])

    assert check(trace, (RecomputeMislabelled(),)).not_applicable == ()
    assert RecomputeMislabelled().check(trace) == []
