"""Where the windows of steps of a trace lie in time, and which rows of a table are in each.

A window is so many steps, counted from step 0, so that windows of two traces are of the same steps.
It begins when the first of its steps does, on whatever rank, and ends where the next begins; the
first takes in what was before it, the last what was behind it. So every moment is in one window,
and what is counted adds up to what it is of the whole trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

MOST = 100_000
"""Windows of a trace: a table of more is a table of steps, which the trace has already."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window: its place among those with a step, its number, the steps in it, and its time.

    `from_ns` and `to_ns` are when it began and ended; of the first and the last, what the trace
    tells of earlier and later moments is in it, too.
    """

    place: int
    number: int
    first_step: int
    last_step: int
    num_steps: int
    from_ns: int
    to_ns: int


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a trace, in order of time."""

    windows: tuple[Window, ...]
    inner_ns: npt.NDArray[np.int64]
    """When each but the first begins."""

    @classmethod
    def of(cls, trace: Trace, size: int) -> Windows:
        """Find them. Raises ConfigError where they are too many; a trace without steps has none."""
        begin = pl.col("ts_ns")
        number = pl.col("step").floordiv(size)
        told = (
            trace.steps.filter(begin.is_not_null(), pl.col("step").is_not_null())
            .group_by(number=number)
            .agg(
                first_step=pl.col("step").min(),
                last_step=pl.col("step").max(),
                num_steps=pl.len(),
                from_ns=begin.clip(-FAR_NS, FAR_NS).min(),
                ends_ns=(begin + pl.col("dur_ns").fill_null(0)).clip(-FAR_NS, FAR_NS).max(),
            )
            .sort("number")
            .collect()
        )
        if len(told) > MOST:
            raise ConfigError(f"{len(told):,} windows are more than {MOST:,}", where=trace.name,
                              todo="take more steps for each")  # fmt: skip
        # A step that began before those of an earlier window is of its own window all the same.
        begins = np.maximum.accumulate(told["from_ns"].to_numpy()) if len(told) else np.empty(0)
        last_ns = told["ends_ns"].max()
        ends = [*begins[1:].tolist(), last_ns]
        windows = tuple(
            Window(place, row["number"], row["first_step"], row["last_step"], row["num_steps"],
                   int(begins[place]), ends[place])
            for place, row in enumerate(told.iter_rows(named=True))
        )  # fmt: skip
        return cls(windows, begins[1:].astype(np.int64))

    def __len__(self) -> int:
        return len(self.windows)

    def __iter__(self) -> Iterator[Window]:
        return iter(self.windows)

    def parts(self, rows: pl.DataFrame, time: str) -> list[pl.DataFrame]:
        """The rows that are in each window, by a time of theirs; those without one are in none."""
        known = rows.filter(pl.col(time).is_not_null()).sort(time, maintain_order=True)
        cuts = np.searchsorted(known[time].to_numpy(), self.inner_ns, "left").tolist()
        edges = [0, *cuts, len(known)]
        return [known[edges[at] : edges[at + 1]] for at in range(len(self))]
