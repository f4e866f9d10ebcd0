"""Long texts of a file that is being read, kept packed until someone asks for them.

The arguments of events are most of a profile, and alike: packed they are a tenth or less, so that
they need neither much memory nor a file beside it, and are kept as they are.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import polars as pl

_ROW = "row of the texts"


@dataclass(frozen=True, slots=True)
class Spooled:
    """Rows of a table without a text column, and that column packed: parts one after the other."""

    rows: pl.DataFrame
    column: str
    parts: list[bytes]

    def lazy(self) -> pl.LazyFrame:
        """All columns; only who asks for that one unpacks it."""
        return beside(self.rows.lazy(), unpacked(self.column, self.parts))

    def save(self, folder: Path) -> None:
        """Write the parts as they are into a new folder, in the order of their names."""
        folder.mkdir()
        for number, part in enumerate(self.parts):
            (folder / f"{number:06}.parquet").write_bytes(part)


def packed(column: pl.Series) -> bytes:
    """A column as a Parquet file in memory."""
    file = io.BytesIO()
    column.to_frame().write_parquet(file, compression="zstd", compression_level=1, statistics=False)
    return file.getvalue()


def unpacked(name: str, parts: list[bytes] | list[Path]) -> pl.LazyFrame:
    """A text column of packed parts one after the other, unpacked as it is read."""
    if not parts:
        return pl.LazyFrame(schema={name: pl.String})
    return pl.scan_parquet(parts, glob=False, hive_partitioning=False)


def beside(rows: pl.LazyFrame, texts: pl.LazyFrame) -> pl.LazyFrame:
    """Set as many texts beside rows; who asks for none of them reads none."""
    # Polars 2.1 reads all columns of a frame of which none is asked for, but for one that it
    # makes itself.
    return pl.concat([rows, texts.with_row_index(_ROW)], how="horizontal").drop(_ROW)
