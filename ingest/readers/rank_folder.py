"""Reader of a folder of profiles, one for each rank, as one trace.

A file's rank is what it says itself, else what its name says; one that is taken gets the next that
is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from stepscope.ingest.errors import TraceError
from stepscope.ingest.frames import Frame, conformed
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import inflated
from stepscope.ingest.readers.rank_joining import RankFile, joined
from stepscope.ingest.readers.seam import HEAD_BYTES, Reader

LIMIT_FILES = 4_096
OTHER_FILES, UNREADABLE = "files of another format", "files that cannot be read"
MERGED = "files into which several ranks are merged"
TOO_MANY = f"files beyond {LIMIT_FILES:,}"


class RankFolderReader:
    """Reads every file of a folder that one of `readers` has one of per rank; counts the others."""

    name = "folder of profiles, one per rank (torch.profiler, Chrome JSON, Perfetto)"
    one_per_rank = False

    def __init__(self, readers: Iterable[Reader]) -> None:
        self._readers = tuple(reader for reader in readers if reader.one_per_rank)

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell a folder by one file in it that is a profile."""
        return path.is_dir() and any(map(self._reader_of, _files(path)[:LIMIT_FILES]))

    def sources(self, path: Path) -> list[Path]:
        """Every file of the folder; none where nothing is to be kept of what a reader reads."""
        files = _files(path)[: LIMIT_FILES + 1]
        return files if all(reader.sources(path) for reader in self._readers) else []

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read all ranks; raises `TraceError` where no file can be read."""
        skipped: dict[str, int] = {}
        notes: list[str] = []
        files = list(self._read_each(path, progress, limits, skipped, notes))
        own = [file for file in files if "merged_ranks" not in file.manifest.config]
        if own and len(own) < len(files):
            skipped[MERGED] = len(files) - len(own)
            files = own
        if not files:
            raise TraceError(f"no file in it can be read: {notes[0]}", where=str(path))
        return joined(files, skipped, notes)

    def _reader_of(self, file: Path) -> Reader | None:
        """What reads a file, None where it is not a profile."""
        try:
            with file.open("rb") as opened:
                head = inflated(opened.read(HEAD_BYTES), HEAD_BYTES)
        except OSError:
            return None
        return next((reader for reader in self._readers if reader.sniff(head, file)), None)

    def _read_each(
        self,
        path: Path,
        progress: Progress | None,
        limits: Limits,
        skipped: dict[str, int],
        notes: list[str],
    ) -> Iterator[RankFile]:
        listed = _files(path)
        for file in listed[:LIMIT_FILES]:
            reader = self._reader_of(file)
            if reader is None:
                skipped[OTHER_FILES] = skipped.get(OTHER_FILES, 0) + 1
                continue
            try:
                tables, manifest = reader.read(file, progress, limits)
            except TraceError as error:
                skipped[UNREADABLE] = skipped.get(UNREADABLE, 0) + 1
                notes.append(f"{file.name}: {error.what}")
                continue
            yield RankFile(file.name, conformed(tables), manifest)
        if len(listed) > LIMIT_FILES:
            skipped[TOO_MANY] = len(listed) - LIMIT_FILES


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.is_file())
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror}", where=str(folder)) from None
