"""Cores are laid out some after others, and no one can tell from the lanes how many at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes import cores
from tests.traces import trace_of

BLOCKS = st.lists(
    st.tuples(
        st.integers(0, 1), st.integers(-2, 3), st.integers(0, 60), st.integers(0, 9),
        st.none() | st.integers(0, 9), st.sampled_from(["AIC", "AIV", "MIX", "DUMMY", "new"]),
    ),
    min_size=1, max_size=30,
)  # fmt: skip


def shown(blocks: list[tuple[Any, ...]], *, moved: bool) -> list[Any]:
    """Lanes, and all their spans; a core that `moved` is of another group from a time on."""
    timeline = Timeline.of(
        trace_of(
            core_spans=[
                {
                    "rank": rank, "core": core, "ts_ns": ts, "dispatch_ns": ts - waited,
                    "end_ns": None if took is None else ts + took, "shape": shape,
                    "core_kind": "AIC", "group": core + (moved and ts > 30), "task": at, "block": 0,
                }
                for at, (rank, core, ts, waited, took, shape) in enumerate(blocks)
            ]
        )
    )  # fmt: skip
    lanes = range(len(timeline.lanes))
    return [timeline.lanes, *(timeline.spans(lane, *timeline.bounds, 99) for lane in lanes)]


@given(BLOCKS, st.sampled_from(["mixed", "apart", "moved"]), st.integers(1, 9), st.integers(1, 9))
def test_blocks_lie_where_they_lie_when_all_are_laid_out_at_once(
    blocks: list[tuple[Any, ...]], lie: str, at_once: int, worth_a_lane: int
) -> None:
    moved = lie == "moved"
    if lie == "apart":
        blocks = sorted(blocks, key=lambda block: block[:2])
    whole = shown(blocks, moved=moved)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cores, "ROWS_AT_ONCE", at_once)
        patch.setattr(cores, "ROWS_WORTH_A_LANE", worth_a_lane)

        assert shown(blocks, moved=moved) == whole
    assert sum(map(len, whole[1:])) >= len(blocks)


def test_blocks_that_follow_each_other_are_held_and_run_in_turn() -> None:
    blocks = [(0, 0, 10, 4, 5, "AIC"), (0, 0, 20, 2, 5, "AIC"), (0, 1, 12, 0, 5, "AIV")]

    lanes, *spans = shown(blocks, moved=False)

    times = [[(span.start_ns, span.end_ns) for span in lane] for lane in spans]
    assert [lane for lane in times if lane] == [
        [(6, 10), (10, 15), (18, 20), (20, 25)], [(12, 17)],
    ]  # fmt: skip
    assert len(lanes) == len(times)
