"""A recording in progress: what its writers have recorded since it was asked last, and their state.

Nothing is written, and nothing is done between two calls: who does not ask costs nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import polars as pl

from stepscope.ingest.errors import TraceError
from stepscope.ingest.live.growing_journal import Compacted, GrowingJournal, News
from stepscope.ingest.manifest import STOPPED, Manifest, Writer, manifest_files, read_manifest
from stepscope.ingest.recording.holding import is_held
from stepscope.ingest.recording.recovery import read_tally, unknown
from stepscope.ingest.recording.segments import journal_folder
from stepscope.ingest.storage.joined_manifest import merged
from stepscope.ingest.storage.store import writers_in

MOST_CAUGHT_UP = 250_000
"""Rows of compacted files that are read at once; of more the latest are, and others are counted."""


class RecordingState(StrEnum):
    """What has become of a recording."""

    RECORDING = "recording"
    STOPPED = "stopped"  # by its recorder: the disk is full, mostly
    KILLED = "killed"  # who wrote it ended without closing it
    CLOSED = "closed"
    GONE = "gone"  # from the disk


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came since the last time, by table.

    `rows` stay as they are, and `unfinished` ones are told again the next time. `skipped` counts
    rows that are on disk and were not read; all of them are before `whole_since_ns`, where they can
    be. `given_up` rows may miss columns that came later; `notes` say what could not be read.
    """

    state: RecordingState
    manifest: Manifest
    rows: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    unfinished: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    whole_since_ns: int | None = None
    given_up: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether there is anything to show that was not there."""
        return bool(self.rows or self.unfinished or self.skipped)


def is_recording(path: Path) -> bool:
    """Tell whether a directory is a trace that a process that lives is recording."""
    try:
        writers = writers_in(path, "journal.rank=*")
    except OSError:
        return False
    return any(is_held(journal_folder(path, writer)) for writer in writers)


class GrowingTrace:
    """Reads a trace directory while it is recorded, each row once; not for two threads at once."""

    def __init__(self, path: Path, most_caught_up: int = MOST_CAUGHT_UP) -> None:
        self.path = path
        self._most = most_caught_up
        self._journals: dict[Writer, GrowingJournal] = {}
        self._manifest = unknown(Writer())
        self._is_over = False
        self._identity = _identity(path)

    def take(self) -> Recorded:
        """Read what is new. Nothing comes any more once the state is another than `recording`."""
        if _identity(self.path) != self._identity:
            return Recorded(RecordingState.GONE, self._manifest)
        for writer in writers_in(self.path, "journal.rank=*"):
            if writer not in self._journals:
                self._journals[writer] = GrowingJournal(self.path, writer)
        # Who holds a journal is asked before it is read: what is written until then is read.
        held = [each for each in self._journals.values() if is_held(each.folder)]
        self._manifest = self._read_manifest()
        tallies = [read_tally(each.folder) for each in self._journals.values()]
        reason = next((reason for _, reason in tallies if reason), "")
        state = RecordingState.RECORDING if held else self._ended(reason)
        news = News()
        is_last = not held
        if not self._is_over:
            for journal in self._journals.values():
                journal.take(news, is_last=is_last)
        self._is_over = is_last
        skipped, since_ns = self._catch_up(news)
        dropped: dict[str, int] = {}
        for counts, _ in tallies:
            for table, number in counts.items():
                dropped[table] = dropped.get(table, 0) + number
        return Recorded(
            state, replace(self._manifest, dropped=dropped or self._manifest.dropped), news.rows,
            news.unfinished, skipped, since_ns, news.given_up, dropped or self._manifest.dropped,
            reason, tuple(news.notes),
        )  # fmt: skip

    def _ended(self, reason: str) -> RecordingState:
        if self._manifest.closed:
            return RecordingState.CLOSED
        return RecordingState.STOPPED if reason.startswith(STOPPED) else RecordingState.KILLED

    def _read_manifest(self) -> Manifest:
        """The manifest of all writers, as it was where one cannot be read."""
        with suppress(TraceError, OSError):
            found = [read_manifest(file) for file in manifest_files(self.path).values()]
            if found:
                return merged(found)
        return self._manifest

    def _catch_up(self, news: News) -> tuple[dict[str, int], int | None]:
        """Read the latest compacted files and count the others; say from when all is read."""
        skipped, since_ns = dict(news.missed), None
        left = self._most
        if sum(each.num_rows for each in news.compacted) > left:
            known = {id(each): _last_ns(each) for each in news.compacted}
            news.compacted.sort(key=lambda each: known[id(each)], reverse=True)
        for each in news.compacted:
            left -= each.num_rows
            if left >= 0 and (frame := _rows(each, news)) is not None:
                # Before what the journal told since then.
                news.rows.setdefault(each.table, []).insert(0, frame)
                continue
            left = min(left, 0)
            skipped[each.table] = skipped.get(each.table, 0) + each.num_rows
            since_ns = max(since_ns or 0, _last_ns(each) + 1)
        return skipped, since_ns


def _rows(compacted: Compacted, news: News) -> pl.DataFrame | None:
    try:
        return compacted.rows()
    except (OSError, TraceError, pl.exceptions.PolarsError) as error:
        news.notes.append(f"{compacted.table}/{compacted.file.name}: {error}")
        return None


def _last_ns(compacted: Compacted) -> int:
    with suppress(OSError, TraceError, pl.exceptions.PolarsError):
        return compacted.last_ns() or 0
    return 0


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a directory from another one of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
