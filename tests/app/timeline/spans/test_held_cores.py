"""Since when cores were held, of arrays as of rows."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline.spans.held_cores import held_since
from stepscope.ingest.derive.states import with_held
from stepscope.ingest.times import FAR_NS
from tests.traces import trace_of

BLOCK = {"task": 1, "block": 0, "shape": "AIC", "group": 0, "core": 0}
blocks = st.lists(st.tuples(*(st.integers(0, 12) for _ in range(3))), min_size=1, max_size=8)


@given(blocks, st.data())
def test_blocks_of_one_core_are_held_alike_whether_told_as_rows_or_as_arrays(
    drawn: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """Blocks as (dispatch, wait, run); one of a run of 0 has no dispatch, and any end."""
    ends = st.none() | st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(0, 40)
    spans: list[dict[str, Any]] = [
        {**BLOCK, "dispatch_ns": at if run else None, "ts_ns": at + wait, "end_ns": data.draw(ends)}
        for at, wait, run in drawn
    ]
    told = with_held(trace_of(core_spans=spans).core_spans).collect()
    given_ns = told.select(pl.coalesce("dispatch_ns", "ts_ns")).to_series().to_numpy()
    end_ns = told["end_ns"].fill_null(FAR_NS).to_numpy()

    held = held_since(told["ts_ns"].to_numpy(), given_ns, end_ns)

    assert held.tolist() == told["held_ns"].to_list()
