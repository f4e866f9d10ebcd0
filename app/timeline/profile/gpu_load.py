"""How busy the GPUs of a profile were over time: one moment counts once, whatever runs in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.lanes.lane import Ints, clipped, end_of, placeable
from stepscope.ingest.derive.launches import device_of
from stepscope.ingest.schema import ON_DEVICE
from stepscope.ingest.trace import Trace

DEVICE = ("rank", "device")


@dataclass(frozen=True, slots=True)
class BusyDevices:
    """When each device executed anything: `start` and `end` of intervals, device after device.

    Intervals of one device neither overlap nor touch.
    """

    num_devices: int
    start: Ints
    end: Ints

    @classmethod
    def of(cls, trace: Trace) -> BusyDevices:
        """Unite what the streams of each device executed."""
        start, ran = pl.col("ts_ns"), pl.col("category").str.to_lowercase().is_in(ON_DEVICE)
        device = device_of(pl.col("track")).alias("device")
        reached = pl.col("end").cum_max().shift(1).over(DEVICE)
        begins = (pl.col("start") > reached).fill_null(value=True)
        found = (
            placeable(trace, "spans", "track")
            .filter(ran, pl.col("dur_ns").is_not_null())
            .select("rank", device, start=clipped(start), end=end_of(start, pl.col("dur_ns"), 0))
            .sort(*DEVICE, "start", "end")
            .with_columns(interval=begins.cum_sum())
            .group_by(*DEVICE, "interval", maintain_order=True)
            .agg(pl.col("start").min(), pl.col("end").max())
            .collect()
        )
        devices = found.select(DEVICE).n_unique() if len(found) else 0
        return cls(devices, found["start"].to_numpy(), found["end"].to_numpy())

    @classmethod
    def none(cls) -> BusyDevices:
        """No device at all."""
        return cls(0, np.zeros(0, np.int64), np.zeros(0, np.int64))

    def shares(self, edges: Ints) -> npt.NDArray[np.float64]:
        """Share of each pixel [edges[i], edges[i + 1]) in which a device was busy, on average."""
        busy = np.diff(_before(self.end, edges) - _before(self.start, edges))
        shares: npt.NDArray[np.float64] = busy / (np.diff(edges) * max(self.num_devices, 1))
        return shares


def _before(times: Ints, edges: Ints) -> Ints:
    """At each edge, the sum of (edge - time) over the times before it, negated."""
    ordered = np.sort(times)
    until: Ints = np.concatenate(([0], np.cumsum(ordered - edges[0])))
    place = np.searchsorted(ordered, edges)
    before: Ints = until[place] - place * (edges - edges[0])
    return before
