"""What cores read and write in each other's local memories, where blocks exchange tiles."""

from __future__ import annotations

import polars as pl

STREAM = r"^core (\d+)$"
_TILE = r"^tile of core \d+$"


def is_core_memory() -> pl.Expr:
    """Whether an access is one of a core to the local memory of a core."""
    told = pl.col("buffer").str.contains(_TILE) & pl.col("stream").str.contains(STREAM)
    return told.fill_null(value=False)
