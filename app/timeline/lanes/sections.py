"""The sections of a timeline, and their order: the same in both fronts and in every trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stepscope.app.timeline.lanes import buffers, segments
from stepscope.app.timeline.lanes.collective_calls import CALLS, call_lanes, end_with_margin
from stepscope.app.timeline.lanes.cores import core_lanes
from stepscope.app.timeline.lanes.kv_blocks import KV_BLOCKS, block_lanes
from stepscope.app.timeline.lanes.lane import LaneSpans
from stepscope.app.timeline.lanes.requests import request_lanes
from stepscope.app.timeline.lanes.slots import SLOTS, slot_lanes
from stepscope.app.timeline.lanes.steps import step_lanes
from stepscope.app.timeline.lanes.tracks import (
    COLLECTIVES,
    OTHERS,
    PYTHON,
    STREAMS,
    THREADS,
    Tracks,
)
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE, queue_lanes
from stepscope.ingest.trace import Trace

OF_TABLES: dict[str, Callable[[Trace, int], LaneSpans]] = {
    "steps": step_lanes,
    segments.SECTION: segments.segment_lanes,
    buffers.BUFFERS: buffers.buffer_lanes,
    "core groups": core_lanes,
    SLOTS: slot_lanes,
    WAITING_QUEUE: queue_lanes,
    "requests": request_lanes,
    KV_BLOCKS: block_lanes,
}
SECTIONS = (
    "steps", segments.SECTION, "core groups", STREAMS, COLLECTIVES, CALLS, buffers.BUFFERS, SLOTS,
    WAITING_QUEUE, "requests", KV_BLOCKS, THREADS, OTHERS, PYTHON,
)  # fmt: skip
"""From the top; counters stand below all of them."""
__all__ = ["OF_TABLES", "SECTIONS", "end_with_margin", "laid_out"]


def laid_out(
    trace: Trace, bounds: tuple[int, int], last_ns: int, tracks: Tracks
) -> Iterator[tuple[str, LaneSpans]]:
    """Each section in its order, with its lanes; what never ended reaches the end of `bounds`.

    Collective calls that never returned reach `last_ns`, which is `end_with_margin`.
    """
    for name in SECTIONS:
        if name == CALLS:
            yield name, call_lanes(trace, last_ns)
        elif name in OF_TABLES:
            yield name, OF_TABLES[name](trace, bounds[1])
        elif name in tracks.sections:
            yield name, tracks.sections[name]
