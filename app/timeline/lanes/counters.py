"""The counters: numbers over time, from `steps` and from `counters`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import (
    Ints,
    LaneName,
    clipped,
    natural,
    placeable,
    several_ranks,
)
from stepscope.ingest.trace import Trace

Floats = npt.NDArray[np.float64]
OF_STEPS = {
    "kv_blocks_free": "KV blocks free", "kv_blocks_cached": "of these cached",
    "num_waiting": "waiting", "num_running": "running",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Series:
    """A counter in a window: one value per pixel (the last one that held, NaN before the first).

    `low` and `high` are the counter's extremes over the whole trace, for its scale.
    """

    values: Floats
    low: float
    high: float
    unit: str = ""

    @property
    def scale(self) -> dict[str, float | str]:
        """From where to where values are drawn, from the lowest or 0 on, and in which unit."""
        return {"low": min(self.low, 0.0), "high": self.high, "unit": self.unit}

    def heights(self) -> npt.NDArray[np.uint8]:
        """Each value from 0 to 255, on a scale from the lowest or 0 to the highest."""
        low = min(self.low, 0.0)
        height = (self.values - low) / ((self.high - low) or 1.0)
        return np.nan_to_num(height * 255).clip(0, 255).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Counter:
    """A sampled number: it holds each value until the next sample.

    `section` is where its lane stands, and `most` the most that it can be, where that is known.
    """

    name: LaneName
    table: str
    ts_ns: Ints
    values: Floats
    rows: Ints
    unit: str = ""
    section: str = "counters"
    most: float | None = None

    def series(self, edges: Ints) -> Series:
        """The value that held at the end of each pixel."""
        last = np.searchsorted(self.ts_ns, edges[1:]) - 1
        held = np.where(last >= 0, self.values[last], np.nan)
        high = max(float(self.values.max()), self.most or 0.0)
        return Series(held, float(self.values.min()), high, self.unit)

    def sample_at(self, ts_ns: int) -> int | None:
        """Index of the sample that holds at a time; None before the first."""
        last = int(np.searchsorted(self.ts_ns, ts_ns, "right")) - 1
        return last if last >= 0 else None


def counters(trace: Trace) -> tuple[Counter, ...]:
    """Every counter with at least one finite sample: the engine's own first, then by name."""
    steps = placeable(trace, "steps").select("rank", "ref", "ts_ns", *OF_STEPS).collect()
    ranks = steps["rank"].unique().sort().to_list()
    own = [
        _counter(LaneName(rank, several_ranks("", rank, ranks), label), "steps", rows)
        for rank in ranks
        for column, label in OF_STEPS.items()
        if len(rows := _samples(steps.filter(pl.col("rank") == rank), pl.col(column)))
    ]
    return (*own, *_sampled(trace))


def _sampled(trace: Trace) -> list[Counter]:
    key = ["rank", "track", "name"]
    columns = placeable(trace, "counters", "name").select(*key, "unit", "ref", "ts_ns", "value")
    found = columns.collect().partition_by(key, as_dict=True, maintain_order=True)
    ranks = sorted({rank for rank, _, _ in found})
    named = [
        (rank, track or "", name, samples)
        for (rank, track, name), rows in found.items()
        if len(samples := _samples(rows, pl.col("value")))
    ]
    named.sort(key=lambda each: (each[0], natural(each[1]), natural(each[2])))
    return [
        _counter(
            LaneName(rank, several_ranks(plain(track), rank, ranks), plain(name)),
            "counters",
            samples,
        )
        for rank, track, name, samples in named
    ]


def _samples(rows: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    unit = pl.col("unit") if "unit" in rows.columns else pl.lit("")
    number = value.cast(pl.Float64)
    samples = rows.select("ref", clipped(pl.col("ts_ns")), value=number, unit=unit.fill_null(""))
    return samples.filter(pl.col("value").is_finite()).sort("ts_ns", maintain_order=True)


def _counter(name: LaneName, table: str, samples: pl.DataFrame) -> Counter:
    return Counter(
        name,
        table,
        samples["ts_ns"].to_numpy(),
        samples["value"].to_numpy(),
        samples["ref"].cast(pl.Int64).to_numpy(),
        plain(samples["unit"][0]),
    )
