"""The collective calls of a recording: a lane for each rank of a group, a span for each call.

The lanes of a group's ranks are next to each other. A call that never returned reaches the end of
the trace, and a rank that never came to a call in which others wait has a span that says so.
"""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import LaneName, LaneSpans, Subject, natural, span_rows
from stepscope.app.widths import fit
from stepscope.ingest.derive.collectives.calls import BLOCKED, GROUP, absences, calls
from stepscope.ingest.trace import Trace

CALLS = "collective calls"
LANE = [*GROUP, "rank"]
NO_GROUP = "no group"
MOST_LETTERS = 24
MARGIN = 20
"""What part of the trace's extent is left at its end for calls that never returned."""
_SPAN = [*LANE, "ref", "start", "end", "state"]


def subject_of_group(group: str, expected_ranks: str) -> Subject:
    """What a lane of a group is about, by which findings and searches lead to it."""
    return "calls", f"{group} of {expected_ranks}"


def end_with_margin(trace: Trace, bounds: tuple[int, int]) -> int:
    """Until when calls that never returned are drawn: a little after the last row of the trace.

    A deadlock ends a recording: without that, the call that completed it would be 1 ns long.
    """
    first, last = bounds
    endless = trace.collectives.filter(pl.col("inferred").is_null(), pl.col("dur_ns").is_null())
    latest = endless.select(pl.col("ts_ns").max()).collect().item()
    margin = max((last - first) // MARGIN, 1)
    return last if latest is None or latest < last - margin else last + margin


def call_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out recorded `collectives`; a call that never returned reaches `last_ns`."""
    recorded = calls(trace)
    if recorded.is_empty():
        return LaneSpans((), [])
    end = pl.when(fate=BLOCKED).then(last_ns).otherwise(pl.coalesce("to_ns", "from_ns"))
    state = (
        pl.when(fate=BLOCKED).then(palette.BLOCKED)
        .when(pl.col("mark").is_not_null()).then(palette.MISMATCHED)
        .otherwise(palette.COMMUNICATION)
    )  # fmt: skip
    called = recorded.with_columns(
        start="from_ns", end=pl.max_horizontal("from_ns", end), state=state
    ).select(_SPAN)
    absent = absences(trace, recorded).with_columns(
        start="from_ns", end=pl.lit(last_ns), state=pl.lit(palette.ABSENT)
    )
    spans = pl.concat([called, absent.select(_SPAN)], how="vertical_relaxed")
    lanes = _lanes(spans)
    names = _names(lanes)
    placed = spans.join(lanes, on=LANE, how="left", maintain_order="left")
    return LaneSpans(names, [span_rows(placed, "collectives")])


def _lanes(spans: pl.DataFrame) -> pl.DataFrame:
    seen = spans.select(LANE).unique()
    rows = sorted(seen.rows(), key=lambda key: (natural(key[0]), natural(key[1]), key[2]))
    return pl.DataFrame(rows, schema=seen.schema, orient="row").with_row_index("lane")


def _names(lanes: pl.DataFrame) -> tuple[LaneName, ...]:
    """A lane by its rank; where there are several groups, below the name of its group."""
    groups = lanes.select(GROUP).unique().rows()
    names = [name for name, _ in groups]
    several = lanes["rank"].n_unique() > 1

    def called(name: str, ranks: str) -> str:
        text = plain(name) or NO_GROUP
        return text if names.count(name) < 2 else f"{text} of {fit(plain(ranks), MOST_LETTERS)}"

    def named(group: str, ranks: str, rank: int) -> LaneName:
        about = (subject_of_group(group, ranks), ("calls", None))
        if len(groups) > 1:
            return LaneName(rank, called(group, ranks), f"rank {rank}", about)
        own = called(group, ranks)
        return LaneName(rank, "", f"rank {rank} · {own}" if several else own, about)

    return tuple(named(*key) for key in lanes.select(LANE).iter_rows())
