"""A file that is dropped on the page: it goes to disk as it comes, so far and no further."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import IO

from stepscope.ingest.errors import LimitExceeded, WriteError

MOST_BYTES = 4 << 30
"""Bytes of a file that is dropped; a larger one is opened by its path, where nothing is copied."""
LEFT_FREE = 512 << 20
"""Bytes of the disk that stay free."""
CHUNK = 1 << 20
_OTHER = re.compile(r"[^\w.+-]+")


class Dropped:
    """A folder for files that are dropped; it is gone when the process ends."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self._folder = tempfile.TemporaryDirectory(prefix="stepscope-dropped-")
        self._number = 0

    def take(self, name: str, said: int | None, stream: IO[bytes]) -> Path:
        """Write a file that comes to disk, in a folder of its own; `said` is how long it is to be.

        Raises LimitExceeded for one that is too long, WriteError where the disk is full.
        """
        self._refuse(name, said or 0)
        self._number += 1
        folder = Path(tempfile.mkdtemp(dir=self._folder.name, prefix=f"{self._number}-"))
        path = folder / (_OTHER.sub("-", Path(name).name)[-100:].lstrip(".") or "trace")
        try:
            self._write(path, name, stream, said)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return path

    def _write(self, path: Path, name: str, stream: IO[bytes], said: int | None) -> None:
        written = 0
        try:
            with path.open("xb") as file:
                while chunk := stream.read(CHUNK):
                    written += len(chunk)
                    self._refuse(name, written)
                    file.write(chunk)
        except OSError as error:
            why = error.strerror or str(error)
            raise WriteError(f"it cannot be kept: {why}", where=name, todo=_BY_PATH) from error
        if said is not None and written != said:
            raise WriteError(
                f"{written:,} of {said:,} bytes came", where=name, todo="drop it again"
            )

    def _refuse(self, name: str, size: int) -> None:
        if size > self.most:
            what = f"a file that is dropped has {self.most:,} bytes at most"
            raise LimitExceeded(what, where=name, todo=_BY_PATH)
        if shutil.disk_usage(self._folder.name).free < LEFT_FREE + (size if size > CHUNK else 0):
            raise WriteError("the disk has no room for it", where=name, todo=_BY_PATH)

    def close(self) -> None:
        """Take all of them away."""
        self._folder.cleanup()


_BY_PATH = "open it by its path, where nothing is copied"
