"""Which segment of a batch read what another segment had written.

What such a read is, is defined in `ingest/derive/foreign_reads.py`, which timelines use as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.once import once
from stepscope.ingest.derive.foreign_reads import STEP
from stepscope.ingest.derive.foreign_reads import foreign_reads as reads_of_others
from stepscope.ingest.trace import Trace

__all__ = ["STEP", "by_buffer", "foreign_reads", "have_company", "is_ever_split", "named"]


def foreign_reads(trace: Trace) -> pl.LazyFrame:
    """Reads whose segment did not write what it found, as `ingest.derive.foreign_reads` says."""
    return once(trace, "foreign reads", lambda: reads_of_others(trace.accesses, trace.segments))


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
