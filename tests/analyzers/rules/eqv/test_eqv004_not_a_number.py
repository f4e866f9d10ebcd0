"""EQV004: NaN after an attention merge."""

from __future__ import annotations

import pytest

from stepscope.analyzers.rules.eqv.eqv001_diverged_from_solo import DivergedFromSolo
from stepscope.analyzers.rules.eqv.eqv004_not_a_number import NotANumber
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import said
from tests.analyzers.serving_rows import step
from tests.looped import looped
from tests.traces import trace_of


def test_tokens_of_logits_that_are_not_numbers_are_found() -> None:
    rows = [said("a", 0, "a0", None), said("a", 1, "nan", None), said("a", 2, "nan", None)]

    (found,) = NotANumber().check(trace_of(outputs=rows, steps=[step(2, "mixed")]))

    assert found.message == (
        "2 tokens of 1 request were sampled from logits that are not numbers: first token 2 of a, "
        "in step 2, a mixed batch"
    )
    assert (found.ts_ns, found.end_ns, found.count) == (20, 30, 2)


@looped("digest", ["a0", "NaN", "", None])
def test_other_digests_are_clean(digest: str | None) -> None:
    assert NotANumber().check(trace_of(outputs=[said("a", 0, digest, "a0")])) == []


def test_attention_to_nothing_merged_with_nothing_is_found(record: Record) -> None:
    pytest.importorskip("torch")
    trace = record("mixed-batches", fault="empty-merge-nan")

    (found,) = NotANumber().check(trace)

    assert (found.count, found.evidence["requests"], found.evidence["position"]) == (80, 10, 0)
    assert DivergedFromSolo().check(trace) == []


def test_a_guarded_merge_is_clean(record: Record) -> None:
    pytest.importorskip("torch")

    assert NotANumber().check(record("mixed-batches", executor="torch", requests="4")) == []
