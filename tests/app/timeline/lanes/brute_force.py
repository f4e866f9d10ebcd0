"""Pixels of lanes by going through all spans of each, for every pixel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from hypothesis import strategies as st

from stepscope.app.palette import SEEN_FIRST
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.span_index import pixel_edges

Span = tuple[int, int, int]
"""Start, end and state."""
Pixel = tuple[int, int, int]
WINDOWS = st.tuples(st.integers(-3, 40), st.integers(1, 9), st.integers(0, 60))
"""Where a window begins, how many pixels it has, and by how much longer than those it is."""


def assert_pixels(
    timeline: Timeline, section: str, lanes: Mapping[str, Sequence[Span]],
    window: tuple[int, int, int],
) -> None:  # fmt: skip
    """Compare every lane of a section, and every pixel of each, with the spans that it has."""
    own = [lane for lane in timeline.lanes if lane.section == section and lane.kind != "counter"]
    assert {f"{lane.group} {lane.label}".strip() for lane in own} == {
        name for name, spans in lanes.items() if spans
    }
    t0, width, longer = window
    t1 = t0 + width + longer
    edges = pixel_edges(t0, t1, width).tolist()
    picture = timeline.query(t0, t1, width, [lane.id for lane in own])
    for row, lane in enumerate(own):
        assert lane.depth == 0
        spans = sorted(lanes[f"{lane.group} {lane.label}".strip()], key=lambda span: span[:2])
        for x in range(width):
            shown = tuple(
                int(each[row, x]) for each in (picture.state, picture.density, picture.count)
            )
            assert shown == pixel_of(spans, edges[x], edges[x + 1]), (lane.label, edges[x])


def pixel_of(spans: Sequence[Span], t0: int, t1: int) -> Pixel:
    """State, density and count of one pixel of a lane."""
    seen = [s for s in spans if (s[0] < t1 and s[1] > t0) or t0 <= s[0] == s[1] < t1]
    if not seen:
        return 0, 0, 0
    busy = _busy(seen, t0, t1)
    density = min(math.ceil(sum(busy.values()) * (255.0 / (t1 - t0))), 255)
    state = _dominant(seen, busy)
    for kind in SEEN_FIRST:
        if busy.get(kind) or (kind in busy and seen[-1][2] == kind):
            state = kind
    return state, max(density, 1), len(seen)


def _busy(spans: Iterable[Span], t0: int, t1: int) -> dict[int, int]:
    busy: dict[int, int] = {}
    for start, end, state in spans:
        busy[state] = busy.get(state, 0) + max(min(end, t1) - max(start, t0), 0)
    return busy


def _dominant(seen: Sequence[Span], busy: Mapping[int, int]) -> int:
    if not any(busy.values()):
        return seen[-1][2]
    return max(busy, key=lambda state: (busy[state], -state))


def joined(moments: Iterable[tuple[int, object, int]]) -> list[Span]:
    """Spans of what is at each moment (time, what, state): one while that is the same."""
    spans: list[Span] = []
    before: tuple[int, object] | None = None
    for ts_ns, what, state in moments:
        if before == (ts_ns - 1, what):
            spans[-1] = (spans[-1][0], ts_ns + 1, state)
        else:
            spans.append((ts_ns, ts_ns + 1, state))
        before = (ts_ns, what)
    return spans
