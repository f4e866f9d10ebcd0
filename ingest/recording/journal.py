"""The journal of one rank: rows and strings that are on record the moment they are written.

Everything lives in mapped files, so a killed process loses nothing (a machine that loses power
may). A string is whole in its file before the row that names it, and a row counts only once its
marker stands, which is stored last. Standard library only.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, repeat
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol

from stepscope.ingest.columns import Type
from stepscope.ingest.manifest import STOPPED
from stepscope.ingest.recording.forms.rows import NULLS
from stepscope.ingest.recording.forms.texts import Place, size_with, write_bytes
from stepscope.ingest.recording.holding import hold
from stepscope.ingest.recording.segments import STRINGS_MAGIC, make_segment, size_of
from stepscope.ingest.recording.tally import TABLE_NAMES, Tally

NULL64 = int(NULLS[Type.I64])
MOST_TEXTS = (1 << 32) - 1
PATIENCE_S, PAUSE_S = 0.1, 0.001


FAILED = (
    "stepscope stopped recording into %s (%s) and the engine goes on; make room there, and start "
    "the engine again to record on"
)
LATE = (
    "stepscope does not record rows into %s any more: its recorder was closed, and `dropped` "
    "counts the rows since then; close it after the threads that record have ended"
)
FORKED = (
    "stepscope does not record the rows of this process into %s: it was forked from the one that "
    "records, and `dropped` counts its rows; open a Recorder with another `part` in this process"
)


class Stopped(Exception):
    """Recording has stopped; the row at hand is dropped."""


class Stream(Protocol):
    """Rows of one table on their way into the journal, in one segment after another."""

    @property
    def table(self) -> str:
        """The table's name."""

    @property
    def is_used(self) -> bool:
        """Whether a row was ever recorded."""

    @property
    def stands_for_many(self) -> bool:
        """Whether a row of it stands for many of the table's."""

    def prepare(self) -> None:
        """Make the next segment before it is needed; raises `OSError` where there is no room."""

    def stop(self) -> None:
        """Let every further row find no place."""

    def num_unfinished(self) -> int:
        """Count the rows that had a place when the stream was stopped, and are not whole yet."""

    def drop_unfinished(self) -> int:
        """Mark those rows as dropped; return how many they were."""

    def disown(self) -> None:
        """Leave those rows to the parent: this is a process that was forked off."""


Sealed = Callable[[Stream, Path], None]


class Journal:
    """What the streams of one rank share: folder, lock, strings, tally, and the end of it all.

    `sealed` is told of every segment that is full. `next_seq` counts the rows that tell of the
    scheduler's state, unless another process does so. Raises `OSError` where there is no room.
    """

    def __init__(self, folder: Path, sealed: Sealed, *, counts: bool = True) -> None:
        self.folder = folder
        self.next_seq: Callable[[], int] = (count(1) if counts else repeat(NULL64)).__next__
        self.lock = threading.RLock()
        self.sealed = sealed
        self.failed: str | None = None
        self.stopped = False
        self._late_warning = ""
        self.tally = Tally(folder)
        self.strings = Strings(self)
        self.streams: list[Stream] = []
        self._numbers: dict[str, Iterator[int]] = {}
        self._held = hold(folder)

    def add(self, stream: Stream) -> None:
        """Take in a stream, which ends when the journal does."""
        self.streams.append(stream)

    def next_number(self, name: str) -> int:
        """Count the segments of a table, over all its streams; takes no lock."""
        return next(self._numbers.setdefault(name, count()))

    def recorded(self) -> list[str]:
        """Name the tables that have a segment."""
        used = {stream.table for stream in self.streams if stream.is_used}
        return [name for name in TABLE_NAMES if name in used]

    def stop(self) -> None:
        """Record nothing from here on: every further row is dropped and counted."""
        with self.lock:
            self.stopped = True
            self.strings.stop()
            for stream in self.streams:
                stream.stop()

    def close(self) -> None:
        """Record nothing from here on; rows that other threads are packing are waited for.

        A row that is still not whole after `PATIENCE_S`, such as that of a thread that was
        interrupted, is dropped and counted.
        """
        self._late_warning = self._late_warning or LATE
        self.stop()
        deadline = monotonic() + PATIENCE_S
        while any(stream.num_unfinished() for stream in self.streams):
            if monotonic() > deadline:
                break
            sleep(PAUSE_S)
        with self.lock:
            for stream in self.streams:
                if num_rows := stream.drop_unfinished():
                    self.drop(stream.table, num_rows, Stopped())

    def fail(self, reason: str) -> None:
        """Record nothing from here on, and keep the first reason for it."""
        self.stop()
        self.failed = self.failed or reason
        self.tally.note(reason)
        self.let_go()

    def drop(self, table: str, num_rows: int, error: Exception) -> None:
        """Count rows that are not recorded, and see to why they are not."""
        self.tally.drop(table, num_rows)
        if isinstance(error, OSError):
            why = error.strerror or _said(error)
            if self.failed is None:
                _warn(FAILED, self.folder, why)
            self.fail(f"{STOPPED}: {why}")
        elif isinstance(error, Stopped):
            warning, self._late_warning = self._late_warning, ""
            if warning:
                _warn(warning, self.folder.parent)
        else:
            self.tally.note(f"{table}: {_said(error)}")

    def let_go(self) -> None:
        """Say to whoever opens the folder that nothing more will be recorded in it."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def disown(self) -> None:
        """Leave the files to the parent: this is a process that was forked off."""
        # A thread that has the lock is not in this process, and would never let go of it.
        self.lock = self.strings.ids.lock = threading.RLock()
        self.tally.detach()
        self.fail("this process was forked from the one that records")
        self._late_warning = FORKED
        for stream in self.streams:
            stream.disown()


def _said(error: Exception) -> str:
    """What an error says; its class where it cannot say it, as it may be an engine's own."""
    try:
        return str(error)
    except Exception:
        return type(error).__name__


def _warn(text: str, *values: object) -> None:
    """Say in the engine's log that no more is recorded, and what to do about it."""
    import logging  # noqa: PLC0415 - few recorders warn, and an engine may not have it yet

    with suppress(Exception):  # a handler of the engine's
        logging.getLogger("stepscope").warning(text, *values)


class _Ids(dict[Any, int]):
    """Ids of strings; one that is not among them is written when it is looked up.

    What is no text raises `KeyError`: a number is spelt where the row is mended, all else refused.
    """

    def __init__(
        self, lock: threading.RLock, place: Place, written: Callable[[bytes], int]
    ) -> None:
        super().__init__()
        self.place = place
        """Where rows that are packed in C write a text that is new."""
        self.lock, self._written = lock, written

    def __missing__(self, text: Any) -> int:
        if type(text) is not str:
            raise KeyError(text)
        with self.lock:
            number = self[text] = self._written(text.encode("utf-8", "replace"))
        return number


class Strings:
    """Strings, each written once; an id is where the string stands, in units of 8 bytes.

    `ids` forgets all it knows when a segment is full, so its memory is bounded by one segment's;
    a string that comes again is then written again.
    """

    def __init__(self, journal: Journal) -> None:
        self.place: Place = [bytearray(), 0, 0]
        self.ids = _Ids(journal.lock, self.place, self.written)
        self._journal = journal

    def stop(self) -> None:
        """Let nothing further be written."""
        self.place[:] = bytearray(), 0, 0

    def id_of(self, text: str | int) -> int:
        """Give the id of a string, which is whole in its file from then on; a number is spelt."""
        if isinstance(text, int):
            text = str(text)
        elif not isinstance(text, str):
            raise TypeError(f"{type(text).__name__} where a string belongs")
        return self.ids[text]

    def written(self, raw: bytes) -> int:
        """Write bytes, which are whole in the file from then on; give their id.

        Whoever calls it holds the lock.
        """
        while (number := write_bytes(self.place, raw)) is None:
            if self._journal.stopped:
                raise Stopped
            self._turn(size_with(raw))
        return number

    def _turn(self, size: int) -> None:
        number = self._journal.next_number("strings")
        segment, _, first = self.place
        first += len(segment)
        if first // 8 > MOST_TEXTS:
            raise OverflowError("too many texts")
        header = STRINGS_MAGIC + struct.pack("<Q", first)
        room = max(size_of(number), -(-(len(header) + size) // 8) * 8)
        file = self._journal.folder / f"strings-{number:06}.seg"
        self.place[:] = make_segment(file, header, room), len(header), first
        self.ids.clear()
