"""Turn full segments of a journal into Parquet: beside the engine, or when it closes.

`python -m stepscope.ingest.compaction` reads paths of full segments from its standard input, one
JSON string a line, until the input ends. A segment goes only when its Parquet file stands, and is
not read again where both do: wherever this is stopped, no row is lost and none is there twice.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stepscope.ingest.recovery import (
    Loss,
    Recovered,
    Strings,
    number_of,
    read_segment,
    segment_files,
)
from stepscope.ingest.segments import journal_folder
from stepscope.ingest.store import covered_numbers, parquet_name, write_parquet

CHUNK_BYTES = 64 << 20
LOWEST_PRIORITY = 19


def main() -> None:
    """Compact what the standard input names, at the lowest priority."""
    os.nice(LOWEST_PRIORITY)
    for line in sys.stdin:
        if not line.strip():
            break
        compact_segment(Path(json.loads(line)))


def compact_segment(file: Path) -> None:
    """Compact one full segment, unless a thread has yet to finish its row in it."""
    loss = Loss()
    segment = read_segment(file, Strings(file.parent, loss), _rank_of(file.parent), loss)
    if segment and not segment.num_open and not loss.notes:
        _write(file.parent, [segment])
        file.unlink()


def compact_rank(trace: Path, rank: int) -> None:
    """Compact all that is left of a rank's closed journal, and remove the journal."""
    journal = journal_folder(trace, rank)
    loss = Loss()
    strings = Strings(journal, loss)
    files = segment_files(journal)
    for name in dict.fromkeys(file.name.rpartition("-")[0] for file in files):
        done = covered_numbers(trace, name, rank)
        left = [f for f in files if f.name.startswith(f"{name}-") and number_of(f) not in done]
        for chunk in _chunks(left):
            read = [read_segment(file, strings, rank, loss) for file in chunk]
            _write(journal, [segment for segment in read if segment])
    if not loss.notes:
        shutil.rmtree(journal)


def _write(journal: Path, segments: list[Recovered]) -> None:
    kept = [segment for segment in segments if segment.rows.height]
    if not kept:
        return
    name, rank = kept[0].table.name, _rank_of(journal)
    file = journal.parent / name / f"rank={rank}"
    file /= parquet_name(segments[0].number, segments[-1].number)
    write_parquet(pl.concat([segment.rows for segment in kept]), file)


def _chunks(files: list[Path]) -> Iterator[list[Path]]:
    chunk: list[Path] = []
    size = 0
    for file in files:
        if chunk and size + file.stat().st_size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(file)
        size += file.stat().st_size
    if chunk:
        yield chunk


def _rank_of(journal: Path) -> int:
    return int(journal.name.rpartition("=")[2])


if __name__ == "__main__":
    main()
