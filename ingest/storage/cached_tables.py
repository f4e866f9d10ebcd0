"""What was read of another program's file, as a trace directory in the cache.

A column that was packed as it was read is a folder beside the table's rows, `spans/packed=args`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from stepscope.ingest.columns import Table
from stepscope.ingest.frames import Frame, polars_schema, table_named
from stepscope.ingest.manifest import Manifest, read_manifest, write_manifest
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage.spool import Spooled, beside, unpacked
from stepscope.ingest.storage.store import sink_parquet

_ROWS = "rank=all/000000-000000.parquet"
_PACKED = "packed="


class CachedTables:
    """Tables and manifest of an entry."""

    def __init__(self, entry: Path) -> None:
        self.key = entry.stem
        self._rows: dict[str, pl.LazyFrame] = {}
        self.frames: dict[str, pl.LazyFrame] = {}
        for table in TABLES:
            if (folder := entry / table.name).is_dir():
                self._rows[table.name] = rows = _rows(table, folder)
                self.frames[table.name] = _with_packed(table, folder, rows)
        self.manifest = read_manifest(entry / "manifest.json")

    def num_rows(self, name: str) -> int:
        """Count the rows of a table without looking at what is packed beside them."""
        rows = self._rows.get(name)
        return 0 if rows is None else int(rows.select(pl.len()).collect().item())


def write_tables(folder: Path, frames: Mapping[str, Frame], manifest: Manifest) -> None:
    """Write tables, in the order of their rows, and the manifest; raises where that changes it."""
    for name, frame in frames.items():
        _write_table(table_named(name), frame, folder)
    write_manifest(manifest, folder / "manifest.json")
    if Manifest.from_json(manifest.to_json()) != manifest:
        raise ValueError("the manifest does not survive")


def _write_table(table: Table, frame: Frame, folder: Path) -> None:
    """Write the rows as in any trace directory, and what is packed as it is, beside them."""
    rows = frame.rows if isinstance(frame, Spooled) else frame
    sink_parquet(table, rows, folder / table.name / _ROWS)
    if isinstance(frame, Spooled):
        frame.save(folder / table.name / f"{_PACKED}{frame.column}")


def _rows(table: Table, folder: Path) -> pl.LazyFrame:
    return pl.scan_parquet(
        folder / _ROWS, glob=False, hive_partitioning=False, schema=polars_schema(table)
    )


def _with_packed(table: Table, folder: Path, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows with what was packed, in place of nulls."""
    for parts in folder.glob(f"{_PACKED}*"):
        column = parts.name.removeprefix(_PACKED)
        texts = unpacked(column, sorted(parts.iterdir()))
        rows = beside(rows.drop(column), texts).select(table.names)
    return rows
