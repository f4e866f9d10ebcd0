"""The formats that a trace can be read from: one file each, one line in `READERS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.readers.engine_log import EngineLogReader
from stepscope.ingest.readers.inflate import inflated
from stepscope.ingest.readers.kineto import KinetoReader
from stepscope.ingest.readers.kineto_folder import KinetoFolderReader
from stepscope.ingest.readers.kv_events import KvEventsReader
from stepscope.ingest.readers.native import NativeReader
from stepscope.ingest.readers.swimlane import SwimlaneReader
from stepscope.ingest.trace import Progress

HEAD_BYTES = 64 << 10


class Reader(Protocol):
    """Reads one format. `name` is how a message calls it: "stepscope trace directory"."""

    @property
    def name(self) -> str:
        """How a message calls the format."""

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell by content whether the file is of this format.

        `head` is its first 64 KiB, decompressed when gzipped, and empty for a directory.
        """

    def sources(self, path: Path) -> Sequence[Path]:
        """Every file that `read` looks at: what it gives is kept until one of them changes."""

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[Mapping[str, Frame], Manifest]:
        """Read the tables and the manifest; raises `TraceError`, `LimitExceeded` among them."""


READERS: tuple[Reader, ...] = (
    NativeReader(), SwimlaneReader(), KinetoReader(), KinetoFolderReader(), KvEventsReader(),
    EngineLogReader(),
)  # fmt: skip


def reader_of(path: Path) -> Reader:
    """Find the reader for a file or directory by its content; raises `TraceError`."""
    head = _head(path)
    for reader in READERS:
        if reader.sniff(head, path):
            return reader
    what = "the directory holds no trace" if path.is_dir() else "the file's format is not known"
    known = ", ".join(reader.name for reader in READERS)
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
