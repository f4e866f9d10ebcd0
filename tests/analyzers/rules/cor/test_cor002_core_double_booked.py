"""COR002: two blocks execute on one core at once."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.rules.cor.cor002_core_double_booked import CoreDoubleBooked
from tests.analyzers.rows import Row, part, task
from tests.looped import looped
from tests.traces import trace_of


def test_two_blocks_that_run_on_one_core_at_once_are_found() -> None:
    spans = [part(1, 1, 1_000, 8_000, block=4), part(2, 1, 6_600, 9_000)]
    trace = trace_of(core_spans=spans, tasks=[task(1, "push", 32), task(2, "qk_pv")])

    (found,) = CoreDoubleBooked().check(trace)

    assert (found.core, found.task, found.ts_ns, found.end_ns) == (1, 2, 6_600, 8_000)
    assert found.message == "qk_pv 0/1 began on core 1 (AIV0) while push 4/32 ran there, for 1.4 µs"


def test_an_overlap_hidden_behind_a_shorter_block_is_found() -> None:
    spans = [part(1, 1, 0, 9_000), part(2, 1, 1_000, 2_000), part(3, 1, 3_000, 4_000)]

    found = CoreDoubleBooked().check(trace_of(core_spans=spans))

    assert [each.task for each in found] == [2, 3]


@looped(
    "second",
    [
        pytest.param(part(2, 1, 8_000, 9_000), id="begins when the first ends"),
        pytest.param(part(2, 2, 6_000, 9_000), id="on another core"),
        pytest.param(part(2, 1, 6_000, 9_000, rank=1), id="on another rank"),
        pytest.param(part(2, 1, 6_000, 6_000), id="takes no time"),
        pytest.param(part(2, 1, 8_000, 9_000, slot="pending", dispatch_ns=2_000), id="waits"),
    ],
)
def test_a_block_that_shares_no_time_with_the_one_before_is_clean(second: Row) -> None:
    first = part(1, 1, 1_000, 8_000)

    assert CoreDoubleBooked().check(trace_of(core_spans=[first, second])) == []


def test_a_block_that_never_ended_keeps_its_core() -> None:
    spans = [part(1, 1, 1_000, None), part(2, 1, 6_000, None)]

    (found,) = CoreDoubleBooked().check(trace_of(core_spans=spans))

    assert found.message.endswith("task 1 0 ran there, and neither ended")
    assert (found.ts_ns, found.end_ns) == (6_000, None)


@looped("doubt", [{"closed": False}, {"tables": {"core_spans": "partial"}}])
def test_a_block_without_an_end_proves_nothing_when_rows_may_be_missing(
    doubt: dict[str, Any],
) -> None:
    spans = [part(1, 1, 1_000, None), part(2, 1, 6_000, 9_000)]

    assert CoreDoubleBooked().check(trace_of(core_spans=spans, **doubt)) == []
