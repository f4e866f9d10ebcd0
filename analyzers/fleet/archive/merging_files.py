"""Care of an archive: many small files become one a day, and old days go."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import polars as pl

from stepscope.analyzers.fleet.archive.columns_of_rows import DATE, TABLES
from stepscope.analyzers.fleet.archive.opened import Archive
from stepscope.analyzers.fleet.archive.partitions import locked, partitions, written
from stepscope.ingest.storage.store import parquet_name, whole_files

REMEMBERED = "files"
"""The table that no day of goes: by it a file is known that was there before."""


class Cared(NamedTuple):
    """How many files there were and are, and how many partitions went."""

    num_before: int
    num_files: int
    num_gone: int


def cared_for(archive: Archive, keep_days: int | None, day: date) -> Cared:
    """Take away days that are older than so many, and merge the files of each day that is left."""
    with locked(archive.folder, writes=True):
        num_before = len(_every_file(archive.folder))
        num_gone = 0 if keep_days is None else _forget(archive.folder, day, keep_days)
        for table in TABLES:
            for each in partitions(archive.folder, table):
                _merge(each)
        return Cared(num_before, len(_every_file(archive.folder)), num_gone)


def _every_file(folder: Path) -> list[Path]:
    tables = (each for table in TABLES for each in partitions(folder, table))
    return [file for each in tables for file in each.glob("[0-9]*.parquet")]


def _forget(folder: Path, day: date, keep_days: int) -> int:
    oldest = f"{DATE}={day - timedelta(days=keep_days)}"
    old = [
        each
        for table in TABLES
        for each in partitions(folder, table)
        if table != REMEMBERED and each.name < oldest
    ]
    for each in old:
        shutil.rmtree(each)
    return len(old)


def _merge(partition: Path) -> None:
    """One file of all; those that it covers are not read from its rename on, and then removed."""
    files = whole_files(partition)
    if len(files) > 1:
        first, last = files[0].stem.partition("-")[0], files[-1].stem.rpartition("-")[2]
        rows = pl.concat(
            [pl.scan_parquet(file, glob=False, hive_partitioning=False) for file in files],
            how="diagonal_relaxed",
        )
        merged = partition / parquet_name(int(first), int(last))
        written(rows, merged)
    left = set(whole_files(partition))
    for file in partition.glob("[0-9]*.parquet"):
        if file not in left:
            file.unlink()
    for draft in partition.glob(".*.tmp"):
        draft.unlink()
