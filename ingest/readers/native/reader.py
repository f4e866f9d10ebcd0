"""The `.trace` directory that the recorder writes: Parquet per table and rank, and journals.

A finished trace is Parquet only. What was not closed is recovered: rows that are only in a
journal are read from it, and the manifest says how many and what was discarded. A damaged file
costs its own rows. Nothing is written, so a trace can be opened while it is being recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.ingest.columns import Table
from stepscope.ingest.errors import DamagedPart, NewerFormat, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import (
    UNREAD,
    Manifest,
    Writer,
    manifest_files,
    read_cut_manifest,
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
    scan_known,
    unknown_columns,
    writers_in,
)


@dataclass(slots=True)
class _Damage:
    """What cannot be read of the files of a recording, journals apart."""

    path: Path
    notes: dict[Writer, list[str]] = field(default_factory=dict)
    num_bytes: dict[Writer, int] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)
    unread: dict[str, None] = field(default_factory=dict)

    def whole(self, table: Table, files: Iterable[Path]) -> list[Path]:
        """The files of a table that can be read; notes the others, and columns left out."""
        found = []
        for file in files:
            try:
                names = unknown_columns(table, file)
            except DamagedPart as error:
                self.tables.add(table.name)
                self.add(_writer_of(file), file, f"{error.what}; its rows are missing")
            else:
                found.append(file)
                self.unread |= dict.fromkeys(f"{table.name}.{name}" for name in names)
        return found

    def add(self, writer: Writer, file: Path, what: str) -> None:
        """Note a file of a writer that cannot be read, or not to its end."""
        self.notes.setdefault(writer, []).append(f"{file.relative_to(self.path)}: {what}")
        lost = file.stat().st_size if file.suffix == ".parquet" else 0
        self.num_bytes[writer] = self.num_bytes.get(writer, 0) + lost

    def in_manifest(self, manifest: Manifest) -> Manifest:
        """Add what cannot be read to the manifest of all writers."""
        if self.unread:
            manifest = replace(manifest, config={**manifest.config, UNREAD: [*self.unread]})
        if not self.notes:
            return manifest
        recovered: dict[str, Any] = {**(manifest.recovered or {})}
        for writer, notes in self.notes.items():
            before = recovered.get(str(writer))
            was: dict[str, Any] = (
                before if isinstance(before, dict) else {"rows": {}, "live": False}
            )
            recovered[str(writer)] = {
                **was,
                "discarded_bytes": was.get("discarded_bytes", 0) + self.num_bytes[writer],
                "notes": [*was.get("notes", ()), *notes],
                "damaged": True,
            }
        tables = {**manifest.tables, **dict.fromkeys(self.tables, "partial")}
        return replace(manifest, closed=False, recovered=recovered, tables=tables)


def _writer_of(file: Path) -> Writer:
    return Writer.named(file.parent.name.partition("=")[2]) or Writer()


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
            damage = _Damage(path)
            frames = _frames(journals, files, damage)
            manifest = merged(_manifests(path, journals, frames, damage))
        except OSError as error:
            where = str(error.filename or path)
            raise TraceError(f"cannot be read: {error.strerror}", where=where) from None
        return frames, damage.in_manifest(manifest)


def _covered(files: Mapping[str, list[Path]], writer: Writer) -> dict[str, set[int]]:
    """The segments that Parquet files hold.

    The files were listed once, and after the journals were read: a segment that was compacted
    meanwhile is in the list, and counts once.
    """
    return {name: covered_numbers(of_writer(files[name], writer)) for name in files}


def _frames(
    journals: list[Found], files: Mapping[str, list[Path]], damage: _Damage
) -> dict[str, Frame]:
    """Join Parquet files and what only the journals hold."""
    frames: dict[str, Frame] = {}
    for table in TABLES:
        whole = damage.whole(table, files[table.name])
        parts = [scan_known(table, whole)] if whole else []
        parts += [
            segment.rows.lazy()
            for journal in journals
            for segment in journal.segments
            if segment.table is table
        ]
        if parts:
            frames[table.name] = pl.concat(parts)
    return frames


def _manifests(
    trace: Path, journals: list[Found], frames: Mapping[str, Frame], damage: _Damage
) -> list[Manifest]:
    """The manifest of each writer, in order."""
    files = manifest_files(trace)
    found = {
        who: _manifest_in(file, who, damage, has_rows=bool(frames))
        for who, file in files.items()
        if file.stat().st_size
    }
    by_writer = {journal.writer: journal for journal in journals}
    missing = by_writer.keys() - found.keys()
    if not found and not missing:
        missing = {*writers_in(trace, "*/rank=*")} or {*files} or {Writer()}
    found |= {writer: unknown(writer) for writer in missing}
    return [_with_journal(found[who], who, by_writer.get(who), frames) for who in sorted(found)]


def _manifest_in(file: Path, writer: Writer, damage: _Damage, *, has_rows: bool) -> Manifest:
    """The manifest of a writer; of one that is cut off, what it says before its end.

    Where there are no rows beside a manifest that is cut off, there is nothing to open.
    """
    try:
        return read_manifest(file)
    except NewerFormat:
        raise
    except TraceError:
        cut = read_cut_manifest(file, writer) if has_rows else None
        if cut is None:
            raise
    damage.add(writer, file, "the manifest is cut off; what it says before its end is used")
    return cut


def _with_journal(
    manifest: Manifest, writer: Writer, journal: Found | None, frames: Mapping[str, Frame]
) -> Manifest:
    if journal is None and (manifest.closed or manifest.recovered):
        return manifest
    return with_found(manifest, journal or Found(writer, [], Loss()), frames)
