"""A trace on disk: one Parquet dataset per table, `<table>/rank=<r>/<first>-<last>.parquet`.

Every file holds all the columns of its table, `rank` too, so that each can be read by itself. The
numbers in its name are those of the journal segments that it was made of: a segment that a file
covers is not read again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from stepscope.ingest.errors import SchemaMismatch, TraceError
from stepscope.ingest.frames import Frame, conform, polars_schema
from stepscope.ingest.manifest import Manifest, merged, read_manifest, write_manifest
from stepscope.ingest.schema import TABLES, Table

if TYPE_CHECKING:
    from stepscope.ingest.trace import Progress, Trace

ROW_GROUP_ROWS = 256 << 10


def holds_trace(folder: Path) -> bool:
    """Tell whether a directory holds a manifest or a journal of ours."""
    return any(folder.glob("manifest*.json")) or (folder / "journal").is_dir()


def load_trace(folder: Path, progress: Progress | None) -> tuple[Mapping[str, Frame], Manifest]:
    """Scan the tables of a trace directory; raises `TraceError`."""
    manifest = merged([read_manifest(file) for file in sorted(folder.glob("manifest*.json"))])
    frames: dict[str, Frame] = {}
    for table in TABLES:
        if files := parquet_files(folder, table.name):
            frames[table.name] = scan(table, files)
    return frames, manifest


def parquet_files(folder: Path, table: str) -> list[Path]:
    """List the Parquet files of a table, by rank and number."""
    files = folder.glob(f"{table}/rank=*/[0-9]*.parquet")
    return sorted(files, key=lambda file: (len(file.parent.name), file.parent.name, file.name))


def scan(table: Table, files: list[Path]) -> pl.LazyFrame:
    """Scan Parquet files of one table; raises `TraceError` for one that is damaged."""
    for file in files:
        _check(table, file)
    # Polars would look for `name=value` in every folder above the trace, too.
    return pl.scan_parquet(
        files,
        glob=False,
        hive_partitioning=False,
        schema=polars_schema(table),
        missing_columns="insert",
    )


def write_parquet(frame: pl.DataFrame, file: Path) -> None:
    """Write one file so that it is whole or not there; the same rows give the same bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        frame.write_parquet(
            draft, compression="zstd", statistics=True, row_group_size=ROW_GROUP_ROWS
        )
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def save_trace(trace: Trace, out: Path) -> None:
    """Write a whole trace beside `out` and put it there in one rename; raises `TraceError`."""
    if out.exists() and not (out.is_dir() and (holds_trace(out) or not any(out.iterdir()))):
        raise TraceError("something else is in the way", where=str(out), todo="choose another name")
    draft = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        draft.mkdir(parents=True)
        _write_tables(trace, draft)
        write_manifest(trace.manifest, draft / "manifest.json")
        _swap(draft, out)
    except OSError as error:
        raise TraceError(f"cannot be written: {error.strerror}", where=str(out)) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_tables(trace: Trace, folder: Path) -> None:
    for table in TABLES:
        rows = trace.table(table.name).collect()
        for (rank,), part in rows.group_by("rank", maintain_order=True):
            write_parquet(part, folder / table.name / f"rank={rank}" / "000000-000000.parquet")


def _swap(draft: Path, out: Path) -> None:
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    if out.exists():
        out.rename(old)
    draft.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def _check(table: Table, file: Path) -> None:
    try:
        found = pl.read_parquet_schema(file)
    except (pl.exceptions.PolarsError, OSError):
        raise TraceError("the Parquet file is damaged", where=str(file)) from None
    try:
        conform(table, pl.LazyFrame(schema=found))
    except SchemaMismatch as error:
        raise SchemaMismatch(error.what, where=str(file)) from None
