"""Which segment of a batch read what another segment had written.

A `segment` is a part of a batch that runs by itself, or a row of the batch where the step is not
split (`segments` has no row for it). The `epoch` of an access numbers the write that the contents
come from, so whose contents a read found needs no order of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.once import once
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

STEP = ("rank", "step")
CONTENTS = (*STEP, "buffer", "epoch")
PLACE = (*STEP, "buffer", "first", "segment")


def foreign_reads(trace: Trace) -> pl.LazyFrame:
    """Reads whose segment did not write what it found, and another one did, in the same step.

    Columns: those of an access, is_split (whether its step runs in segments), writer (the segment
    that wrote what was found), writer_stream, own_epoch (of the segment's last write to that place;
    null where it wrote none).
    """
    return once(trace, "foreign reads", lambda: _foreign_reads(trace))


def _foreign_reads(trace: Trace) -> pl.LazyFrame:
    known = [pl.col(name).is_not_null() for name in (*STEP, "ts_ns", "buffer", "epoch", "segment")]
    accesses = trace.accesses.filter(*known).with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
    written, read = (accesses.filter(pl.col("op") == op) for op in ("write", "read"))
    # What a segment wrote itself is nearly all; the rest is little.
    own_contents = pl.struct(*CONTENTS, "segment").hash()
    by_itself = written.select(_contents=own_contents)
    others = (
        read.with_columns(_contents=own_contents)
        .join(by_itself, on="_contents", how="anti")
        .drop("_contents")
        .collect()
        .lazy()
    )
    who = pl.col("segment", "stream").sort_by("segment", "stream").first()
    writers = (
        written.join(others, on=CONTENTS, how="semi")
        .group_by(CONTENTS)
        .agg(who)
        .rename({"segment": "writer", "stream": "writer_stream"})
    )
    own = (
        written.join(others, on=PLACE, how="semi", nulls_equal=True)
        .group_by(PLACE)
        .agg(own_epoch=pl.col("epoch").max())
    )
    split = trace.segments.select(*STEP).unique().with_columns(is_split=pl.lit(value=True))
    return (
        others.join(writers, on=CONTENTS, how="left")
        .filter(pl.col("writer").is_not_null())
        .join(own, on=PLACE, how="left", nulls_equal=True)
        .join(split, on=STEP, how="left")
        .with_columns(pl.col("is_split").fill_null(value=False))
        .select(
            *STEP, "ts_ns", "buffer", "first", "last", "stream", "segment", "epoch", "is_split",
            "writer", "writer_stream", "own_epoch",
        )
    )  # fmt: skip


def have_company(trace: Trace) -> bool:
    """Tell whether two sequences of one step, which was not split, used a buffer."""
    used = trace.accesses.filter(pl.col("segment").is_not_null())
    alone = used.join(trace.segments.select(*STEP).unique(), on=STEP, how="anti")
    return _are_several(alone)


def is_ever_split(trace: Trace) -> bool:
    """Tell whether two segments of one step used a buffer."""
    used = trace.accesses.filter(pl.col("segment").is_not_null())
    return _are_several(used.join(trace.segments.select(*STEP).unique(), on=STEP, how="semi"))


def _are_several(rows: pl.LazyFrame) -> bool:
    """Whether any step has rows of two segments."""
    spread = pl.col("segment").max() - pl.col("segment").min()
    return any_row(rows.group_by(STEP).agg(spread=spread).filter(pl.col("spread") > 0))


def by_buffer(reads: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """A row per buffer of some foreign reads: the first of them, and how many there are.

    Gives rank and buffer; ts_ns, step, segment, first, writer, epoch and own_epoch of the first
    read with `with_requests`; end_ns; num_steps, num_sequences and count. In order of time.
    """
    first = ("ts_ns", "step", "segment", "first", "writer", "epoch", "own_epoch")
    buffers = (
        reads.group_by("rank", "buffer")
        .agg(
            pl.col(first).sort_by(first).first(),
            end_ns=pl.col("ts_ns").max(),
            num_steps=pl.col("step").n_unique(),
            num_sequences=pl.col("segment").n_unique(),
            count=pl.len(),
        )
        .sort("ts_ns", "rank", "buffer")
    )
    return with_requests(buffers, trace).sort("ts_ns", "rank", "buffer")


def with_requests(reads: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add request and writer_request: whose the rows of the batch are; null where not recorded."""
    reads = reads.collect().lazy()
    rows = (
        trace.batch_rows.join(reads, on=STEP, how="semi")
        .group_by(*STEP, "row")
        .agg(pl.col("request").min())
    )
    for row, request in (("segment", "request"), ("writer", "writer_request")):
        named = rows.rename({"row": row, "request": request})
        reads = reads.join(named, on=[*STEP, row], how="left")
    return reads


def named(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Of a row of `by_buffer`, in words: its place, whose read it was, who had written there."""
    place = "" if row["first"] is None else f"row {row['first']} "
    whose = row["request"] or f"row {row['segment']} of the batch"
    return place, whose, row["writer_request"] or f"row {row['writer']}"
