"""What the slots of every core held at any time, from `core_spans`.

A block that was dispatched to the pending slot holds that one until it begins, and the running slot
from then on. Where the slot is not known, a block is pending while another one has its core.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.engine_state import Block, CoreSlots, CoreState
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.narrow_numbers import searched
from stepscope.ingest.derive.states import with_held
from stepscope.ingest.times import FAR_NS

Places = npt.NDArray[np.int64]
PENDING, RUNNING = 1, 2


class Cores:
    """Answers for any time; at equal times ends come first, then starts, then dispatches."""

    def __init__(self, spans: FlatRows, cores: FlatRows) -> None:
        """Take what `given_spans` gives."""
        self._spans = spans
        self._given, self._held = spans.numbers("given_ns"), spans.numbers("held_ns")
        self._start, self._end = spans.numbers("ts_ns"), spans.numbers("end_ns")
        self._slot, self._last_end = spans.numbers("slot"), spans.numbers("last_end_ns")
        self._cores = cores.numbers("core").tolist()

    def at(self, ts_ns: int) -> dict[int, CoreSlots]:
        """The slots of every core that is known."""
        # All that were dispatched before `first` have ended by then.
        first = searched(self._last_end, ts_ns, "right")
        window = slice(first, searched(self._given, ts_ns, "right"))
        is_there = self._end[window] > ts_ns
        runs = is_there & (self._start[window] <= ts_ns)
        waits = is_there & ~runs
        slot = self._slot[window]
        is_behind = (slot == PENDING) | ((slot != RUNNING) & (self._held[window] > ts_ns))
        began = first + np.flatnonzero(runs)
        # Of two on one core, which was booked twice, it has the one that began last.
        running = self._by_core(began[np.argsort(self._start[began], kind="stable")])
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
        rows = self._spans.rows(places, ("core", "task", "block"))
        return {core: (task, block) for core, task, block in rows}


def given_spans(
    core_spans: pl.DataFrame, known: Iterable[int] = (), core_waits: pl.DataFrame | None = None
) -> dict[str, pl.DataFrame]:
    """The spans of one rank in the order in which they were given to cores, and all cores.

    `known` are cores that there are, whether they ever ran a block or not, and `core_waits` blocks
    that were given to a core and never began.
    """
    if core_waits is not None and len(core_waits):
        never = core_waits.rename({"ts_ns": "dispatch_ns"}).with_columns(
            ts_ns=pl.lit(FAR_NS, pl.Int64), end_ns=pl.lit(None, pl.Int64)
        )
        core_spans = pl.concat([core_spans, never.select(core_spans.columns)])
    slots = {"pending": PENDING, "running": RUNNING}
    spans = (
        with_held(core_spans.lazy())
        .with_columns(
            pl.col("end_ns").fill_null(FAR_NS),
            pl.col("slot").replace_strict(slots, default=0, return_dtype=pl.Int64),
        )
        .sort("given_ns", maintain_order=True)
        .with_columns(last_end_ns=pl.col("end_ns").cum_max())
        .select(
            "given_ns", "held_ns", "ts_ns", "end_ns", "last_end_ns", "slot", "core", "task", "block"
        )
        .collect()
    )
    cores = pl.concat([spans["core"].cast(pl.Int64), pl.Series(list(known), dtype=pl.Int64)])
    return {"spans": spans, "cores": pl.DataFrame({"core": cores.unique().sort()})}


def _state(runs: bool, is_given: bool) -> CoreState:
    return "running" if runs else "held" if is_given else "idle"
