"""The formats that a trace can be read from: one file each, one line in `foreign.READERS`."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.readers.inflate import inflated
from stepscope.ingest.readers.native import NativeReader
from stepscope.ingest.readers.reader import Reader

HEAD_BYTES = 64 << 10


def reader_of(path: Path) -> Reader:
    """Find the reader for a file or directory by its content; raises `TraceError`."""
    head = _head(path)
    ours = NativeReader()
    if ours.sniff(head, path):
        return ours
    # They take longer to import than one of our traces to open.
    from stepscope.ingest.readers.foreign import READERS  # noqa: PLC0415

    for reader in READERS:
        if reader.sniff(head, path):
            return reader
    what = "the directory holds no trace" if path.is_dir() else "the file's format is not known"
    known = ", ".join(reader.name for reader in (ours, *READERS))
    raise UnknownFormat(what, where=str(path), todo=f"formats that can be read: {known}")


def _head(path: Path) -> bytes:
    try:
        if path.is_dir():
            next(path.iterdir(), None)  # raises where the directory may not be read
            return b""
        if path.exists() and not path.is_file():
            raise TraceError("neither a file nor a directory", where=str(path))
        with path.open("rb") as file:
            start = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise TraceError("no such file or directory", where=str(path)) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise TraceError(f"cannot be read: {why}", where=str(path)) from None
    if not start:
        raise TraceError("the file is empty", where=str(path))
    return inflated(start, HEAD_BYTES)
