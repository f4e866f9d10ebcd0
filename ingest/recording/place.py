"""Where a rank is recorded: a folder of its own for its journal, in a directory of traces alone."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.errors import RecordingError
from stepscope.ingest.manifest import manifest_name
from stepscope.ingest.recording.segments import journal_folder
from stepscope.ingest.schema import BY_NAME


def claim(path: Path, rank: int) -> Path:
    """Make the folder of a rank's journal; raises `RecordingError` where it cannot be."""
    folder = journal_folder(path, rank)
    try:
        _check_free(path, rank)
        folder.mkdir(parents=True)
    except FileExistsError:
        raise _taken(path, rank) from None
    except OSError as error:
        raise refused(path, error.strerror) from None
    return folder


def refused(path: Path, why: object) -> RecordingError:
    """Give the error that says why nothing can be recorded into a directory."""
    return RecordingError(f"cannot be recorded into: {why}", where=str(path))


def _check_free(path: Path, rank: int) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise RecordingError("a file is in the way", where=str(path), todo="choose another path")
    if (path / manifest_name(rank)).exists():
        raise _taken(path, rank)
    strange = next((entry.name for entry in path.iterdir() if not _is_ours(entry.name)), None)
    if strange:
        raise RecordingError(
            f"the directory holds {strange!r}, which is no part of a trace",
            where=str(path),
            todo="choose a new path",
        )


def _is_ours(name: str) -> bool:
    return name in BY_NAME or name.lstrip(".").startswith(("manifest", "journal.rank="))


def _taken(path: Path, rank: int) -> RecordingError:
    return RecordingError(
        f"rank {rank} is recorded there already",
        where=str(path),
        todo="choose a new path, or delete the old trace",
    )
