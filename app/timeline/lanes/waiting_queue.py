"""The waiting queue: a lane for each position in it, with the request that was there.

A request that is stuck at the head of the line is one long span at position 0. Requests that follow
each other have different shades, so that one moving up can be followed with the eye.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import LaneName, LaneSpans, several_ranks, span_rows
from stepscope.ingest.derive.queue_positions import WaitingQueue, waiting_queues
from stepscope.ingest.trace import Trace

WAITING_QUEUE = "waiting queue"
ABOUT = "who is at each position, the head of the line first; a shade for each request"
SHADES = range(palette.SPAN + 1, palette.NAME)
"""What requests are shown in, by the order in which they came; the first stands for unknown."""
_SHADE_OF = np.array(SHADES, np.uint8)


def queue_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out the positions of each queue; whoever is still there reaches `last_ns`."""
    queues = [*waiting_queues(trace)]
    ranks = sorted({queue.rank for queue in queues})
    names = tuple(
        _name(queue, position, ranks) for queue in queues for position in range(queue.num_followed)
    )
    firsts = accumulate((queue.num_followed for queue in queues), initial=0)
    parts = (
        _spans(queue, part, first, last_ns)
        for queue, first in zip(queues, firsts, strict=False)
        for part in queue.parts
    )
    return LaneSpans(names, parts)


def _spans(queue: WaitingQueue, part: pl.DataFrame, first: int, last_ns: int) -> pl.DataFrame:
    entry = part["entry"].to_numpy()
    placed = part.select(
        lane=pl.col("position") + first,
        start="from_ns",
        end=pl.max_horizontal("from_ns", pl.col("to_ns").fill_null(last_ns)),
        state=pl.Series(_SHADE_OF[queue.turn[entry] % len(SHADES)]),
        ref=pl.Series(queue.ref[entry]),
    )
    return span_rows(placed, queue.table)


def _name(queue: WaitingQueue, position: int, ranks: list[int]) -> LaneName:
    """A position; the last that is followed tells how many more there were."""
    more = queue.num_positions - position - 1
    is_last = position == queue.num_followed - 1
    label = f"position {position}" + f" (+{more:,})" * (is_last and more > 0)
    about = (("position", position),) if queue.queue is None else ()
    group = several_ranks(plain(queue.queue or ""), queue.rank, ranks)
    return LaneName(queue.rank, group, label, about)
