"""Who held a core: by dispatch, and by start where blocks did not run in turn."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analyzers.rules.cor.occupancy import CORE, holds, run_in_turn, with_holder
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, part
from tests.traces import trace_of

_HELD = ("task", "holder_end_ns")
_lengths = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=8)


def _core(core: int, lengths: list[tuple[int, int]], share: float) -> list[Row]:
    """Blocks that run one after the other, each dispatched while the one before it runs."""
    ends = list(accumulate(gap + length for gap, length in lengths))
    begins = [end - length for end, (_, length) in zip(ends, lengths, strict=True)]
    before = [0, *begins[:-1]]
    return [
        part(
            100 * core + at,
            core,
            begin,
            end,
            dispatch_ns=late + max(1, int(share * (begin - late))),
        )
        for at, (begin, end, late) in enumerate(zip(begins, ends, before, strict=True))
    ]


def _held(trace: Trace, since: str) -> list[dict[str, Any]]:
    rows = with_holder(holds(trace).drop("holder", "holder_end_ns"), since)
    return rows.sort(*CORE, "task").select(_HELD).collect().to_dicts()


@given(_lengths, _lengths, st.floats(0.1, 1.0), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_blocks_that_ran_in_turn_have_one_holder_by_dispatch_and_by_start(
    one: list[tuple[int, int]], other: list[tuple[int, int]], share: float, random: Any
) -> None:
    spans = _core(0, one, share) + _core(1, other, share)
    trace = trace_of(core_spans=random.sample(spans, len(spans)))

    assert run_in_turn(trace)
    assert _held(trace, "dispatch_ns") == _held(trace, "ts_ns")


def test_a_block_that_ran_before_one_dispatched_earlier_did_not_run_in_turn() -> None:
    spans = [part(1, 0, 50, 60, dispatch_ns=0), part(2, 0, 10, 20, dispatch_ns=5)]

    trace = trace_of(core_spans=spans)

    assert not run_in_turn(trace)
    assert [row["holder_end_ns"] for row in _held(trace, "dispatch_ns")] == [None, 60]
    assert [row["holder_end_ns"] for row in _held(trace, "ts_ns")] == [20, None]


def test_the_holder_of_a_moment_does_not_depend_on_the_order_of_rows() -> None:
    spans = [part(task, 0, 10, 10 + task, dispatch_ns=10) for task in range(1, 6)]

    told = [_held(trace_of(core_spans=rows), "ts_ns") for rows in (spans, spans[::-1])]

    assert told[0] == told[1]
    assert pl.DataFrame(told[0])["holder_end_ns"].null_count() == 1
