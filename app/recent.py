"""The traces that were opened last, kept beside the marks: for the fronts to open them again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from stepscope.app.debug.debugger.marks import state_folder

MOST = 20


def recent() -> list[Path]:
    """What was opened last, the latest first, as far as it is still there."""
    return [path for path in _listed() if path.exists()]


def opened(path: Path) -> None:
    """Put a trace before the others; where nothing can be kept, nothing is."""
    here = path.resolve()
    others = [each for each in _listed() if each != here]
    if (file := _file()) is None:
        return
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    with suppress(OSError):  # a list of files is not worth a failure
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.write_bytes(
            msgspec.json.encode([os.fsdecode(each) for each in (here, *others)][:MOST])
        )
        draft.replace(file)


def _listed() -> list[Path]:
    file = _file()
    if file is None:
        return []
    try:
        return [Path(each) for each in msgspec.json.decode(file.read_bytes(), type=list[str])]
    except (OSError, msgspec.MsgspecError, ValueError):
        return []


def _file() -> Path | None:
    folder = state_folder()
    return folder and folder / "recent.json"
