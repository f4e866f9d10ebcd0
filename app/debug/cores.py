"""What the slots of every core held at any time, from `core_spans`.

A block that was dispatched to the pending slot holds that one until it begins, and the running slot
from then on. Where the slot is not known, a block is pending while another one has its core.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.engine_state import Block, CoreSlots, CoreState
from stepscope.ingest.derive.states import with_held
from stepscope.ingest.times import FAR_NS

Places = npt.NDArray[np.int64]


class Cores:
    """Answers for any time; at equal times ends come first, then starts, then dispatches."""

    def __init__(self, core_spans: pl.DataFrame) -> None:
        """Take the rows of one rank."""
        spans = (
            with_held(core_spans.lazy())
            .with_columns(pl.col("end_ns").fill_null(FAR_NS))
            .sort("given_ns", maintain_order=True)
            .collect()
        )
        self._given = spans["given_ns"].to_numpy()
        self._held = spans["held_ns"].to_numpy()
        self._start = spans["ts_ns"].to_numpy()
        self._end = spans["end_ns"].to_numpy()
        self._is_queued = (spans["slot"] == "pending").fill_null(value=False).to_numpy()
        self._is_seated = (spans["slot"] == "running").fill_null(value=False).to_numpy()
        self._last_end = np.maximum.accumulate(self._end)
        self._core = spans["core"]
        self._blocks = spans.select("task", "block")
        self._cores = spans["core"].unique().sort().to_list()

    def at(self, ts_ns: int) -> dict[int, CoreSlots]:
        """The slots of every core that ever ran a block."""
        # All that were dispatched before `first` have ended by then.
        first = int(np.searchsorted(self._last_end, ts_ns, "right"))
        window = slice(first, int(np.searchsorted(self._given, ts_ns, "right")))
        is_there = self._end[window] > ts_ns
        runs = is_there & (self._start[window] <= ts_ns)
        waits = is_there & ~runs
        is_behind = self._is_queued[window] | (
            ~self._is_seated[window] & (self._held[window] > ts_ns)
        )
        running = self._by_core(first + np.flatnonzero(runs))
        holding = self._by_core(first + np.flatnonzero(waits & ~is_behind))
        pending = self._by_core(first + np.flatnonzero(waits & is_behind))
        return {
            core: CoreSlots(
                holding.get(core, running.get(core)),
                pending.get(core),
                _state(core in running, core in holding or core in pending),
            )
            for core in self._cores
        }

    def _by_core(self, places: Places) -> dict[int, Block]:
        return dict(zip(self._core[places], self._blocks[places].iter_rows(), strict=True))


def _state(runs: bool, is_given: bool) -> CoreState:
    return "running" if runs else "held" if is_given else "idle"
