"""The waiting queue: a lane for each position in it, with the request that was there.

A request that is stuck at the head of the line is one long span at position 0. Requests that follow
each other have different shades, so that one moving up can be followed with the eye.
"""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import LaneName, LaneSpans, several_ranks, span_rows
from stepscope.ingest.derive.queue_positions import QUEUE, queue_positions
from stepscope.ingest.trace import Trace

WAITING_QUEUE = "waiting queue"
KEY = [*QUEUE, "position"]
ABOUT = "who is at each position, the head of the line first; a shade for each request"
SHADES = range(palette.SPAN + 1, palette.NAME)
"""What requests are shown in, by the order in which they came; the first stands for unknown."""


def queue_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out the positions of each queue; whoever is still there reaches `last_ns`."""
    found = queue_positions(trace)
    if found.is_empty():
        return LaneSpans((), [])
    lanes = found.group_by(KEY).agg(pl.col("num_positions").max()).sort(KEY, nulls_last=False)
    lanes = lanes.with_row_index("lane").with_columns(
        is_last=pl.col("position") == pl.col("position").max().over(QUEUE)
    )
    ranks = lanes["rank"].unique().sort().to_list()
    names = tuple(
        _name(*row, ranks=ranks) for row in lanes.select(*KEY, "num_positions", "is_last").rows()
    )
    placed = found.drop("num_positions").join(
        lanes.select(*KEY, "lane"), on=KEY, nulls_equal=True, maintain_order="left"
    )
    placed = placed.with_columns(
        start="from_ns", end=pl.max_horizontal("from_ns", pl.col("to_ns").fill_null(last_ns)),
        state=(pl.col("turn") % len(SHADES) + SHADES.start).cast(pl.UInt8),
    )  # fmt: skip
    tables = placed["table"].unique(maintain_order=True)
    parts = (span_rows(placed.filter(pl.col("table") == table), table) for table in tables)
    return LaneSpans(names, [pl.concat(parts)])


def _name(
    rank: int, queue: str | None, position: int, num_positions: int, is_last: bool, *,
    ranks: list[int],
) -> LaneName:  # fmt: skip
    """A position; the last that is followed tells how many more there were."""
    more = num_positions - position - 1
    label = f"position {position}" + f" (+{more:,})" * (is_last and more > 0)
    about = (("position", position),) if queue is None else ()
    return LaneName(rank, several_ranks(plain(queue or ""), rank, ranks), label, about)
