"""BAT008: a per-token field has another length than the segment."""

from __future__ import annotations

from stepscope.analyzers.rules.bat.bat008_companion_not_sliced import CompanionNotSliced
from tests.analyzers.serving_rows import segment
from tests.looped import looped
from tests.traces import trace_of


@looped("field", ["input_ids", "positions", "slot_mapping"])
def test_a_field_that_is_still_the_whole_batchs_is_found(field: str) -> None:
    wrong = [segment(n, 1, 10, **{f"{field}_len": 100}) for n in (1, 2)]

    (found,) = CompanionNotSliced().check(trace_of(segments=[segment(1, 0, 90), *wrong]))

    assert found.message == (
        f"{field} is not cut to the segment in 2 decode segments: first segment 1 of step 1, "
        "100 long for 10 tokens"
    )
    assert (found.step, found.ts_ns, found.end_ns) == (1, 10, 20)


def test_fields_as_long_as_the_segment_or_missing_are_clean() -> None:
    rows = [segment(1, 0, 90), segment(1, 1, 10, input_ids_len=None)]

    assert CompanionNotSliced().check(trace_of(segments=rows)) == []
