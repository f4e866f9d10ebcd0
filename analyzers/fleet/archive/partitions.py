"""Where the rows of an archive lie: `<table>/date=2026-11-26/000004-000009.parquet`.

The numbers of a file are those of the journals that it was made of; a file that a wider one covers
is not read, so that a merge is one rename. Whoever reads holds `fleet.json` locked as a reader for
as long; who puts a file in place of another one as a writer.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl

from stepscope.analyzers.fleet.archive.columns_of_rows import DATE, TABLES, frames_of
from stepscope.analyzers.fleet.archive.row_journal import journals, records_of
from stepscope.ingest.errors import ConfigError, TraceError, WriteError
from stepscope.ingest.query import Bounds, run_sql
from stepscope.ingest.storage.store import whole_files

MANIFEST = "fleet.json"
FORMAT = "stepscope_fleet_archive"
FORMAT_VERSION = 1
_PARTITION = re.compile(rf"{DATE}=\d{{4}}-\d{{2}}-\d{{2}}")
_NO_ARCHIVE = "it is no archive of stepscope fleet"


def is_archive(folder: Path) -> bool:
    """Tell whether a folder says that it is an archive, of whatever version."""
    return _format_of(folder) is not None


def refuse_others(folder: Path) -> None:
    """Raise ConfigError of what is no archive, and TraceError of one of a later version."""
    version = _format_of(folder)
    if version is None:
        raise ConfigError(_NO_ARCHIVE, where=str(folder), todo="name one that --to has made")
    if version != FORMAT_VERSION:
        what = f"the archive has format version {version}, this stepscope knows {FORMAT_VERSION}"
        raise TraceError(what, where=str(folder), todo="upgrade stepscope")


def made(folder: Path) -> None:
    """Make a folder an archive where it is none; raises ConfigError of one that holds others."""
    if is_archive(folder):
        refuse_others(folder)
        return
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ConfigError(
                "it is no archive, and something is in it", where=str(folder),
                todo="name a new folder, or an empty one",
            )  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{MANIFEST}.{os.getpid()}.tmp"
        draft.write_text(json.dumps({FORMAT: FORMAT_VERSION}) + "\n", encoding="utf-8")
        draft.replace(folder / MANIFEST)
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror}", where=str(folder)) from None


def _format_of(folder: Path) -> int | None:
    try:
        found = json.loads((folder / MANIFEST).read_bytes()[: 1 << 16])
    except (OSError, ValueError):
        return None
    version = found.get(FORMAT) if isinstance(found, dict) else None
    return version if isinstance(version, int) else None


@contextmanager
def locked(folder: Path, *, writes: bool) -> Iterator[None]:
    """While this lasts, no file is put in place of another; of writers there is one alone."""
    lock = os.open(folder / MANIFEST, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if writes else fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def partitions(folder: Path, table: str) -> list[Path]:
    """The partitions of a table, the oldest first; what is none of ours is left out."""
    found = (folder / table).glob(f"{DATE}=*")
    return sorted(p for p in found if _PARTITION.fullmatch(p.name) and not p.is_symlink())


def files_of(folder: Path, table: str) -> list[Path]:
    """The files with the rows of a table, by day and number."""
    return [file for each in partitions(folder, table) for file in whole_files(each)]


def scanned(folder: Path) -> dict[str, pl.LazyFrame]:
    """Every table as one lazy scan; what a journal has is there as well, in place of older rows.

    A condition on `date` leaves out the partitions of other days. Raises ConfigError or TraceError.
    """
    refuse_others(folder)
    records = {each.key: each for _, file in journals(folder) for each in records_of(file)}
    pending = frames_of(records.values()) if records else None
    return {name: _scan(folder, name, list(records), pending) for name in TABLES}


def asked_of(folder: Path, query: str, bounds: Bounds | None = None) -> pl.DataFrame:
    """Run an SQL query over an archive's tables; raises QueryError, ConfigError or TraceError."""
    refuse_others(folder)
    with locked(folder, writes=False):
        return run_sql(scanned(folder), query, bounds)


def _scan(
    folder: Path, table: str, newer: list[str], pending: dict[str, pl.DataFrame] | None
) -> pl.LazyFrame:
    schema = pl.Schema({**TABLES[table], DATE: pl.Date()})
    files = files_of(folder, table)
    scan = scan_files(folder, table, files) if files else pl.LazyFrame(schema=schema)
    if pending is None:
        return scan
    today = pl.lit(None, pl.Date).alias(DATE)
    older = scan.filter(~pl.col("key").is_in(newer))
    return pl.concat([older, pending[table].lazy().with_columns(today)])


def scan_files(folder: Path, table: str, files: list[Path]) -> pl.LazyFrame:
    """Scan files of one table, with the day of each; a column that an older one lacks is null."""
    whole, schema = pl.Schema({**TABLES[table], DATE: pl.Date()}), TABLES[table]
    # Polars takes `name=value` in every folder above for a column, too.
    is_alone = "=" not in str(folder)
    scan = partial(
        pl.scan_parquet, schema=schema, glob=False, missing_columns="insert",
        extra_columns="ignore", hive_partitioning=is_alone,
    )  # fmt: skip
    if is_alone:
        return scan(files, hive_schema={DATE: pl.Date()}).select(whole.names())
    each = [
        scan(file).with_columns(
            pl.lit(file.parent.name.partition("=")[2]).str.to_date().alias(DATE)
        )
        for file in files
    ]
    return pl.concat(each).select(whole.names())


def written(frame: pl.DataFrame | pl.LazyFrame, file: Path) -> None:
    """Write a file so that it is whole or not there. Raises `WriteError` where there is no room."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        frame.lazy().sink_parquet(draft, compression="zstd", maintain_order=True)
        draft.replace(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        full = OSError(errno.EIO, "the disk took no more of it")
        why = (error if isinstance(error, OSError) else full).strerror
        raise WriteError(f"cannot be written: {why}", where=str(file)) from None
    finally:
        draft.unlink(missing_ok=True)


def without(folder: Path, keys: Iterable[str]) -> None:
    """Take all rows of some traces out of the tables, each file in one rename."""
    gone = list(keys)
    for table in TABLES:
        for file in files_of(folder, table):
            rows = pl.scan_parquet(file, glob=False, hive_partitioning=False)
            is_gone = pl.col("key").is_in(gone)
            if rows.select(is_gone.any()).collect().item():
                written(rows.filter(~is_gone).collect(), file)
