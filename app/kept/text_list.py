"""A list of texts in the user's folder for states, the latest first and each once."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from stepscope.app.kept.state_folder import state_folder
from stepscope.ingest.storage.private_folder import private_folder


class TextList:
    """So many texts in a file of this name; where nothing can be kept, nothing is."""

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most

    def all(self) -> list[str]:
        """The latest first; none where the file is missing or damaged."""
        file = self._file()
        if file is None:
            return []
        try:
            return msgspec.json.decode(file.read_bytes(), type=list[str])[: self._most]
        except (OSError, msgspec.MsgspecError, ValueError):
            return []

    def put_first(self, text: str) -> None:
        """Put a text before the others."""
        file, listed = self._file(), self.all()
        if file is None or listed[:1] == [text]:
            return
        others = [each for each in listed if each != text]
        draft = file.with_suffix(f".{os.getpid()}.tmp")
        with suppress(OSError, ValueError):  # a list is not worth a failure
            private_folder(file.parent)
            draft.touch(mode=0o600)
            draft.write_bytes(msgspec.json.encode([text, *others][: self._most]))
            draft.replace(file)

    def _file(self) -> Path | None:
        folder = state_folder()
        return folder and folder / self._name
