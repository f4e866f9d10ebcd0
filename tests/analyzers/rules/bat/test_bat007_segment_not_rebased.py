"""BAT007: a segment's lengths do not start at 0 or do not add up."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.rules.bat.bat007_segment_not_rebased import SegmentNotRebased
from tests.analyzers.serving_rows import segment
from tests.looped import looped
from tests.traces import trace_of

SOUND = [segment(1, 0, 90), segment(1, 1, 10)]


def test_lengths_of_the_whole_batch_are_found() -> None:
    shifted = [segment(n, 1, 10, first_cu_len=90, last_cu_len=100) for n in (2, 3)]

    (found,) = SegmentNotRebased().check(trace_of(segments=[*SOUND, *shifted]))

    assert found.message == (
        "2 decode segments have cumulative lengths that do not start at 0: first segment 1 of "
        "step 2, from 90 to 100 for 10 tokens"
    )
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (2, 20, 30, 2)


def test_lengths_that_do_not_add_up_are_found() -> None:
    (found,) = SegmentNotRebased().check(trace_of(segments=[segment(1, 0, 90, last_cu_len=80)]))

    assert found.message == (
        "1 prefill segment has cumulative lengths that do not add up: first segment 0 of step 1, "
        "from 0 to 80 for 90 tokens"
    )


@looped("more", [{}, {"first_cu_len": None, "last_cu_len": None}])
def test_lengths_of_its_own_or_none_at_all_are_clean(more: dict[str, Any]) -> None:
    assert SegmentNotRebased().check(trace_of(segments=[row | more for row in SOUND])) == []
