"""Long texts of a file that is being read, kept packed until someone asks for them.

The arguments of events are most of a profile, and alike: packed they are a tenth or less, so that
they need neither much memory nor a file beside it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl


def packed(column: pl.Series) -> bytes:
    """A column as a Parquet file in memory."""
    file = io.BytesIO()
    column.to_frame().write_parquet(file, compression="lz4", statistics=False)
    return file.getvalue()


def unpacked(name: str, parts: Sequence[bytes]) -> pl.LazyFrame:
    """A text column of packed parts one after the other, unpacked as it is read."""
    if not parts:
        return pl.LazyFrame(schema={name: pl.String})
    return pl.scan_parquet(list(parts))
