"""BAT009: a field that the kind of batch needs is null."""

from __future__ import annotations

from stepscope.analyzers.rules.bat.bat009_metadata_missing import MetadataMissing
from tests.analyzers.serving_rows import segment
from tests.looped import looped
from tests.traces import trace_of

COLUMNS = ["last_cu_len", "input_ids_len", "positions_len", "slot_mapping_len"]


@looped("column", COLUMNS)
def test_a_field_that_some_segments_lack_is_found(column: str) -> None:
    rows = [segment(1, 0, 90), segment(1, 1, 10, **{column: None})]

    (found,) = MetadataMissing().check(trace_of(segments=rows))

    field = {"last_cu_len": "cu_lens"}.get(column, column.removesuffix("_len"))
    assert found.message == (
        f"{field} is missing in 1 decode segment: first segment 1 of step 1, though 1 segment "
        "has it"
    )
    assert (found.step, found.ts_ns, found.count) == (1, 10, 1)


@looped("column", COLUMNS)
def test_a_field_that_no_segment_has_was_not_recorded(column: str) -> None:
    rows = [segment(1, 0, 90, **{column: None}), segment(1, 1, 10, **{column: None})]

    assert MetadataMissing().check(trace_of(segments=rows)) == []


def test_fields_that_are_all_there_are_clean() -> None:
    assert MetadataMissing().check(trace_of(segments=[segment(1, 0, 90), segment(1, 1, 10)])) == []
