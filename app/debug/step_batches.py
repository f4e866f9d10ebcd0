"""The batch of any step, from `batch_rows`."""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.app.debug.engine_state import BatchEntry


class Batches:
    """The rows of each step's batch, in order."""

    def __init__(self, batch_rows: pl.DataFrame) -> None:
        """Take the rows of one rank."""
        rows = batch_rows
        if not _is_in_order(rows):
            rows = rows.sort("step", "row", nulls_last=True, maintain_order=True)
        self._steps = rows["step"].to_numpy()
        self._seq = rows["seq"]
        self._entries = rows.select("request", "phase", "num_tokens")

    def of(self, step: int | None, seq: int | None = None) -> tuple[BatchEntry, ...]:
        """The batch of a step, or what is told of it up to a place; empty where it has none."""
        if step is None:
            return ()
        first, last = np.searchsorted(self._steps, (step, step + 1)).tolist()
        entries = self._entries[first:last]
        if seq is not None:
            entries = entries.filter(self._seq[first:last] <= seq)
        return tuple(BatchEntry(*entry) for entry in entries.iter_rows())


def _is_in_order(rows: pl.DataFrame) -> bool:
    """Whether rows lie by step and number, as an engine writes them: to sort takes a second."""
    if rows["row"].null_count():
        return False
    step, row = np.diff(rows["step"].to_numpy()), np.diff(rows["row"].to_numpy())
    return bool(((step > 0) | ((step == 0) & (row >= 0))).all())
