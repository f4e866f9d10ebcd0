"""The batch of any step, from `batch_rows`."""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.app.debug.engine_state import BatchEntry
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.narrow_numbers import searched


class Batches:
    """The rows of each step's batch, in order."""

    def __init__(self, rows: FlatRows) -> None:
        """Take what `in_order` gives."""
        self._rows = rows
        self._steps, self._seq = rows.numbers("step"), rows.numbers("seq")

    def of(self, step: int | None, seq: int | None = None) -> tuple[BatchEntry, ...]:
        """The batch of a step, or what is told of it up to a place; empty where it has none."""
        if step is None:
            return ()
        first, last = searched(self._steps, step), searched(self._steps, step, "right")
        places = np.arange(first, last)
        if seq is not None:
            places = places[self._seq[first:last] <= seq]
        entries = self._rows.rows(places, ("request", "phase", "num_tokens"))
        return tuple(BatchEntry(*entry) for entry in entries)


def in_order(batch_rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of one rank by step and place in the batch."""
    rows = batch_rows
    if not _is_in_order(rows):
        rows = rows.sort("step", "row", nulls_last=True, maintain_order=True)
    return rows.select("step", "seq", "request", "phase", "num_tokens")


def _is_in_order(rows: pl.DataFrame) -> bool:
    """Whether rows lie by step and number, as an engine writes them: to sort takes a second."""
    if rows["row"].null_count():
        return False
    step, row = np.diff(rows["step"].to_numpy()), np.diff(rows["row"].to_numpy())
    return bool(((step > 0) | ((step == 0) & (row >= 0))).all())
