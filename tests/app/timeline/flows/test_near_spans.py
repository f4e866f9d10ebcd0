"""What is looked up span by span is what the index says, in whichever order it is asked."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.flows.near_spans import NearSpans
from tests.app.timeline.profiles import kernel
from tests.tiers import slow
from tests.traces import trace_of

lanes = st.lists(st.integers(0, 300), min_size=1, max_size=3)
asked = st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 3_000)), max_size=40)


@slow
@settings(max_examples=40)
@given(lanes, asked, st.randoms(use_true_random=False))
def test_lookups_in_any_order_are_those_of_the_index(
    sizes: list[int], wanted: list[tuple[int, int]], dice: Random
) -> None:
    spans = []
    for stream, size in enumerate(sizes):
        at = 0
        for number in range(size):
            at += dice.choice((0, 1, 3, 9))
            spans.append(kernel(f"{number}", at, took := dice.choice((0, 1, 7)), stream))
            at += took
    timeline = Timeline.of(trace_of(spans=spans))

    for section in timeline._sections:
        index, near = section.index, NearSpans(section.index)
        for place in range(0, len(index), 7):
            assert near.times(place) == (
                index.starts[place],
                index.ends(slice(place, place + 1))[0],
            )
        for lane, ts_ns in wanted:
            if lane < len(index.offsets) - 1:
                own, at_ns = np.array([lane]), np.array([ts_ns])
                assert near.began_by(lane, ts_ns) == index.began_by(own, at_ns)[0]
                assert near.ended_by(lane, ts_ns) == index.ended_by(own, ts_ns)[0]
