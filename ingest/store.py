"""A trace on disk: one Parquet dataset per table, `<table>/rank=<r>/<first>-<last>.parquet`.

Every file holds all the columns of its table, `rank` too, so that each can be read by itself. The
numbers in its name are those of the journal segments that it was made of: a segment that a file
covers is not read again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from stepscope.ingest.errors import SchemaMismatch, TraceError
from stepscope.ingest.frames import conform, polars_schema
from stepscope.ingest.manifest import write_manifest
from stepscope.ingest.schema import TABLES, Table

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

PARQUET = "[0-9]*.parquet"
ROW_GROUP_ROWS = 256 << 10
MOST_SEGMENTS = 1 << 20


def holds_trace(folder: Path) -> bool:
    """Tell whether a directory holds a manifest, a journal or a table of ours."""
    patterns = ("manifest*.json", "journal.rank=*", *(f"{table.name}/rank=*" for table in TABLES))
    return any(any(folder.glob(pattern)) for pattern in patterns)


def parquet_name(first: int, last: int) -> str:
    """Name the Parquet file that is made of these segments."""
    return f"{first:06}-{last:06}.parquet"


def covered_numbers(folder: Path, table: str, rank: int) -> set[int]:
    """Give the numbers of the segments that Parquet files of a table and rank are made of."""
    covered: set[int] = set()
    for file in folder.glob(f"{table}/rank={rank}/{PARQUET}"):
        first, _, last = file.stem.partition("-")
        if first.isdigit() and last.isdigit() and int(last) - int(first) < MOST_SEGMENTS:
            covered.update(range(int(first), int(last) + 1))
    return covered


def parquet_files(folder: Path, table: str) -> list[Path]:
    """List the Parquet files of a table, by rank and number."""
    files = folder.glob(f"{table}/rank=*/{PARQUET}")
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
            write_parquet(part, folder / table.name / f"rank={rank}" / parquet_name(0, 0))


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
