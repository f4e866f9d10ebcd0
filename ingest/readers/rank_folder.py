"""Reader of a folder of profiles, one for each rank, as one trace.

A file's rank is what it says itself, else what its name says; one that is taken gets the next that
is free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class RankRead:
    """What became of a file of the folder: what was read of it, else why it is left out.

    `skipped` is what it is counted as then, and `why` what is said of it.
    """

    name: str
    found: RankFile | None = None
    skipped: str = ""
    why: str = ""


class RankFolderReader:
    """Reads every file of a folder that one of `readers` has one of per rank; counts the others."""

    name = "folder of profiles, one per rank (torch.profiler, Chrome JSON, Perfetto)"
    one_per_rank = False

    def __init__(self, readers: Iterable[Reader]) -> None:
        self._readers = tuple(reader for reader in readers if reader.one_per_rank)

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell a folder by one file in it that is a profile."""
        return path.is_dir() and any(map(self._reader_of, files_of(path)[:LIMIT_FILES]))

    def sources(self, path: Path) -> list[Path]:
        """Every file of the folder; none where nothing is to be kept of what a reader reads."""
        files = files_of(path)[: LIMIT_FILES + 1]
        return files if all(reader.sources(path) for reader in self._readers) else []

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read all ranks; raises `TraceError` where no file can be read."""
        files = files_of(path)
        reads = (self.read_one(file, progress, limits) for file in files[:LIMIT_FILES])
        return together(path, reads, len(files) - LIMIT_FILES)

    def read_one(
        self, file: Path, progress: Progress | None = None, limits: Limits = DEFAULTS
    ) -> RankRead:
        """Read one file of such a folder by itself, for `together`."""
        reader = self._reader_of(file)
        if reader is None:
            return RankRead(file.name, skipped=OTHER_FILES)
        try:
            tables, manifest = reader.read(file, progress, limits)
        except TraceError as error:
            return RankRead(file.name, skipped=UNREADABLE, why=error.what)
        return RankRead(file.name, RankFile(file.name, conformed(tables), manifest))

    def _reader_of(self, file: Path) -> Reader | None:
        """What reads a file, None where it is not a profile."""
        try:
            with file.open("rb") as opened:
                head = inflated(opened.read(HEAD_BYTES), HEAD_BYTES)
        except OSError:
            return None
        return next((reader for reader in self._readers if reader.sniff(head, file)), None)


def together(
    path: Path, reads: Iterable[RankRead], num_beyond: int = 0
) -> tuple[dict[str, Frame], Manifest]:
    """Make one trace of what was read of a folder's files, in their order.

    `num_beyond` files were too many to be read. Raises `TraceError` where none could be.
    """
    skipped: dict[str, int] = {}
    notes: list[str] = []
    files: list[RankFile] = []
    for each in reads:
        if each.found is not None:
            files.append(each.found)
            continue
        skipped[each.skipped] = skipped.get(each.skipped, 0) + 1
        if each.why:
            notes.append(f"{each.name}: {each.why}")
    if num_beyond > 0:
        skipped[TOO_MANY] = num_beyond
    own = [file for file in files if "merged_ranks" not in file.manifest.config]
    if own and len(own) < len(files):
        skipped[MERGED] = len(files) - len(own)
        files = own
    if not files:
        why = notes[0] if notes else OTHER_FILES
        raise TraceError(f"no file in it can be read: {why}", where=str(path))
    return joined(files, skipped, notes)


def files_of(folder: Path) -> list[Path]:
    """The files of a folder by name; raises `TraceError` where it cannot be read."""
    try:
        return sorted(file for file in folder.iterdir() if file.is_file())
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror}", where=str(folder)) from None
