"""BAT010: the executed path is not the batch's kind, or a forbidden combination ran."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat010_path_mismatch import PathMismatch
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import row, segment, step
from tests.looped import looped
from tests.traces import trace_of


def mixed(number: int, path: str = "mixed") -> Row:
    return step(number, "mixed", executed_path=path, num_prefill_reqs=1, num_decode_reqs=1)


def mismatch(*steps: Row, **tables: Any) -> list[Finding]:
    return PathMismatch().check(trace_of(steps=steps, **tables))


FEW = {"requests": "8", "prompt_len": "512", "max_tokens": "8"}


def test_a_mixed_batch_that_ran_as_a_prefill_is_found() -> None:
    (found,) = mismatch(mixed(1), mixed(2, "simulated-prefill"), mixed(3, "simulated-prefill"))

    assert found.message == "2 mixed steps ran as prefill: first step 2"
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (2, 20, 30, 2)


@looped(
    ("kind", "path"),
    [
        ("mixed", "simulated-mixed"),
        ("decode", "ragged-decode"),
        ("prefill", "host-mirror, ragged-decode"),
        ("mixed", "mixed: grouped-gemm + fused"),
        ("decode", "moe-interleaved"),
        ("decode", None),
        ("idle", "decode"),
    ],
)
def test_a_path_of_the_kind_or_of_no_kind_is_clean(kind: str, path: str | None) -> None:
    assert mismatch(step(1, kind, executed_path=path)) == []


def test_a_segment_that_ran_as_the_other_phase_is_found() -> None:
    rows = [segment(1, 0, 90), segment(1, 1, 10, executed_path="prefill")]

    (found,) = mismatch(mixed(1), segments=rows)

    assert found.message == "1 decode segment ran as prefill: first step 1"


def test_a_batch_whose_rows_all_went_into_one_segment_is_found() -> None:
    (found,) = mismatch(mixed(1), mixed(2), segments=[
        segment(1, 0, 90), segment(1, 1, 10), segment(2, 0, 100, num_rows=2),
    ])  # fmt: skip

    assert found.message == ("1 mixed step ran in segments that do not have its rows: first step 2")


@looped(("refuses", "count"), [(True, 1), (False, 0)])
def test_drafts_in_a_mixed_batch_are_found_where_they_are_refused(
    refuses: bool, count: int
) -> None:
    config = {"engine": {"refuses_mixed_drafts": refuses}}
    rows = [row(1, "a", 3, num_draft=2), row(1, "b", 3, num_draft=2), row(2, "a")]

    assert len(mismatch(mixed(1), mixed(2), batch_rows=rows, config=config)) == count


@each_scenario
@looped("variant", ["before", "after"])
def test_sound_engines_are_clean(record: Record, scenario: str, variant: str) -> None:
    assert PathMismatch().check(record(scenario, variant)) == []


def test_an_engine_is_judged_by_what_it_refuses_and_not_by_its_name() -> None:
    rows = [row(1, "a", 3, num_draft=2)]
    ours = {"producer": "stepscope-engine", "batch_rows": rows}
    named = {"scheduler": {"name": "paged"}}

    assert mismatch(mixed(1), config=named, **ours) == []
    refuses = {**named, "engine": {"refuses_mixed_drafts": True}}
    assert len(mismatch(mixed(1), config=refuses, **ours)) == 1


def test_mixed_batches_of_the_reference_engine_refuse_drafts(record: Record) -> None:
    (found,) = PathMismatch().check(record("mixed-batches", fault="mtp-with-mixed", **FEW))

    assert "with draft tokens, which it refuses" in found.message


@looped(("refuses", "count"), [(True, 1), (False, 0)])
def test_a_mixed_batch_with_two_batch_overlap_is_found_where_that_is_refused(
    refuses: bool, count: int
) -> None:
    config = {"engine": {"refuses_mixed_tbo": refuses}}
    steps = mixed(1, "mixed+tbo"), mixed(2)

    assert len(mismatch(*steps, config=config)) == count


def test_the_reference_engine_halves_no_mixed_batch_and_says_so(record: Record) -> None:
    messages = [
        [each.message for each in PathMismatch().check(record("mixed-batches", **settings))]
        for settings in ({**FEW, "tbo": "true"}, {**FEW, "tbo": "true", "fault": "tbo-with-mixed"})
    ]

    assert messages[0] == []
    assert any("with two-batch overlap, which it refuses" in each for each in messages[1])
