"""Events as columns, within the limits: long texts, deep arguments, tracks without number."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from stepscope.ingest.limits import Limits, raised_by

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKETS = bytes(1 if c in b"[{" else 255 if c in b"]}" else 0 for c in range(256))


def bounded(events: pl.DataFrame, limits: Limits) -> tuple[pl.DataFrame, dict[str, int]]:
    """Cut what is beyond the limits; gives how many events of which kind that was.

    Names are cut short, arguments left out, and what is on one track too many is on none.
    """
    repaired: dict[str, int] = {}
    for name in ("name", "cat"):
        is_long = _is_long(events[name], limits)
        if num := _num(is_long):
            events = _replaced(events, (name,), is_long, pl.col(name).str.head(limits.text // 4))
            repaired[f"a {name} of more than {limits.text:,} bytes cut ({raised_by('text')})"] = num
    is_long = _is_long(events["args"], limits)
    if num := _num(is_long):
        events = _replaced(events, ("args",), is_long)
        repaired[f"args of more than {limits.text:,} bytes left out ({raised_by('text')})"] = num
    is_deep = _is_deep(events["args"], limits.depth)
    if num := _num(is_deep):
        events = _replaced(events, ("args",), is_deep)
        repaired[f"args deeper than {limits.depth:,} left out ({raised_by('depth')})"] = num
    is_stray = _is_on_a_track_too_many(events, limits.tracks)
    if num := _num(is_stray):
        events = _replaced(events, ("pid", "tid"), is_stray)
        repaired[f"tracks beyond {limits.tracks:,} shown as one ({raised_by('tracks')})"] = num
    return events, repaired


def depth_of(text: bytes) -> int:
    """How many brackets stand open at most, outside of strings."""
    steps = np.frombuffer(_STRING.sub(b"", text).translate(_BRACKETS), np.int8)
    return int(steps.cumsum(dtype=np.int64).max(initial=0))


def _num(which: pl.Series) -> int:
    return int(which.sum())


def _replaced(
    events: pl.DataFrame, columns: tuple[str, ...], where: pl.Series, by: pl.Expr | None = None
) -> pl.DataFrame:
    return events.with_columns(
        pl.when(~where).then(pl.col(column)).otherwise(by).alias(column) for column in columns
    )


def _is_long(text: pl.Series, limits: Limits) -> pl.Series:
    return (text.str.len_bytes() > limits.text).fill_null(value=False)


def _is_deep(args: pl.Series, depth: int) -> pl.Series:
    """Whether arguments nest deeper; few have as many brackets, and only these are counted."""
    # A bracket opens and closes, so that the length tells most of them apart.
    doubtful = (args.str.len_bytes() > 2 * depth).fill_null(value=False).arg_true()
    texts = args.gather(doubtful)
    num_open = texts.str.count_matches("{", literal=True) + texts.str.count_matches(
        "[", literal=True
    )
    doubtful = doubtful.filter(num_open > depth)
    deep = [row for row in doubtful.to_list() if depth_of(args[row].encode()) > depth]
    return (
        pl.Series(args.name, [False], pl.Boolean).new_from_index(0, len(args)).scatter(deep, True)
    )


def _is_on_a_track_too_many(events: pl.DataFrame, most: int) -> pl.Series:
    """Whether an event is on a track that comes after so many others; names of tracks are not."""
    nowhere = pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(events))
    num_pids, num_tids = events.select(pl.col("pid", "tid").approx_n_unique()).row(0)
    if num_pids * num_tids <= most // 2:
        return nowhere
    places = events.select("pid", "tid", is_name=pl.col("ph") == "M")
    known = places.filter(~pl.col("is_name")).select("pid", "tid").unique(maintain_order=True)
    stray = known.slice(most).with_columns(is_stray=True)
    if stray.is_empty():
        return nowhere
    found = places.join(
        stray, on=["pid", "tid"], how="left", nulls_equal=True, maintain_order="left"
    )
    return found.select(pl.col("is_stray").fill_null(value=False) & ~pl.col("is_name")).to_series()
