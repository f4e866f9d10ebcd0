"""A trace on disk: one Parquet dataset per table, `<table>/rank=<r>/<first>-<last>.parquet`.

Every file holds all the columns of its table, `rank` too, so that each can be read by itself; what
another process recorded of rank 0 is in `<table>/rank=0.front-end/`, or as it is called. The
numbers in a file's name are those of the journal segments that it was made of: a segment that a
file covers is not read again.

What keeps pace with another column is written less that one, in a column that says so, such as
`num_computed - step`: most of it is then the same from row to row and takes no room (decisions
0034 and 0065). Readers see the column of the schema.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import polars as pl

from stepscope.ingest.columns import Table
from stepscope.ingest.errors import DamagedPart, SchemaMismatch, TraceError
from stepscope.ingest.format_version import check_format
from stepscope.ingest.frames import Frame, conform, polars_schema
from stepscope.ingest.manifest import Writer, manifest_files
from stepscope.ingest.schema import FORMAT_VERSION, TABLES

ROW_GROUP_ROWS = 256 << 10
SINK_ROWS = 16 << 10
VERSION = "stepscope.format_version"
"""Key of a Parquet file's metadata; files of format 1 have none."""
MOST_SEGMENTS = 1 << 20
KEEPS_PACE = {
    "num_computed": "step", "position": "step", "claim_ns": "dispatch_ns", "queued_ns": "ready_ns",
    "dequeued_ns": "retired_ns", "end_ns": "ts_ns",
}  # fmt: skip
"""Columns, each with the one that it is written less: from row to row both grow alike."""


def holds_trace(folder: Path) -> bool:
    """Tell whether a directory holds a manifest, a journal or a table of ours."""
    patterns = ("journal.rank=*", *(f"{table.name}/rank=*" for table in TABLES))
    return bool(manifest_files(folder)) or any(any(folder.glob(each)) for each in patterns)


def writers_in(folder: Path, pattern: str) -> list[Writer]:
    """List the writers whose folders are called so, such as `journal.rank=*`."""
    names = {found.name.partition("=")[2] for found in folder.glob(pattern)}
    return sorted(writer for name in names if (writer := Writer.named(name)))


def parquet_name(first: int, last: int) -> str:
    """Name the Parquet file that is made of these segments."""
    return f"{first:06}-{last:06}.parquet"


def covered_numbers(files: Iterable[Path]) -> set[int]:
    """Give the numbers of the segments that these Parquet files are made of."""
    return {number for first, last in map(_covers, files) for number in range(first, last + 1)}


def of_writer(files: Iterable[Path], writer: Writer) -> list[Path]:
    """Pick the files of one writer."""
    return [file for file in files if file.parent.name == f"rank={writer}"]


def parquet_files(folder: Path, table: str) -> list[Path]:
    """List the Parquet files of a table, by rank and number."""
    ranks = sorted(folder.glob(f"{table}/rank=*"), key=lambda rank: (len(rank.name), rank.name))
    return [file for rank in ranks for file in whole_files(rank)]


def whole_files(folder: Path) -> list[Path]:
    """List the Parquet files of one rank by number, without those that a wider one was made of."""
    files: list[Path] = []
    done = -1
    for file in sorted(
        folder.glob("[0-9]*.parquet"), key=lambda f: (_covers(f)[0], -_covers(f)[1])
    ):
        if _covers(file)[1] > done:
            files.append(file)
            done = _covers(file)[1]
    return files


def _covers(file: Path) -> tuple[int, int]:
    first, _, last = file.stem.partition("-")
    try:
        span = int(first), int(last)
    except ValueError:
        raise TraceError("no number of segments in the name", where=str(file)) from None
    if not 0 <= span[1] - span[0] < MOST_SEGMENTS:
        raise TraceError("an absurd number of segments in the name", where=str(file))
    return span


def scan(table: Table, files: list[Path]) -> pl.LazyFrame:
    """Scan Parquet files of one table.

    Raises `TraceError` for one that is damaged or newer, or has a column that the table lacks.
    """
    for file in files:
        if unknown := unknown_columns(table, file):
            what = f"unknown columns {', '.join(map(repr, unknown))}"
            raise SchemaMismatch(what, where=str(file))
    return scan_known(table, files)


def scan_known(table: Table, files: list[Path]) -> pl.LazyFrame:
    """Scan the columns of a table in Parquet files that `unknown_columns` has checked."""
    # Polars would look for `name=value` in every folder above the trace, too.
    wanted = polars_schema(table)
    less = {
        name: (_less(name, other), other)
        for name, other in KEEPS_PACE.items()
        if {name, other} <= {*wanted}
    }
    found = pl.scan_parquet(
        files,
        glob=False,
        hive_partitioning=False,
        schema={**wanted, **{column: pl.Int64() for column, _ in less.values()}},
        missing_columns="insert",
        extra_columns="ignore",
    )
    if not less:
        return found
    whole = {
        name: pl.coalesce(name, pl.col(column) + pl.col(other))
        for name, (column, other) in less.items()
    }
    return found.with_columns(**whole).select(wanted.names())


def num_rows(file: Path) -> int:
    """Count the rows of one file."""
    return int(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item())


def write_parquet(frame: pl.DataFrame, file: Path) -> None:
    """Write one file so that it is whole or not there; the same rows give the same bytes.

    Raises `OSError` where there is no room for it.
    """
    frame = _with_differences(frame)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        frame.write_parquet(
            draft, compression="zstd", statistics=True, row_group_size=ROW_GROUP_ROWS,
            metadata={VERSION: str(FORMAT_VERSION)},
        )  # fmt: skip
        draft.replace(file)
    except pl.exceptions.PolarsError:
        # What Polars says of a full disk reads as if a file were damaged.
        raise OSError(errno.EIO, "the disk took no more of it") from None
    finally:
        draft.unlink(missing_ok=True)


def _with_differences(frame: pl.DataFrame) -> pl.DataFrame:
    """Write what keeps pace less what it keeps pace with, where that is known wherever it is."""
    pairs = {
        name: other
        for name, other in KEEPS_PACE.items()
        if {name, other} <= {*frame.columns}
        and not (frame[other].is_null() & frame[name].is_not_null()).any()
    }
    less = [(pl.col(name) - pl.col(other)).alias(_less(name, other))
            for name, other in pairs.items()]  # fmt: skip
    return frame.with_columns(less).drop(pairs)


def _less(name: str, other: str) -> str:
    """Name the column that holds what one has more than another."""
    return f"{name} - {other}"


def sink_parquet(table: Table, frame: Frame, file: Path) -> None:
    """Write a new file; what is not in memory yet in small row groups, so that little of it is.

    Text that is an Enum is written as numbers and a dictionary, several times as fast, and is read
    as text. Raises `SchemaMismatch`.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    conform(table, frame, keep_enums=True).sink_parquet(
        file,
        compression="zstd",
        compression_level=1,
        statistics=False,  # a sixth of the time, and a filter on packed rows looks at none
        row_group_size=ROW_GROUP_ROWS if isinstance(frame, pl.DataFrame) else SINK_ROWS,
        metadata=_types(table),
        engine="streaming",
    )


@cache
def _types(table: Table) -> dict[str, str]:
    """What a Parquet file of exactly the table's types says of them."""
    file = io.BytesIO()
    pl.DataFrame(schema=polars_schema(table)).write_parquet(file)
    return pl.read_parquet_metadata(file.getvalue())


def unknown_columns(table: Table, file: Path) -> list[str]:
    """Return the columns of a Parquet file that the table does not have.

    Raises `DamagedPart` for a damaged file, `NewerFormat`, and `SchemaMismatch` for a column whose
    type does not fit.
    """
    try:
        # Polars would take some characters of a path for a pattern.
        with file.open("rb") as opened:
            version = pl.read_parquet_metadata(opened).get(VERSION, "1")
            opened.seek(0)
            found = pl.read_parquet_schema(opened)
        check_format(int(version), file)
    except (pl.exceptions.PolarsError, ValueError):
        raise DamagedPart("the Parquet file is damaged", where=str(file)) from None
    whole = {_less(name, other): name for name, other in KEEPS_PACE.items()}
    told = pl.Schema({whole.get(name, name): kind for name, kind in found.items()})
    if told == polars_schema(table):
        return []
    unknown = [name for name in told if name not in table.names]
    known = {name: kind for name, kind in told.items() if name in table.names}
    try:
        conform(table, pl.LazyFrame(schema=known))
    except SchemaMismatch as error:
        raise SchemaMismatch(error.what, where=str(file)) from None
    return unknown
