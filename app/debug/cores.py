"""What the slots of every core held at any time, from `core_spans`.

A block holds the running slot from its dispatch to its end. One that was dispatched to the
pending slot holds that one until it begins, and the running slot from then on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.state import Block, CoreSlots

Places = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).max


class Cores:
    """Answers for any time; at equal times ends come first, then starts, then dispatches."""

    def __init__(self, core_spans: pl.DataFrame) -> None:
        """Take the rows of one rank."""
        spans = core_spans.with_columns(
            pl.col("dispatch_ns").fill_null(pl.col("ts_ns")),
            pl.col("end_ns").fill_null(NEVER),
            is_queued=pl.col("slot").fill_null("running") == "pending",
        ).sort("dispatch_ns", maintain_order=True)
        self._dispatch = spans["dispatch_ns"].to_numpy()
        self._start = spans["ts_ns"].to_numpy()
        self._end = spans["end_ns"].to_numpy()
        self._is_queued = spans["is_queued"].to_numpy()
        self._last_end = np.maximum.accumulate(self._end)
        self._core = spans["core"].to_numpy()
        self._task = spans["task"].to_numpy()
        self._block = spans["block"].to_numpy()
        self._cores = spans["core"].unique().sort().to_list()

    def at(self, ts_ns: int) -> dict[int, CoreSlots]:
        """The slots of every core that ever ran a block."""
        # All that were dispatched before `first` have ended by then.
        first = int(np.searchsorted(self._last_end, ts_ns, "right"))
        window = slice(first, int(np.searchsorted(self._dispatch, ts_ns, "right")))
        is_held = self._end[window] > ts_ns
        waits = is_held & self._is_queued[window] & (self._start[window] > ts_ns)
        pending = self._blocks(first + np.flatnonzero(waits))
        running = self._blocks(first + np.flatnonzero(is_held & ~waits))
        return {core: CoreSlots(running.get(core), pending.get(core)) for core in self._cores}

    def _blocks(self, places: Places) -> dict[int, Block]:
        cores = self._core[places].tolist()
        blocks = zip(self._task[places].tolist(), self._block[places].tolist(), strict=True)
        return dict(zip(cores, blocks, strict=True))
