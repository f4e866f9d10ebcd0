"""The `.trace` directory that the recorder writes: Parquet per table and rank, and journals.

A finished trace is Parquet only. What was not closed is recovered: rows that are only in a
journal are read from it, and the manifest says how many and what was discarded. Nothing is
written, so a trace can be opened while it is being recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from stepscope.ingest.errors import TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import (
    Manifest,
    Writer,
    manifest_files,
    read_manifest,
)
from stepscope.ingest.progress import Progress
from stepscope.ingest.recording.recovery import (
    Found,
    Loss,
    read_journal,
    unknown,
    with_found,
)
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage.joined_manifest import merged
from stepscope.ingest.storage.store import (
    covered_numbers,
    holds_trace,
    of_writer,
    parquet_files,
    scan,
    writers_in,
)


class NativeReader:
    """Reads a trace directory, finished or not; an unclosed one is recovered and says so."""

    name = "stepscope trace directory (.trace)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell whether the directory holds a manifest or a journal of ours."""
        return not head and path.is_dir() and holds_trace(path)

    def sources(self, path: Path) -> list[Path]:
        """None: it is Parquet already, and may be growing."""
        return []

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[Mapping[str, Frame], Manifest]:
        """Scan the Parquet files and recover what is only in the journal; raises `TraceError`."""
        try:
            found = [
                read_journal(path, writer, progress)
                for writer in writers_in(path, "journal.rank=*")
            ]
            files = {table.name: parquet_files(path, table.name) for table in TABLES}
            journals = [each.without(_covered(files, each.writer)) for each in found]
            frames = _frames(journals, files)
            manifest = merged(_manifests(path, journals, frames))
        except OSError as error:
            where = str(error.filename or path)
            raise TraceError(f"cannot be read: {error.strerror}", where=where) from None
        return frames, manifest


def _covered(files: Mapping[str, list[Path]], writer: Writer) -> dict[str, set[int]]:
    """The segments that Parquet files hold.

    The files were listed once, and after the journals were read: a segment that was compacted
    meanwhile is in the list, and counts once.
    """
    return {name: covered_numbers(of_writer(files[name], writer)) for name in files}


def _frames(journals: list[Found], files: Mapping[str, list[Path]]) -> dict[str, Frame]:
    """Join Parquet files and what only the journals hold."""
    frames: dict[str, Frame] = {}
    for table in TABLES:
        parts = [scan(table, files[table.name])] if files[table.name] else []
        parts += [
            segment.rows.lazy()
            for journal in journals
            for segment in journal.segments
            if segment.table is table
        ]
        if parts:
            frames[table.name] = pl.concat(parts)
    return frames


def _manifests(trace: Path, journals: list[Found], frames: Mapping[str, Frame]) -> list[Manifest]:
    """The manifest of each writer, in order."""
    files = manifest_files(trace)
    found = {who: read_manifest(file) for who, file in files.items() if file.stat().st_size}
    by_writer = {journal.writer: journal for journal in journals}
    missing = by_writer.keys() - found.keys()
    if not found and not missing:
        missing = {*writers_in(trace, "*/rank=*")} or {*files} or {Writer()}
    found |= {writer: unknown(writer) for writer in missing}
    return [_with_journal(found[who], who, by_writer.get(who), frames) for who in sorted(found)]


def _with_journal(
    manifest: Manifest, writer: Writer, journal: Found | None, frames: Mapping[str, Frame]
) -> Manifest:
    if journal is None and (manifest.closed or manifest.recovered):
        return manifest
    return with_found(manifest, journal or Found(writer, [], Loss()), frames)
