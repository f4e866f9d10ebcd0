"""EQV003: output differs between chunked and single-shot prompts."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.eqv.eqv001_diverged_from_solo import DivergedFromSolo
from stepscope.analyzers.rules.eqv.eqv003_chunking_changes_output import ChunkingChangesOutput
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import said
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import chunk, row
from tests.looped import looped
from tests.traces import trace_of

CHUNKED = [
    chunk(1, "a", 8, final=False, num_computed=0), chunk(2, "a", 8, num_computed=8),
    row(3, "a", num_computed=16),
]  # fmt: skip
WHOLE = [chunk(1, "b", 8, num_computed=0)]
WRONG, AFTER = said("a", 0, "x", "a0", source_step=2), said("a", 1, "y", "a1", source_step=3)
RIGHT = said("b", 0, "b0", "b0", source_step=1)


def trace(*outputs: Row, rows: list[Row] | None = None) -> Trace:
    return trace_of(outputs=outputs, batch_rows=rows or CHUNKED + WHOLE)


def changed(*outputs: Row, rows: list[Row] | None = None) -> list[Finding]:
    return ChunkingChangesOutput().check(trace(*outputs, rows=rows))


def test_a_prompt_in_chunks_that_gives_another_token_is_found() -> None:
    (found,) = changed(WRONG, AFTER, RIGHT)

    assert found.message == (
        "the prompt of 1 request gave another token in chunks than at once: first a, 2 chunks, in "
        "step 1; 0 of 1 whole prompt did"
    )
    assert DivergedFromSolo().check(trace(WRONG, AFTER, RIGHT)) == []


@looped(
    ("outputs", "rows"),
    [
        pytest.param([WRONG, RIGHT | {"digest": "x"}], None, id="whole prompts are wrong too"),
        pytest.param([WRONG | {"digest": "a0"}, AFTER], None, id="a decode is wrong"),
        pytest.param([WRONG, said("b", 1, "x", "b1")], None, id="a decode of another one is too"),
        pytest.param([WRONG | {"digest": "nan"}], None, id="not a number"),
        pytest.param([WRONG], [chunk(2, "a", 8, num_computed=8, num_cached=8)],
                     id="what was computed before is from the prefix cache"),
    ],
)  # fmt: skip
def test_what_is_not_about_chunks_is_left_to_others(
    outputs: list[Row], rows: list[Row] | None
) -> None:
    assert changed(*outputs, rows=rows) == []


def test_history_that_is_seen_up_to_the_chunks_end_is_found(record: Record) -> None:
    pytest.importorskip("torch")
    (found,) = ChunkingChangesOutput().check(
        record("mixed-batches", fault="history-seen-by-chunk-end")
    )

    assert (found.count, found.evidence["prompts in chunks"], found.evidence["position"]) == (
        12, 12, 0,
    )  # fmt: skip


@looped("window", ["0", "8"])
def test_prompts_whose_chunks_change_nothing_are_clean(record: Record, window: str) -> None:
    pytest.importorskip("torch")
    clean = record("mixed-batches", executor="torch", window=window, requests="4")

    assert ChunkingChangesOutput().check(clean) == []
    assert DivergedFromSolo().check(clean) == []
