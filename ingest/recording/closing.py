"""Finish what a recorder that died left behind, so that no row is only in a journal any more.

The recorder's own `close` ends a run that went well. Here a process was killed, or its disk was
full: what is on record becomes Parquet, the manifest keeps what was found and that the run was
never closed, and the journal goes. Wherever this is stopped, no row is lost, and it may be begun
again.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from stepscope.ingest.errors import RecordingError, TraceError, WriteError
from stepscope.ingest.manifest import (
    Manifest,
    Writer,
    manifest_name,
    read_manifest,
    write_manifest,
)
from stepscope.ingest.progress import Progress
from stepscope.ingest.recording.compaction import compact_journal
from stepscope.ingest.recording.holding import in_turn, is_held
from stepscope.ingest.recording.recovery import read_journal, unknown, with_found
from stepscope.ingest.recording.segments import journal_folder
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage.store import covered_numbers, holds_trace, whole_files, writers_in


@dataclass(frozen=True, slots=True)
class Closed:
    """What came of one writer: how many rows its journal alone had, and what of it was unreadable.

    `has_journal` tells that the journal stays, because parts of it cannot be read.
    """

    writer: Writer
    num_rows: int
    discarded_bytes: int
    notes: tuple[str, ...]
    has_journal: bool


def is_recording(path: Path) -> bool:
    """Tell whether a directory is a recording, closed or not."""
    return path.is_dir() and holds_trace(path)


def close_recording(path: Path, progress: Progress | None = None) -> list[Closed]:
    """Finish the journals of `path`, one after the other; none where all are closed.

    Raises `TraceError` where there is no recording, `RecordingError` where a process still
    records, before anything is changed, and `WriteError` where nothing can be written.
    """
    if not is_recording(path):
        raise TraceError("it is not a recording", where=str(path), todo="name a .trace directory")
    writers = writers_in(path, "journal.rank=*")
    for writer in writers:
        if is_held(journal_folder(path, writer)):
            raise _still_recorded(path, writer)
    closed = [close_writer(path, writer, progress) for writer in writers]
    return [each for each in closed if each]


def close_writer(path: Path, writer: Writer, progress: Progress | None = None) -> Closed | None:
    """Finish the journal of one writer; raises as `close_recording` does.

    Where another process is finishing it, such as the one beside an engine that has just died,
    this one waits until that is done: None where nothing is left to do then.
    """
    journal = journal_folder(path, writer)

    def waits() -> None:
        if progress:
            progress("waiting for another process that closes it", 0, None)

    try:
        with in_turn(path, waits):
            return _finished(path, writer, progress) if journal.is_dir() else None
    except OSError as error:
        why = f"cannot be written: {error.strerror or error}"
        raise WriteError(why, where=str(path), todo="make room and try again") from None


def _finished(path: Path, writer: Writer, progress: Progress | None) -> Closed:
    journal = journal_folder(path, writer)
    if is_held(journal):
        raise _still_recorded(path, writer)
    found = read_journal(path, writer, progress).without(_covered(path, writer))
    manifest = _manifest(path, writer)  # before anything is written: it may be a newer format's
    compact_journal(path, writer)
    tables = (table.name for table in TABLES if (path / table.name).is_dir())
    manifest = with_found(manifest, found, tables)
    write_manifest(manifest, path / manifest_name(writer))
    if not found.loss.is_damage:
        shutil.rmtree(journal)
    return Closed(
        writer, sum(found.num_rows().values()), found.loss.discarded_bytes, tuple(found.loss.notes),
        journal.exists(),
    )  # fmt: skip


def _still_recorded(path: Path, writer: Writer) -> RecordingError:
    return RecordingError(
        f"rank {writer} is still being recorded", where=str(path), todo="stop the engine first"
    )


def _manifest(path: Path, writer: Writer) -> Manifest:
    file = path / manifest_name(writer)
    return read_manifest(file) if file.exists() and file.stat().st_size else unknown(writer)


def _covered(path: Path, writer: Writer) -> dict[str, set[int]]:
    """The segments that Parquet files hold."""
    folders = {table.name: path / table.name / f"rank={writer}" for table in TABLES}
    return {name: covered_numbers(whole_files(folder)) for name, folder in folders.items()}
