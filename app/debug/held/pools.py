"""Who holds which slot and KV block at any place in the order, from `allocations`.

Every claim is turned into the interval of rows for which it holds, once. The holders at a place are
then those in whose interval it lies: the same whichever way the place is reached.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.app.debug.held.following import codes, next_place

TAKING = ("claim", "move")
ENDING = ("release", "let-go")
HANDS = (*TAKING, "share", *ENDING)
"""What changes who holds something: that a block is cached or copied does not."""


class Pool:
    """The holders of one resource. A block that is shared shows the first that still holds it."""

    def __init__(self, allocations: pl.DataFrame) -> None:
        """Take the rows of one rank and resource, in the order of their `seq`."""
        rows = allocations.filter(pl.col("op").is_in(HANDS)).with_row_index("place")
        self._seq = rows["seq"].to_numpy()
        holds = _holds(rows)
        self._from = holds["place"].to_numpy()
        self._until = holds["until"].to_numpy()
        self._id = holds["id"].to_numpy()
        self._owner = holds["owner"]
        self._last_until = np.maximum.accumulate(self._until)

    def at(self, seq: int) -> dict[int, str]:
        """Holder by number of slot or block, after every row up to `seq`, and that."""
        num_rows = int(np.searchsorted(self._seq, seq, "right"))
        # All that were claimed before `first` have been let go by then.
        first = int(np.searchsorted(self._last_until, num_rows))
        last = int(np.searchsorted(self._from, num_rows))
        held = first + np.flatnonzero(self._until[first:last] >= num_rows)[::-1]
        owners = self._owner.gather(held).to_list()
        return dict(zip(self._id[held].tolist(), owners, strict=True))


def _holds(rows: pl.DataFrame) -> pl.DataFrame:
    """Claims, shares and moves with the place of the row that ends them.

    A release or a `let-go` ends what its owner holds, and so does a move of that to another number;
    the next claim or move of the same number ends all.
    """
    rows = _with_moved(rows)
    place = rows["place"].cast(pl.Int64).to_numpy()
    ends, takes = (rows["op"].is_in(ops).to_numpy() for ops in (ENDING, TAKING))
    number, owner = codes(rows["id"]), codes(rows["owner"])
    released = next_place(number * (int(owner.max(initial=0)) + 1) + owner, ends, place)
    until = np.minimum(released, next_place(number, takes, place))
    return rows.with_columns(until=until).filter(~pl.Series(ends))


def _with_moved(rows: pl.DataFrame) -> pl.DataFrame:
    """Add to each move the release of what its owner had; a slot that is not told is its last."""
    moves = rows.filter(pl.col("op") == "move")
    if not len(moves):
        return rows
    takes = rows.filter(pl.col("op").is_in(TAKING), pl.col("resource") == "slot")
    had = takes.select("place", had=pl.col("id").shift(1).over("owner"))
    left = (
        moves.join(had, on="place", how="left")
        .with_columns(id=pl.coalesce("source", "had"), op=pl.lit("release"))
        .drop("had")
        .drop_nulls("id")
    )
    return pl.concat([left, rows]).sort("place", maintain_order=True)
