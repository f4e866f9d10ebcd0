"""Buffers that several streams share: a lane for each stream, and a lane for each buffer.

An access is a moment: it tells when it was issued, not how long it took. A buffer's lane has the
contents that it held, from the write to the last read, in the colour of the phase that they were
written for; `ingest.derive.buffer_contents` says what these are, and which were overwritten while
somebody still needed them.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import (
    Lane,
    LaneName,
    LaneSpans,
    clipped,
    natural,
    several_ranks,
    span_rows,
)
from stepscope.app.timeline.lanes.segments import STATE_OF_PHASE
from stepscope.ingest.derive.access_order import SYNCHRONISES
from stepscope.ingest.derive.buffer_contents import BufferContents, buffer_contents
from stepscope.ingest.trace import Trace

BUFFERS = "buffers"
STREAM, BUFFER = "stream", "buffer"
GROUPS = {STREAM: "streams", BUFFER: "buffers"}
"""The groups of lanes in each rank, in their order: by streams, by buffers."""
OF_BUFFERS = {palette.WAITING: "record or wait", palette.UNKNOWN: "of no known phase"}
"""Where a state is not called as in the palette."""
_DERIVED: WeakKeyDictionary[Trace, BufferContents] = WeakKeyDictionary()
_STEP = ["rank", "step"]
_KEY = ["rank", "kind", "name"]


def buffer_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `accesses`; none of them lasts, so that none reaches `last_ns`."""
    del last_ns
    if not trace.has("accesses"):
        return LaneSpans((), [])
    states = _states(trace)
    derived = contents_of(trace)
    spans = pl.concat(
        [_accesses(trace, states, derived), *_contents(derived, states)], how="vertical"
    )
    lanes = _ordered(spans.select(_KEY).unique())
    ranks = lanes["rank"].unique().to_list()
    names = tuple(
        LaneName(rank, several_ranks(GROUPS[kind], rank, ranks), plain(name), ((kind, name),))
        for rank, kind, name in lanes.select(_KEY).iter_rows()
    )
    return LaneSpans(names, [span_rows(spans.join(lanes, on=_KEY), "accesses")])


def contents_of(trace: Trace) -> BufferContents:
    """The contents of a trace's buffers, derived once."""
    if trace not in _DERIVED:
        has_times = trace.manifest.clock.has_times
        _DERIVED[trace] = buffer_contents(trace.accesses, trace.segments, has_times=has_times)
    return _DERIVED[trace]


def is_buffer(lane: Lane) -> bool:
    """Whether a lane shows what a buffer held, and not what a stream did."""
    return lane.section == BUFFERS and lane.group.endswith(GROUPS[BUFFER])


def _ordered(seen: pl.DataFrame) -> pl.DataFrame:
    """Number the lanes: the streams of a rank, then its buffers, each naturally by name."""
    keys, kinds = seen.rows(), [*GROUPS]
    order = sorted(
        range(len(keys)),
        key=lambda at: (keys[at][0], kinds.index(keys[at][1]), natural(keys[at][2])),
    )
    return seen[order].with_row_index("lane")


def _states(trace: Trace) -> pl.DataFrame:
    """The state of each row of `accesses`, by the phase of the segment that it is for.

    In a step that was not split, a segment is a row of the batch.
    """
    split = trace.segments.select(_STEP).unique().with_columns(is_split=pl.lit(value=True))
    phase_of_segment, phase_of_row = (
        rows.select(*_STEP, segment=number, **{name: "phase"}).unique(
            [*_STEP, "segment"], keep="first"
        )
        for rows, number, name in (
            (trace.segments, "segment", "of_segment"), (trace.batch_rows, "row", "of_row"),
        )
    )  # fmt: skip
    phase = pl.when(pl.col("is_split").fill_null(value=False)).then("of_segment")
    by_phase = (
        phase.otherwise("of_row")
        .replace_strict(STATE_OF_PHASE, default=palette.UNKNOWN, return_dtype=pl.UInt8)
        .alias("state")
    )
    synchronises = pl.col("op").is_in(SYNCHRONISES)
    return (
        trace.accesses.with_row_index("ref")
        .select("ref", *_STEP, "segment", "op")
        .join(split, on=_STEP, how="left")
        .join(phase_of_segment, on=[*_STEP, "segment"], how="left")
        .join(phase_of_row, on=[*_STEP, "segment"], how="left")
        .with_columns(by_phase)
        .select(
            "ref",
            state=pl.when(synchronises).then(pl.lit(palette.WAITING, pl.UInt8)).otherwise("state"),
        )
        .sort("ref")
        .collect()
    )


def _accesses(trace: Trace, states: pl.DataFrame, derived: BufferContents) -> pl.DataFrame:
    """A moment for each access on its stream; what overwrote too early, and who read too late."""
    overwritten = derived.reads.filter(pl.col("overwrite_ref").is_not_null())
    marked = pl.concat([overwritten["ref"], overwritten["overwrite_ref"].rename("ref")]).unique()
    is_marked = pl.col("ref").is_in(marked.implode())
    mark = pl.lit(palette.OVERWRITTEN, pl.UInt8)
    return (
        trace.accesses.with_row_index("ref")
        .select("rank", "ref", "stream", "ts_ns")
        .with_columns(states["state"])
        .drop_nulls(["rank", "stream", "ts_ns"])
        .select(
            "rank", "ref",
            kind=pl.lit(STREAM),
            name="stream",
            start=clipped(pl.col("ts_ns")),
            end=clipped(pl.col("ts_ns")),
            state=pl.when(is_marked).then(mark).otherwise("state"),
        )
        .collect()
    )  # fmt: skip


def _contents(derived: BufferContents, states: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """What each buffer held, and behind it for how long that was needed and gone."""
    of_buffer = derived.contents.with_columns(states["state"].gather(derived.contents["ref"]))
    columns = ("rank", "ref", pl.lit(BUFFER).alias("kind"), pl.col("buffer").alias("name"))
    yield of_buffer.select(*columns, start="from_ns", end="to_ns", state="state")
    yield of_buffer.drop_nulls("lost_from_ns").select(
        *columns,
        start="lost_from_ns",
        end="lost_to_ns",
        state=pl.lit(palette.OVERWRITTEN, pl.UInt8),
    )
