"""The `.trace` directory that the recorder writes: Parquet per table and rank, and journals.

A finished trace is Parquet only. What was not closed is recovered: rows that are only in a
journal are read from it, and the manifest says how many and what was discarded. Nothing is
written, so a trace can be opened while it is being recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from stepscope.ingest.errors import TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import (
    Manifest,
    ReadReport,
    manifest_name,
    merged,
    read_manifest,
)
from stepscope.ingest.progress import Progress
from stepscope.ingest.recording.holding import is_held
from stepscope.ingest.recording.recovery import (
    Loss,
    Recovered,
    Strings,
    read_segment,
    read_tally,
    segment_files,
)
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage.store import (
    covered_numbers,
    holds_trace,
    of_rank,
    parquet_files,
    scan,
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
            journals = [
                _read_journal(path, rank, progress) for rank in _ranks_of(path, "journal.rank=*")
            ]
            frames = _frames(journals, {t.name: parquet_files(path, t.name) for t in TABLES})
            manifest = merged(_manifests(path, journals, frames))
        except OSError as error:
            where = str(error.filename or path)
            raise TraceError(f"cannot be read: {error.strerror}", where=where) from None
        return frames, manifest


@dataclass(slots=True)
class _Journal:
    """What was found in one rank's journal and is not in Parquet files yet."""

    rank: int
    segments: list[Recovered]
    loss: Loss
    dropped: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    is_live: bool = False

    def num_rows(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for segment in self.segments:
            name = segment.table.name
            counts[name] = counts.get(name, 0) + segment.rows.height
        return counts


def _read_journal(trace: Path, rank: int, progress: Progress | None) -> _Journal:
    folder, loss = trace / f"journal.rank={rank}", Loss()
    is_live = is_held(folder)
    strings, files = Strings(folder, loss), segment_files(folder)
    found: list[Recovered] = []
    for done, file in enumerate(files, 1):
        segment = read_segment(file, strings, rank, loss)
        found += [segment] if segment else []
        if progress:
            progress(f"recovering rank {rank}", done, len(files))
    return _Journal(rank, found, loss, *read_tally(folder), is_live=is_live)


def _frames(journals: list[_Journal], files: Mapping[str, list[Path]]) -> dict[str, Frame]:
    """Join Parquet files and what only the journals hold.

    The files were listed once, and after the journals were read: a segment that was compacted
    meanwhile is in the list, and counts once.
    """
    for journal in journals:
        covered = {name: covered_numbers(of_rank(files[name], journal.rank)) for name in files}
        journal.segments = [s for s in journal.segments if s.number not in covered[s.table.name]]
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


def _manifests(
    trace: Path, journals: list[_Journal], frames: Mapping[str, Frame]
) -> list[Manifest]:
    files = [file for file in sorted(trace.glob("manifest*.json")) if file.stat().st_size]
    found = [read_manifest(file) for file in files]
    known = {rank for manifest in found for rank in manifest.ranks}
    missing = [journal.rank for journal in journals if journal.rank not in known]
    if not found and not missing:
        missing = _ranks_of(trace, "*/rank=*")
    found += [_unknown(rank) for rank in missing]
    by_rank = {journal.rank: journal for journal in journals}
    return [_with_journal(each, by_rank.get(each.ranks[0]), frames) for each in found]


def _unknown(rank: int) -> Manifest:
    lost = ReadReport(notes=(f"{manifest_name(rank)} is missing",))
    return Manifest("unknown", ranks=(rank,), closed=False, report=lost)


def _with_journal(
    manifest: Manifest, journal: _Journal | None, frames: Mapping[str, Frame]
) -> Manifest:
    if journal is None and manifest.closed:
        return manifest
    journal = journal or _Journal(manifest.ranks[0], [], Loss())
    if manifest.closed and not journal.loss.notes:
        return manifest
    said = {
        "rows": journal.num_rows(),
        "live": journal.is_live,
        "discarded_bytes": journal.loss.discarded_bytes,
        "notes": [*journal.loss.notes, *([journal.reason] if journal.reason else [])],
    }
    return replace(
        manifest,
        tables=manifest.tables or dict.fromkeys(frames, "partial"),
        recovered={str(journal.rank): said},
        dropped=manifest.dropped or journal.dropped,
    )


def _ranks_of(trace: Path, pattern: str) -> list[int]:
    names = {folder.name.rpartition("=")[2] for folder in trace.glob(pattern)}
    return sorted(int(name) for name in names if re.fullmatch("[0-9]{1,9}", name))
