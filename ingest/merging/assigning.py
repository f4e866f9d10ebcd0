"""Which recorded step each span of a profile is of.

On the thread of its tag a step lasts from when it began to run until it ended, or until the next
one begins there: what is sampled behind the tag of a forward pass is of the step, too. What was
launched meanwhile is of the step by correlation, as in a profile alone.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.derive.launches import tag_spans

_LANE = r" #\d+$"
NEEDED = ("span", "track", "name", "category", "form", "ts_ns", "dur_ns", "correlation", "step")


def assigned(spans: pl.DataFrame, pairs: pl.DataFrame) -> pl.Series:
    """The recorded step of each span of a rank, null where it is of none.

    `spans` have the columns of `NEEDED` on the recording's clock, their `step` being the
    profile's own; `pairs` are the steps of a `Pairing`, and `runs_ns`, when a step began to run.
    """
    steps = _extents(pairs).join(_tags(spans), on="own", how="inner", maintain_order="left")
    told = spans.drop("step").with_columns(_base(spans["track"]))
    return tag_spans(told, steps.select("step", "span", "ts_ns", "dur_ns"))["step"]


def _extents(pairs: pl.DataFrame) -> pl.DataFrame:
    """When each step had its thread: ts_ns and dur_ns."""
    reached = pl.col("to_ns").shift(1).fill_null(pl.col("runs_ns").min())
    begun = pl.min_horizontal("from_ns", pl.max_horizontal("runs_ns", reached))
    told = pairs.sort("from_ns").with_columns(begun.alias("ts_ns"))
    next_ns = pl.col("ts_ns").shift(-1).fill_null(pl.col("ends"))
    until = pl.max_horizontal("to_ns", pl.min_horizontal("ends", next_ns))
    return told.select("step", "own", "ts_ns", (until - pl.col("ts_ns")).alias("dur_ns"))


def _tags(spans: pl.DataFrame) -> pl.DataFrame:
    """The row of each step's tag: of what is of the step, what began first and lasted longest."""
    slices = spans.select("step", "ts_ns", "dur_ns", "correlation").with_row_index("span")
    own = slices.drop_nulls(["step", "dur_ns"]).sort(
        "ts_ns", -pl.col("dur_ns"), pl.col("correlation").is_not_null(), maintain_order=True
    )
    first = own.unique("step", keep="first", maintain_order=True)
    return first.select(pl.col("step").alias("own"), pl.col("span").cast(pl.Int64))


def _base(track: pl.Series) -> pl.Series:
    """The track of which a track is a further lane, else the track itself."""
    tracks = track.cast(pl.String).unique()
    known = set(tracks)
    bases = tracks.str.replace(_LANE, "")
    base = {own: of if of in known else own for own, of in zip(tracks, bases, strict=True)}
    names = track.cast(pl.String).replace_strict(base, return_dtype=pl.String)
    return names.alias("base")
