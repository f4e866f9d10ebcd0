"""The archive's journal: what is finished and not in its tables yet, a record at a time.

A record is on the disk, as far as a process can lose it, as soon as it is appended: its length, the
CRC of its bytes, its bytes. A record that was cut off while it was written is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from isal import isal_zlib

from stepscope.analyzers.fleet.archive.columns_of_rows import Record
from stepscope.ingest.errors import WriteError

FOLDER = "journal"
_NAME = re.compile(r"(\d{6,})\.journal")
_HEAD_BYTES = 12
_RECORDS = msgspec.msgpack.Decoder(Record)


class RowJournal:
    """A journal that is appended to. Raises `WriteError` where the disk takes no more."""

    def __init__(self, archive: Path, number: int) -> None:
        self.file = archive / FOLDER / f"{number:06}.journal"
        self.num_records = 0
        self._out: int | None = None

    def append(self, record: Record) -> None:
        """Put a record on the disk."""
        message = msgspec.msgpack.encode(record)
        head = len(message).to_bytes(8) + isal_zlib.crc32(message).to_bytes(4)
        try:
            if self._out is None:
                self.file.parent.mkdir(exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._out = os.open(self.file, flags, 0o644)
            left = memoryview(head + message)
            while left:
                left = left[os.write(self._out, left) :]
        except OSError as error:
            raise WriteError(
                f"cannot be written: {error.strerror}",
                where=str(self.file),
                todo="make room and run it again: what was finished before is there",
            ) from None
        self.num_records += 1

    def close(self) -> None:
        """Append no more."""
        if self._out is not None:
            os.close(self._out)
            self._out = None


def journals(archive: Path) -> list[tuple[int, Path]]:
    """The journals of an archive that are not in its tables yet, by number."""
    found = [(_NAME.fullmatch(each.name), each) for each in (archive / FOLDER).glob("*.journal")]
    return sorted((int(name[1]), file) for name, file in found if name)


def records_of(file: Path) -> Iterator[Record]:
    """The records of a journal, as far as they are whole."""
    written = memoryview(file.read_bytes())
    while len(written) > _HEAD_BYTES:
        end = _HEAD_BYTES + int.from_bytes(written[:8])
        message, told = written[_HEAD_BYTES:end], int.from_bytes(written[8:_HEAD_BYTES])
        if end > len(written) or isal_zlib.crc32(message) != told:
            return
        written = written[end:]
        yield _RECORDS.decode(message)
