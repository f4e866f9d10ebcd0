"""How many tokens lie in each slot at any place in the order, from `slot_tokens`.

A slot of which anything is told is empty before the first that is told of it.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.following import codes, next_place, seq_of
from stepscope.app.debug.held.narrow_numbers import searched, within


class SlotLengths:
    """The tokens of every slot that the trace knows."""

    def __init__(self, lengths: FlatRows) -> None:
        """Take what `lengths_of` gives."""
        self._lengths = lengths
        self._from, self._until = lengths.numbers("from"), lengths.numbers("until")
        self._last_until = lengths.numbers("last_until")

    def at(self, seq: int) -> dict[int, int]:
        """Tokens by number of slot, after every row up to `seq`, and that."""
        # All that were told before `first` are others by then.
        first = searched(self._last_until, within(self._last_until, seq), "right")
        last = searched(self._from, seq, "right")
        holding = first + np.flatnonzero(self._until[first:last] > within(self._until, seq))
        return dict(sorted(self._lengths.rows(holding, ("slot", "num_tokens"))))


def lengths_of(slot_tokens: pl.DataFrame) -> pl.DataFrame:
    """From which place of the order until which a slot had how many tokens: of one rank.

    The rows are in the order of their `seq`. None holds before `last_until` of the one before.
    """
    slots = slot_tokens["slot"].unique().sort()
    empty = pl.DataFrame({"slot": slots}).select(
        "slot", num_tokens=pl.lit(0, pl.Int64), seq=pl.lit(BEFORE_ALL, pl.Int64)
    )
    rows = pl.concat([empty, slot_tokens.select("slot", "num_tokens", "seq")])
    place, seq = np.arange(len(rows)), rows["seq"].to_numpy()
    until = seq_of(next_place(codes(rows["slot"]), np.ones(len(rows), bool), place), seq)
    told = rows.select("slot", "num_tokens", pl.col("seq").alias("from"))
    return told.with_columns(until=until).with_columns(last_until=pl.col("until").cum_max())
