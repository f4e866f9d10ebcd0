"""What was in each buffer from when to when, who read it, and what was overwritten too early.

A write begins new contents of what it writes to. A read found the contents of its `epoch`, where
that is recorded: those of the last write of that epoch before it. Where no epoch is recorded, it is
the last write before it that wrote to where the read begins, or else to any of what it reads.
Contents last until their last read: nobody knows how long a read took, so that is when it was
issued.

Contents are *overwritten* where somebody still needed them: a read by their own segment found what
another segment wrote since (`foreign_reads`; BUF002, BUF004, BUF005), or the host wrote to the
buffer while another stream may still have read it (`access_order`; BUF001). In the first case that
lasts from the write that went over them to the read that came too late; in the second from when the
read was issued to the write that did not wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from stepscope.ingest.derive.access_order import (
    HOST,
    knowledge,
    names_events,
    touches,
    unordered,
)
from stepscope.ingest.derive.foreign_reads import foreign_reads

REF = pl.UInt32


@dataclass(frozen=True, slots=True)
class BufferContents:
    """The contents of all buffers; `ref` and every `*_ref` is a row of `accesses`.

    contents  a row for each write: rank, buffer, ref, from_ns, to_ns (the last read, or when it was
              overwritten; from_ns where nobody read it), and of those that were overwritten
              lost_from_ns, lost_to_ns and overwrite_ref; null of others. Contents that were
              overwritten and whose write is not recorded have the row of the late read as ref.
    reads     a row for each read or copy: ref, write_ref (whose contents it was to find; null where
              these are not known), overwrite_ref (the write that went over them; null of most)
    """

    contents: pl.DataFrame
    reads: pl.DataFrame


def buffer_contents(
    accesses: pl.LazyFrame, segments: pl.LazyFrame, *, has_times: bool = True
) -> BufferContents:
    """Derive the contents of each buffer from `accesses` and `segments`, in order of their rows.

    Without times (a clock that is only an order) it is not asked what the host waited for.
    """
    accesses = accesses.with_row_index("ref")
    rows = touches(accesses).drop_nulls("rank").sort("ref").collect()
    by_time = _last_write(rows, "rank", "buffer", "first"), _last_write(rows, "rank", "buffer")
    rows = rows.with_columns(found=_found(rows, *by_time), before=_first_of(rows, *by_time))
    late = _foreign(accesses, segments)
    if has_times and names_events(accesses):
        late = pl.concat([late, _raced(accesses, rows)]).unique(maintain_order=True)
    reads = (
        rows.filter(~pl.col("is_write"))
        .select("ref", "found")
        .join(
            _of_reads(late), left_on="ref", right_on="read_ref", how="left", maintain_order="left"
        )
        .select("ref", write_ref=pl.coalesce("write_ref", "found"), overwrite_ref="overwrite_ref")
    )
    return BufferContents(_contents(rows, reads, late), reads)


def _last_write(rows: pl.DataFrame, *key: str) -> pl.Series:
    """Of each row the last write before it of the same key, as its place in `rows`; null of none.

    Rows of one moment are in the order in which they were recorded.
    """
    hashed = rows.select(key=pl.struct(key).hash())["key"]
    number = hashed.rank("dense").to_numpy() if len(rows) else np.zeros(0, np.uint32)
    times, is_write = rows["ts_ns"].to_numpy(), rows["is_write"].to_numpy()
    # Most rows are in order of time: then one stable sort by the key is enough.
    is_in_time = bool((times[1:] >= times[:-1]).all())
    order = np.argsort(number, kind="stable") if is_in_time else np.lexsort((times, number))
    place = np.arange(len(rows))
    last = np.maximum.accumulate(np.where(is_write[order], place, -1))
    before = np.concatenate(([-1], last))[:-1] if len(rows) else last
    of_key = number[order]
    is_same = (before >= 0) & (of_key[before.clip(0)] == of_key)
    found = np.full(len(rows), -1)
    found[order] = np.where(is_same, order[before.clip(0)], -1)
    return pl.Series("write", found).replace({-1: None}).cast(REF)


def _overlaps(rows: pl.DataFrame, write: pl.Series) -> pl.Series:
    """Whether each row touches something of the write at a place; null where that is null."""
    first, last = rows["first"].gather(write), rows["last"].gather(write)
    return (rows["first"] < last) & (first < rows["last"])


def _first_of(rows: pl.DataFrame, *candidates: pl.Series) -> pl.Series:
    """The row number of the first candidate that touches something of what the row does."""
    ref = rows["ref"]
    frame = pl.DataFrame(
        {
            str(at): ref.gather(each).set(~_overlaps(rows, each).fill_null(value=False), None)
            for at, each in enumerate(candidates)
        }
    )
    return frame.select(pl.coalesce(pl.all()))["0"]


def _found(rows: pl.DataFrame, *by_time: pl.Series) -> pl.Series:
    """The row number of the write whose contents each read found."""
    key = ("rank", "buffer", "epoch")
    of_epoch = _first_of(rows, _last_write(rows, *key, "first"), _last_write(rows, *key))
    in_order = _first_of(rows, *(_of_unknown_epoch(rows, each) for each in by_time))
    is_known = rows["epoch"].is_not_null()
    frame = pl.DataFrame({"epoch": of_epoch, "order": in_order, "is_known": is_known})
    known = pl.when("is_known").then("epoch")
    return frame.select(pl.coalesce(known, "order").alias("found"))["found"]


def _of_unknown_epoch(rows: pl.DataFrame, write: pl.Series) -> pl.Series:
    """The writes of which nobody can tell by their epoch whether a read found them."""
    is_known = rows["epoch"].is_not_null() & rows["epoch"].gather(write).is_not_null()
    return write.set(is_known, None)


def _foreign(accesses: pl.LazyFrame, segments: pl.LazyFrame) -> pl.DataFrame:
    """Reads that found what another segment wrote after their own segment had written there."""
    is_newer = pl.col("epoch") > pl.col("own_epoch")
    late = foreign_reads(accesses, segments).filter(is_newer)
    refs = late.select(read_ref="ref", write_ref="own_ref", overwrite_ref="writer_ref")
    return refs.cast(REF).unique(maintain_order=True).collect()


def _raced(accesses: pl.LazyFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Reads that the host did not wait for before it wrote again; each with the first such write.

    Columns: read_ref, write_ref (null where no write before it is recorded) and overwrite_ref.
    """
    touched = rows.lazy()
    reads = touched.filter(~pl.col("is_write"), pl.col("stream") != HOST)
    writes = touched.filter("is_write", pl.col("stream") == HOST)
    pairs = unordered(reads, writes, "forward", lambda: knowledge(accesses))
    refs = pairs.select(read_ref="ref", write_ref="before", overwrite_ref="other_ref")
    ordered = refs.cast(REF).sort("read_ref", "overwrite_ref")
    return ordered.unique("read_ref", keep="first", maintain_order=True).collect()


def _of_reads(late: pl.DataFrame) -> pl.DataFrame:
    """Of each late read the first write that went over its contents."""
    return late.sort("read_ref", "overwrite_ref").unique("read_ref", keep="first")


def _contents(rows: pl.DataFrame, reads: pl.DataFrame, late: pl.DataFrame) -> pl.DataFrame:
    when = rows.select("ref", "ts_ns")
    last_reads = (
        reads.filter(pl.col("overwrite_ref").is_null())
        .drop_nulls("write_ref")
        .join(when, on="ref", how="left")
        .group_by("write_ref")
        .agg(last_ns=pl.col("ts_ns").max())
    )
    lost = _lost(late, when)
    written = rows.filter("is_write").select("rank", "buffer", "ref", "ts_ns")
    unwritten = lost.filter(pl.col("write_ref").is_in(written["ref"].implode()).not_())
    others = unwritten.select(ref="write_ref").join(
        rows.select("rank", "buffer", "ref"), on="ref", how="inner", maintain_order="left"
    )
    every = pl.concat([written, others.with_columns(ts_ns=pl.lit(None, pl.Int64))], how="diagonal")
    last, is_lost = pl.col("last_ns"), pl.col("lost_to_ns").is_not_null()
    return (
        every.join(last_reads, left_on="ref", right_on="write_ref", how="left")
        .join(lost, left_on="ref", right_on="write_ref", how="left")
        .with_columns(
            from_ns=pl.coalesce("ts_ns", "lost_from_ns"),
            lost_to_ns=pl.when(is_lost).then(pl.max_horizontal("lost_to_ns", last)),
        )
        .select(
            "rank", "buffer", "ref", "from_ns",
            to_ns=pl.when(is_lost)
            .then(pl.max_horizontal("lost_from_ns", "from_ns"))
            .otherwise(pl.coalesce(last, "from_ns")),
            lost_from_ns="lost_from_ns", lost_to_ns="lost_to_ns", overwrite_ref="overwrite_ref",
        )
        .sort("ref")
    )  # fmt: skip


def _lost(late: pl.DataFrame, when: pl.DataFrame) -> pl.DataFrame:
    """From when to when each contents were overwritten and still needed, and by which write."""
    read_ns, over_ns = (when.rename({"ref": f"{of}_ref", "ts_ns": f"{of}_ns"}) for of in
                        ("read", "overwrite"))  # fmt: skip
    return (
        late.join(read_ns, on="read_ref")
        .join(over_ns, on="overwrite_ref")
        .with_columns(write_ref=pl.coalesce("write_ref", "read_ref"))
        .group_by("write_ref")
        .agg(
            lost_from_ns=pl.min_horizontal("read_ns", "overwrite_ns").min(),
            lost_to_ns=pl.max_horizontal("read_ns", "overwrite_ns").max(),
            overwrite_ref=pl.col("overwrite_ref").sort_by("overwrite_ns", "overwrite_ref").first(),
        )
    )
