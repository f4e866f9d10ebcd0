"""BAT006: logits rows differ from sequences."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat006_logits_arity import LogitsArity
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import chunk, row, step
from tests.looped import looped
from tests.traces import trace_of

# A prompt that ends, a chunk that does not, and two decodes: three sequences sample.
MIXED = [chunk(1, "a", 8), chunk(1, "b", 8, final=False), row(1, "c"), row(1, "d")]


def wrong(
    logits_rows: int | None, rows: list[Row] | None = None, config: Row | None = None
) -> list[Finding]:
    steps = [step(1, "mixed", logits_rows=logits_rows)]
    return LogitsArity().check(trace_of(config=config or {}, steps=steps, batch_rows=rows or MIXED))


@looped("logits_rows", [1, 4, 18])
def test_logits_per_batch_per_request_or_per_token_are_found(logits_rows: int) -> None:
    (found,) = wrong(logits_rows)

    rows = "1 logits row" if logits_rows == 1 else f"{logits_rows} logits rows"
    assert found.message == (f"1 mixed step computed {rows} for 3 sequences at worst: first step 1")
    assert (found.step, found.ts_ns, found.end_ns) == (1, 10, 20)


@looped("logits_rows", [3, 0, None], ids=["right", "nothing ran", "not known"])
def test_a_row_for_each_sequence_that_samples_is_clean(logits_rows: int | None) -> None:
    assert wrong(logits_rows) == []


@looped(("logits_rows", "is_wrong"), [(2, False), (6, False), (4, True)])
def test_drafts_may_have_rows_of_their_own(logits_rows: int, is_wrong: bool) -> None:
    drafted = [row(1, name, 3, num_draft=2) for name in "cd"]

    assert bool(wrong(logits_rows, drafted)) == is_wrong


def test_chunks_that_do_not_say_whether_they_end_are_not_judged() -> None:
    assert wrong(9, [chunk(1, "a", 8, is_final_chunk=None), row(1, "c")]) == []


@looped(("logits_rows", "is_wrong"), [(4, False), (3, True), (18, True)])
def test_an_engine_that_computes_logits_of_every_row_has_one_for_each(
    logits_rows: int, is_wrong: bool
) -> None:
    config = {"engine": {"logits_of_every_row": True}}

    assert bool(wrong(logits_rows, config=config)) == is_wrong


@each_scenario
@looped("variant", ["before", "after"])
def test_the_engine_samples_a_row_for_each(record: Record, scenario: str, variant: str) -> None:
    assert LogitsArity().check(record(scenario, variant)) == []
