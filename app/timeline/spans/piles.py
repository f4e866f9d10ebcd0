"""Arrays that grow part by part: in memory, or in files from which they are mapped."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Piles(Protocol):
    """Where arrays grow by their names; the parts of one are of one type and width."""

    def add(self, name: str, part: Array) -> None:
        """Put a part behind the others of its name."""

    def whole(self, name: str, like: Array) -> Array:
        """The array of all parts; `like` is what it is where there was none."""


class InMemory:
    """Arrays in memory."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Array]] = {}

    def add(self, name: str, part: Array) -> None:
        """Put a part behind the others of its name."""
        self._parts.setdefault(name, []).append(part)

    def whole(self, name: str, like: Array) -> Array:
        """The array of all parts, which are let go."""
        parts = self._parts.pop(name, [])
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else like


class OnDisk:
    """Arrays in a folder, a file each; raises `OSError` where there is no room."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self.types: dict[str, tuple[str, list[int]]] = {}

    def add(self, name: str, part: Array) -> None:
        """Put a part behind the others of its name."""
        if name not in self._files:
            self._files[name] = (self._folder / f"{name}.bin").open("wb")
            self.types[name] = part.dtype.str, list(part.shape[1:])
        assert self.types[name] == (part.dtype.str, list(part.shape[1:]))
        self._files[name].write(np.ascontiguousarray(part).data)

    def whole(self, name: str, like: Array) -> Array:
        """Map the array of all parts."""
        if name not in self._files:
            self.add(name, like)
        self._files.pop(name).close()
        return mapped(self._folder, name, *self.types[name])


def mapped(folder: Path, name: str, dtype: str, width: list[int]) -> Array:
    """Map the array of a name; raises `OSError` or `ValueError` where there is none."""
    file = folder / f"{name}.bin"
    if not file.stat().st_size:
        return np.zeros((0, *width), dtype)
    found = np.memmap(file, dtype, "r").view(np.ndarray)
    return found.reshape(-1, *width)
