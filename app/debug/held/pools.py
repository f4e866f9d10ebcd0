"""Who holds which slot and KV block at any place in the order, from `allocations`.

Every claim is turned into the interval of rows for which it holds, once. The holders at a place are
then those in whose interval it lies: the same whichever way the place is reached.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.following import codes, next_place, seq_of
from stepscope.app.debug.held.narrow_numbers import searched, within
from stepscope.ingest.frames import only

TAKING = ("claim", "move")
ENDING = ("release", "let-go")
HANDS = (*TAKING, "share", *ENDING)
"""What changes who holds something: that a block is cached or copied does not."""
CODES = {op: code for code, op in enumerate(HANDS, 1)}
"""A number for each, in the order of HANDS: those that take come first, those that end last."""


class Pool:
    """The holders of one resource. A block that is shared shows the first that still holds it."""

    def __init__(self, holds: FlatRows) -> None:
        """Take what `holds_of` gives."""
        self._holds = holds
        self._from, self._until = holds.numbers("from"), holds.numbers("until")
        self._last_until = holds.numbers("last_until")

    def at(self, seq: int) -> dict[int, str]:
        """Holder by number of slot or block, after every row up to `seq`, and that."""
        # All that were claimed before `first` have been let go by then.
        first = searched(self._last_until, within(self._last_until, seq), "right")
        last = searched(self._from, seq, "right")
        held = first + np.flatnonzero(self._until[first:last] > within(self._until, seq))[::-1]
        return dict(self._holds.rows(held, ("id", "owner")))


def holds_of(allocations: pl.DataFrame) -> pl.DataFrame:
    """From which place of the order until which a number was held: id, owner, from, until.

    The rows are those of one rank and resource, in the order of their `seq`. No earlier row is
    held at `last_until` or later.
    """
    op = allocations["op"].replace_strict(CODES, default=0, return_dtype=pl.Int8)
    rows = only(allocations.with_columns(op=op), op > 0).with_row_index("place")
    holds = _holds(rows)
    until = seq_of(holds["until"].to_numpy(), rows["seq"].to_numpy())
    frame = pl.DataFrame({"from": holds["seq"], "until": until})
    return frame.with_columns(holds["id"], holds["owner"], last_until=pl.col("until").cum_max())


def _holds(rows: pl.DataFrame) -> pl.DataFrame:
    """Claims, shares and moves with the place of the row that ends them.

    A release or a `let-go` ends what its owner holds, and so does a move of that to another number;
    the next claim or move of the same number ends all.
    """
    rows = _with_moved(rows)
    place = rows["place"].cast(pl.Int64).to_numpy()
    op = rows["op"].to_numpy()
    ends, takes = op >= CODES["release"], op <= CODES["move"]
    number, owner = codes(rows["id"]), codes(rows["owner"])
    released = next_place(number * (int(owner.max(initial=0)) + 1) + owner, ends, place)
    until = np.minimum(released, next_place(number, takes, place))
    return rows.with_columns(until=until).filter(~pl.Series(ends))


def _with_moved(rows: pl.DataFrame) -> pl.DataFrame:
    """Add to each move the release of what its owner had; a slot that is not told is its last."""
    moves = rows.filter(pl.col("op") == CODES["move"])
    if not len(moves):
        return rows
    takes = rows.filter(pl.col("op") <= CODES["move"], pl.col("resource") == "slot")
    had = takes.select("place", had=pl.col("id").shift(1).over("owner"))
    left = (
        moves.join(had, on="place", how="left")
        .with_columns(id=pl.coalesce("source", "had"), op=pl.lit(CODES["release"], pl.Int8))
        .drop("had")
        .drop_nulls("id")
    )
    return pl.concat([left, rows]).sort("place", maintain_order=True)
