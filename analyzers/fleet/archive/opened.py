"""An archive that is written: one process at a time, and whatever happens, nothing twice."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl

from stepscope.analyzers.fleet.archive.columns_of_rows import (
    DATE,
    TABLES,
    Record,
    frames_of,
)
from stepscope.analyzers.fleet.archive.partitions import (
    files_of,
    locked,
    made,
    refuse_others,
    scanned,
    without,
    written,
)
from stepscope.analyzers.fleet.archive.row_journal import RowJournal, journals, records_of
from stepscope.ingest.errors import ConfigError, WriteError
from stepscope.ingest.storage.store import parquet_name

LOCK = "lock"
PARTS = "parts"
MOST_RECORDS = 2_000
"""Records in a journal before they become rows of the tables: small ones are read twice."""
ROWS_AT_ONCE = 50_000


def today() -> date:
    """The day by which rows are dated."""
    return datetime.now(UTC).date()


class Archive:
    """Adds records; `known` is the version that each trace was read by, `failing` who has failures.

    What a run that was killed left in a journal becomes rows as the archive is opened.
    """

    def __init__(self, folder: Path, day: Callable[[], date] = today) -> None:
        self.folder, self._day = folder, day
        for number, file in journals(folder):
            self._commit(number, file)
        self.known, self.failing = self._versions(), self._with_failures()
        self._journal = RowJournal(folder, self._next())

    def add(self, record: Record) -> None:
        """Put all of a trace on the disk, in place of what was known of it."""
        self._journal.append(record)
        self.known[record.key] = record.version
        if self._journal.num_records >= MOST_RECORDS:
            self.commit()

    def commit(self) -> None:
        """Make rows of the tables of what the journal has."""
        self._journal.close()
        if self._journal.num_records:
            number = int(self._journal.file.stem)
            self._commit(number, self._journal.file)
            self._journal = RowJournal(self.folder, number + 1)

    def part_file(self, key: str) -> Path:
        """Where a rank's part of a job lies until the job is checked."""
        return self.folder / PARTS / f"{key}.part"

    def put_part(self, key: str, part: bytes) -> None:
        """Put a part there so that it is whole or not there; raises `WriteError`."""
        file = self.part_file(key)
        draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        try:
            file.parent.mkdir(exist_ok=True)
            draft.write_bytes(part)
            draft.replace(file)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise WriteError(f"cannot be written: {error.strerror}", where=str(file)) from None

    def drop_parts(self, keys: Iterator[str] | None = None) -> None:
        """Take parts away: these, or all there are."""
        every = (self.folder / PARTS).glob("*.part")
        for file in every if keys is None else map(self.part_file, keys):
            file.unlink(missing_ok=True)

    def _commit(self, number: int, journal: Path) -> None:
        """Whoever reads meanwhile sees the journal's records in place of rows with their keys."""
        records = {each.key: each for each in records_of(journal)}
        with locked(self.folder, writes=True):
            name = parquet_name(number, number)
            made_before = [
                file for table in TABLES for file in files_of(self.folder, table)
                if file.name == name
            ]  # fmt: skip
            for file in made_before:  # a commit that was cut off, perhaps on another day
                file.unlink()
            without(self.folder, {*records, *self._mended(records.values())})
            for table, rows in frames_of(records.values()).items():
                if not rows.is_empty():
                    written(rows, self.folder / table / f"{DATE}={self._day()}" / name)
            journal.unlink()

    def _mended(self, records: Iterable[Record]) -> list[str]:
        """Traces of which nothing could be read, and whose files are read now."""
        read = {file.path for each in records for file in each.files if not file.why}
        tables = {
            table: pl.scan_parquet(files, glob=False, hive_partitioning=False)
            for table in ("failures", "traces")
            if (files := files_of(self.folder, table))
        }
        if "failures" not in tables:
            return []
        failed = tables["failures"].filter(pl.col("path").is_in(list(read))).select("key").unique()
        if "traces" in tables:
            failed = failed.join(tables["traces"], on="key", how="anti")
        return failed.collect()["key"].to_list()

    def _next(self) -> int:
        files = (file for table in TABLES for file in files_of(self.folder, table))
        return max((int(file.stem.rpartition("-")[2]) for file in files), default=0) + 1

    def _versions(self) -> dict[str, str]:
        rows = scanned(self.folder)["files"].select("key", "version").unique().collect()
        return dict(rows.iter_rows())

    def _with_failures(self) -> set[str]:
        rows = scanned(self.folder)["files"].filter(pl.col("state") == "failed")
        return set(rows.select("key").unique().collect()["key"].to_list())


@contextmanager
def opened(folder: Path, *, new: bool, day: Callable[[], date] = today) -> Iterator[Archive]:
    """Open an archive to write, with `new` make it where there is none.

    What was added is rows of its tables in the end. Raises ConfigError where another process has it
    open, or it is none.
    """
    made(folder) if new else refuse_others(folder)
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror}", where=str(folder)) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                "another stepscope fleet writes into it", where=str(folder),
                todo="wait until it is done",
            ) from None  # fmt: skip
        archive = Archive(folder, day)
        try:
            yield archive
        finally:
            archive.commit()
    finally:
        os.close(lock)


def digest_of(folder: Path) -> str:
    """Digest all rows, whatever files they lie in and whenever they came."""
    digest = hashlib.sha256()
    for table, scan in scanned(folder).items():
        digest.update(table.encode())
        order = [name for name in ("key", "place", "path") if name in TABLES[table]]
        rows = scan.drop(DATE).sort(order).collect()
        for part in rows.iter_slices(ROWS_AT_ONCE):
            digest.update(part.write_ndjson().encode())
    return digest.hexdigest()
