"""Turn full segments of a journal into Parquet: beside the engine, when it closes, or afterwards.

A segment goes only when its Parquet file stands, and is not read again where both do: wherever this
is stopped, no row is lost and none is there twice.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stepscope.ingest.manifest import Writer
from stepscope.ingest.recording.recovery import (
    Loss,
    Recovered,
    Strings,
    number_of,
    read_segment,
    segment_files,
    table_of,
)
from stepscope.ingest.recording.segments import journal_folder, writer_of
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.storage.store import (
    covered_numbers,
    num_rows,
    parquet_name,
    scan,
    whole_files,
    write_parquet,
)

RUN_BYTES = 64 << 20
MERGED_ROWS = 1 << 20


def compact_segment(file: Path) -> bool:
    """Compact one full segment, unless a row in it has yet to be finished; tell whether it was."""
    loss = Loss()
    segment = read_segment(file, Strings(file.parent, loss), writer_of(file.parent).rank, loss)
    if not segment or segment.num_open or loss.notes:
        return False
    _write(file.parent, [segment])
    file.unlink()
    return True


def compact_writer(trace: Path, writer: Writer) -> None:
    """Compact all that is left of a writer's closed journal, and remove the journal."""
    loss = compact_journal(trace, writer)
    for name in {table_of(file) for file in segment_files(journal_folder(trace, writer))}:
        _merge(trace / name / f"rank={writer}")
    if not loss.notes:
        shutil.rmtree(journal_folder(trace, writer))


def compact_journal(trace: Path, writer: Writer) -> Loss:
    """Compact all that is left of a writer's journal, which stays; return what was lost of it."""
    journal, loss = journal_folder(trace, writer), Loss()
    strings = Strings(journal, loss)
    files = segment_files(journal)
    for name in dict.fromkeys(table_of(file) for file in files):
        done = covered_numbers(whole_files(trace / name / f"rank={writer}"))
        left = [f for f in files if table_of(f) == name and number_of(f) not in done]
        for run in _runs(left):
            read = [read_segment(file, strings, writer.rank, loss) for file in run]
            _write(journal, [segment for segment in read if segment])
    return loss


def _merge(folder: Path) -> None:
    """Make one file of what the other process compacted and what was left, unless it is much."""
    parts = whole_files(folder)
    if len(parts) > 1 and sum(map(num_rows, parts)) <= MERGED_ROWS:
        first, last = parts[0].stem.partition("-")[0], parts[-1].stem.rpartition("-")[2]
        rows = scan(BY_NAME[folder.parent.name], parts).collect()
        write_parquet(rows, folder / parquet_name(int(first), int(last)))
    for stale in {*folder.glob("[0-9]*.parquet")} - {*whole_files(folder)}:
        stale.unlink()
    for draft in folder.glob(".*.tmp"):
        draft.unlink()


def _write(journal: Path, segments: list[Recovered]) -> None:
    kept = [segment for segment in segments if segment.rows.height]
    if not kept:
        return
    file = journal.parent / kept[0].table.name / f"rank={writer_of(journal)}"
    file /= parquet_name(kept[0].number, kept[-1].number)
    write_parquet(pl.concat([segment.rows for segment in kept]), file)


def _runs(files: list[Path]) -> Iterator[list[Path]]:
    """Cut segments into runs of following numbers, small enough to be held in memory."""
    run: list[Path] = []
    size = 0
    for file in files:
        num_bytes = file.stat().st_size
        if run and (size + num_bytes > RUN_BYTES or number_of(file) != number_of(run[-1]) + 1):
            yield run
            run, size = [], 0
        run.append(file)
        size += num_bytes
    if run:
        yield run
