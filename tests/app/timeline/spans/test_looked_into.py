"""Blocks that the edges of pixels fall into say the same however many are taken at once."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.app.timeline import span_index
from stepscope.app.timeline.span_index import SpanIndex
from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.looked_into import LookedInto
from tests.app.timeline.test_span_index import KINDS, Span, index_of

LANES = np.arange(7)
EDGES = np.linspace(-20, 2_100, 401).astype(np.int64)


def lanes_of_different_length() -> SpanIndex:
    """Lanes of no, 100 and 200 spans, so that most share a block with the lane before."""
    return index_of(
        len(LANES),
        [
            Span(lane, t * 10, t * 10 + 3 + (lane + t) % 7, KINDS[(lane + t) % 4])
            for lane in LANES.tolist()
            for t in range(100 * (lane % 3))
        ],
    )


def test_a_picture_made_of_few_lanes_at_a_time_is_that_of_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "IS_COMPILED", False)
    index = lanes_of_different_length()
    whole, busy = index.pixels(LANES, EDGES), index.busy(LANES, EDGES)
    at_once: list[int] = []
    look = LookedInto._look

    def counted(self: LookedInto, *args: np.ndarray) -> None:
        at_once.append(len(self.block))
        look(self, *args)

    monkeypatch.setattr(LookedInto, "_look", counted)
    monkeypatch.setattr(span_index, "BLOCKS_AT_ONCE", 20)
    parts, busy_of_parts = index.pixels(LANES, EDGES), index.busy(LANES, EDGES)

    assert max(at_once) < len(LANES)
    assert (parts.state == whole.state).all()
    assert (parts.density == whole.density).all()
    assert (parts.count == whole.count).all()
    for kind in busy:
        assert busy_of_parts[kind].tolist() == busy[kind].tolist()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_lane_that_shares_blocks_shows_what_it_shows_alone(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "IS_COMPILED", is_compiled and compiled.IS_COMPILED)
    index = lanes_of_different_length()

    among_others = index.pixels(LANES, EDGES)
    alone = [index.pixels(LANES[lane : lane + 1], EDGES) for lane in LANES]

    for name in ("state", "density", "count"):
        one_by_one = np.concatenate([getattr(each, name) for each in alone])
        assert getattr(among_others, name).tolist() == one_by_one.tolist(), name


def test_more_states_than_fit_side_by_side_are_each_added_up() -> None:
    spans = [Span(0, t << 20, (t + 1 << 20) - t, 1 + t % 9) for t in range(90)]

    busy = index_of(1, spans).busy(np.array([0]), np.array([0, 45 << 20, 90 << 20]))

    assert {kind: ns.tolist() for kind, ns in busy.items()} == {
        state: [
            sum(s.end - s.start for s in half if s.state == state)
            for half in (spans[:45], spans[45:])
        ]
        for state in range(1, 10)
    }
