"""Which slice each end of an arrow touches: Perfetto's protobuf ties arrows to events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
End = dict[str, Any]
_SAID = ("arrow", "flow", "end", "offset_ns", "name", "category")


def touching(flows: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """Add to ends of arrows what they touch, in order of time.

    `span` is the innermost slice of the track that is open then or ends just then, null where
    there is none, and `offset_ns` how long after its begin. `arrow` numbers the arrows from 1;
    `is_last` tells the last of an arrow's ends. An end `is_plain` when nothing need be said of it
    but its arrow: it is the last, a finish, where its slice begins, and the first end says the
    rest.
    """
    ordered = flows.sort("ts_ns", maintain_order=True).with_columns(
        arrow=pl.struct("rank", "flow").rank("dense").cast(pl.Int64)
    )
    begins = slices.select("span", _begun="ts_ns")
    placed = ordered.with_columns(_span(ordered, slices)).join(
        begins, on="span", how="left", maintain_order="left"
    )
    return placed.with_columns(
        (pl.col("ts_ns") - pl.col("_begun")).fill_null(0).alias("offset_ns"),
        (pl.int_range(pl.len()).over("arrow") == pl.len().over("arrow") - 1).alias("is_last"),
    ).with_columns(_is_plain().alias("is_plain"))


def details(ends: Sequence[End]) -> str | None:
    """What `flow_ids` don't say of the ends at one event, as JSON; None when there is nothing."""
    told = [
        {name: end[name] for name in _SAID if end[name] is not None}
        for end in ends
        if not end["is_plain"]
    ]
    return msgspec.json.encode(told).decode() if told else None


def _is_plain() -> pl.Expr:
    """An arrow without another end is not plain: nothing else would tell its name."""
    alike = [
        pl.col(name).eq_missing(pl.col(name).first().over("arrow")) for name in ("name", "category")
    ]
    is_finish = pl.col("is_last") & (pl.col("end") == "finish") & (pl.col("offset_ns") == 0)
    return pl.all_horizontal(is_finish, pl.len().over("arrow") > 1, *alike)


def _span(ends: pl.DataFrame, slices: pl.DataFrame) -> pl.Series:
    """Of the slices begun before an end of an arrow, the latest that has not ended before it."""
    begun = slices.filter(pl.col("form") != "instant").sort("ts_ns", maintain_order=True)
    latest = ends.join_asof(
        begun.select("track", "ts_ns", "span"), on="ts_ns", by="track", check_sortedness=False
    )
    times = ends["ts_ns"].to_numpy()
    parents, until = _outward(slices)
    found = latest["span"].fill_null(-1).to_numpy().copy()
    while len(over := np.flatnonzero((found >= 0) & (until[found] < times))):
        found[over] = parents[found[over]]
    spans = pl.Series("span", found)
    return spans.set(spans < 0, None)


def _outward(slices: pl.DataFrame) -> tuple[Ints, Ints]:
    """The slice around each (-1: none) and when it ends, by number; the last stands for none."""
    numbered = slices.sort("span").select(
        pl.col("parent").fill_null(-1),
        (pl.col("ts_ns") + pl.col("dur_ns")).fill_null(np.iinfo(np.int64).max).alias("until"),
    )
    return numbered["parent"].to_numpy(), np.append(numbered["until"].to_numpy(), 0)
