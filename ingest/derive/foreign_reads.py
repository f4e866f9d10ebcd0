"""Which segment of a batch read what another segment had written.

A `segment` is a part of a batch that runs by itself, or a row of the batch where the step is not
split (`segments` has no row for it). The `epoch` of an access numbers the write that the contents
come from, so whose contents a read found needs no order of rows.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.times import FAR_NS

STEP = ("rank", "step")
CONTENTS = (*STEP, "buffer", "epoch")
PLACE = (*STEP, "buffer", "first", "segment")


def foreign_reads(accesses: pl.LazyFrame, segments: pl.LazyFrame) -> pl.LazyFrame:
    """Reads whose segment did not write what it found, and another one did, in the same step.

    Columns: those of an access, is_split (whether its step runs in segments), writer (the segment
    that wrote what was found), writer_stream, own_epoch (of the segment's last write to that place;
    null where it wrote none). Where `accesses` numbers its rows by `ref`, also `ref`, `writer_ref`
    (the first write of what was found) and `own_ref` (that last write).
    """
    refs = [name for name in ("ref",) if name in accesses.collect_schema()]
    known = [pl.col(name).is_not_null() for name in (*STEP, "ts_ns", "buffer", "epoch", "segment")]
    accesses = accesses.filter(*known).with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
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
        .agg(who, *(pl.col(name).min().alias(f"writer_{name}") for name in refs))
        .rename({"segment": "writer", "stream": "writer_stream"})
    )
    own = (
        written.join(others, on=PLACE, how="semi", nulls_equal=True)
        .group_by(PLACE)
        .agg(
            *(pl.col(name).sort_by("epoch", name).last().alias(f"own_{name}") for name in refs),
            own_epoch=pl.col("epoch").max(),
        )
    )
    split = segments.select(*STEP).unique().with_columns(is_split=pl.lit(value=True))
    return (
        others.join(writers, on=CONTENTS, how="left")
        .filter(pl.col("writer").is_not_null())
        .join(own, on=PLACE, how="left", nulls_equal=True)
        .join(split, on=STEP, how="left")
        .with_columns(pl.col("is_split").fill_null(value=False))
        .select(
            *STEP, "ts_ns", "buffer", "first", "last", "stream", "segment", "epoch", "is_split",
            "writer", "writer_stream", "own_epoch",
            *(f"{whose}{name}" for name in refs for whose in ("", "writer_", "own_")),
        )
    )  # fmt: skip
