"""Where a writer records: a folder of its own for its journal, in a directory of traces alone."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.errors import ConfigError, RecordingError
from stepscope.ingest.manifest import Writer, manifest_name
from stepscope.ingest.recording.segments import journal_folder
from stepscope.ingest.schema import BY_NAME


class Taken(RecordingError):
    """Somebody records there already, or did."""


def writer_of_part(rank: int, part: str) -> Writer:
    """Give the writer of a part of a rank; raises `ConfigError` for what names none."""
    if writer := Writer.named(f"{rank}.{part}" if part else str(rank)):
        return writer
    raise ConfigError(
        f"rank {rank} with part {part!r} is not a valid name of a recording's writer",
        todo="a rank is an integer from 0 on; a part has letters from a to z, digits and -",
    )


def claim(path: Path, writer: Writer) -> Path:
    """Make the folder of a writer's journal; raises `RecordingError` where it cannot be."""
    folder = journal_folder(path, writer)
    try:
        _check_free(path, writer)
        folder.mkdir(parents=True)
    except FileExistsError:
        raise _taken(path, writer) from None
    except OSError as error:
        raise refused(path, error.strerror) from None
    return folder


def refused(path: Path, why: object) -> RecordingError:
    """Give the error that says why nothing can be recorded into a directory."""
    return RecordingError(f"cannot be recorded into: {why}", where=str(path))


def _check_free(path: Path, writer: Writer) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise RecordingError(
            "a file with this name exists", where=str(path), todo="choose another path"
        )
    if (path / manifest_name(writer)).exists():
        raise _taken(path, writer)
    strange = next((entry.name for entry in path.iterdir() if not _is_ours(entry.name)), None)
    if strange:
        raise RecordingError(
            f"the directory holds {strange!r}, which is not a part of a trace",
            where=str(path),
            todo="choose a new path",
        )


def _is_ours(name: str) -> bool:
    return name in BY_NAME or name.lstrip(".").startswith(("manifest", "journal.rank="))


def _taken(path: Path, writer: Writer) -> Taken:
    return Taken(
        f"rank {writer} is recorded there already",
        where=str(path),
        todo="choose a new path, or delete the old trace",
    )
