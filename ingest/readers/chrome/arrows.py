"""Launches from flow arrows: a launch and its device tasks get the same correlation number.

GPU profiles have a "correlation" in the args of both. Profiles of an Ascend NPU only have arrows:
torch_npu's `async_npu` (from a PyTorch operator), kineto's `ac2g` (from the runtime's call), and
msprof's `HostToDevice` (from a CANN call). An arrow begins on the innermost slice around its start,
and ends on the latest slice of the device that had begun by then.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.axis import NONE, Ints, latest, numbered
from stepscope.ingest.derive.launches import FOREVER, on_device

LAUNCHES = ("async_npu", "ac2g", "async_cpu_to_gpu", "HostToDevice")
"""Categories of launch arrows; if a task has several, the first of these counts."""
_KEY = ["category", "flow"]
Rows = npt.NDArray[np.int64]


def with_launches(spans: pl.DataFrame, flows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Fill in `correlation` of device tasks and their launches that only arrows connect.

    `spans` and `flows` are those of `chrome_tables`. Returns the number of these tasks, too.
    """
    is_open = (on_device(spans["category"]) & spans["correlation"].is_null()).to_numpy()
    if not is_open.any() or flows.is_empty():
        return spans, 0
    arrows = flows.filter(pl.col("category").cast(pl.String).is_in(LAUNCHES))
    launch_of = np.full(len(spans), NONE, np.int64)
    for category in LAUNCHES:
        of_kind = arrows.filter(pl.col("category").cast(pl.String) == category)
        if of_kind.is_empty():
            continue
        launches, launched = tied(of_kind, spans)
        is_new = is_open[launched] & ~is_open[launches] & (launch_of[launched] == NONE)
        launch_of[launched[is_new]] = launches[is_new]
    rows = np.flatnonzero(launch_of != NONE)
    if not rows.size:
        return spans, 0
    return spans.with_columns(_numbered(spans["correlation"], rows, launch_of[rows])), rows.size


def tied(arrows: pl.DataFrame, spans: pl.DataFrame) -> tuple[Rows, Rows]:
    """Return the spans on which arrows begin and end, without arrows that touch none."""
    ends = arrows.select("ts_ns", "flow", "track", "end", pl.col("category").cast(pl.String))
    ends = ends.with_row_index("row").sort("ts_ns", maintain_order=True)
    starts = ends.filter(pl.col("end") == "start").select(*_KEY, "ts_ns", start="row")
    others = ends.filter(pl.col("end") != "start").select(*_KEY, "ts_ns", finish="row")
    before = others.join_asof(starts, on="ts_ns", by=_KEY, check_sortedness=False)
    # Clocks of host and device differ a little: an arrow may end before it begins.
    first = starts.unique(_KEY, keep="first").select(*_KEY, first="start")
    pairs = before.join(first, on=_KEY, how="left").select(
        "finish", start=pl.coalesce("start", "first")
    )
    pairs = pairs.drop_nulls()
    touched = _touched(arrows, spans)
    begins, finishes = touched[pairs["start"].to_numpy()], touched[pairs["finish"].to_numpy()]
    are_there = (begins != NONE) & (finishes != NONE)
    return begins[are_there], finishes[are_there]


def _touched(ends: pl.DataFrame, spans: pl.DataFrame) -> Rows:
    """Return the row of the innermost span around each arrow end on its lane, or `NONE`."""
    rows = np.flatnonzero((spans["form"] != "instant").to_numpy())
    lanes, end_lanes = numbered(spans["track"])[1], numbered(ends["track"])[1]
    begun, ts_ns = spans["ts_ns"].to_numpy(), ends["ts_ns"].to_numpy()
    place = latest(end_lanes, ts_ns, lanes[rows], begun[rows])
    touched: Rows = np.append(rows, NONE)[place]
    until = np.append(_ends(spans), np.int64(FOREVER))
    parents = np.append(spans["parent"].fill_null(NONE).to_numpy(), NONE)
    while (is_over := (touched != NONE) & (until[touched] < ts_ns)).any():
        touched[is_over] = parents[touched[is_over]]
    return touched


def _ends(spans: pl.DataFrame) -> Ints:
    ends = spans.select((pl.col("ts_ns") + pl.col("dur_ns")).fill_null(FOREVER)).to_series()
    end_ns: Ints = ends.to_numpy()
    return end_ns


def _numbered(correlation: pl.Series, launched: Rows, launches: Rows) -> pl.Series:
    """Give each launch a number if it has none, and its tasks the number of their launch."""
    distinct, which = np.unique(launches, return_inverse=True)
    recorded = correlation.gather(distinct)
    in_use = correlation.drop_nulls().unique().to_numpy()
    free = np.setdiff1d(np.arange(1, len(distinct) + len(in_use) + 1, dtype=np.int64), in_use)
    number = recorded.zip_with(
        recorded.is_not_null(), pl.Series(free[: len(distinct)], dtype=pl.Int64)
    )
    filled = correlation.scatter(distinct, number)
    return filled.scatter(launched, number.gather(which))
