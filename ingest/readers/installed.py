"""Readers that other packages bring, each an entry point of the group `stepscope.readers`.

It names a reader as `seam.Reader` says, or its class. It is asked for what none of ours takes. One
that cannot be loaded, or fails as it looks at a file, costs itself alone: it is told in a line that
names its package, and all else goes on. One that fails as it reads has no trace to give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from stepscope.ingest.entry_points import declared, package_of, refused, said, tell_once
from stepscope.ingest.errors import ConfigError, StepscopeError, TraceError
from stepscope.ingest.frames import Frame, conformed
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.seam import Reader

GROUP = "stepscope.readers"
_ASKED = ("sniff", "sources", "read")


class InstalledReader:
    """A reader of another package, whose failures are its own.

    What it reads is not kept: nothing would tell when its code is another.
    """

    def __init__(self, reader: Reader, package: str) -> None:
        self.name = f"{reader.name} (of {package})"
        self.one_per_rank = bool(reader.one_per_rank)
        self._reader = reader
        self._package = package

    def sniff(self, head: bytes, path: Path) -> bool:
        """Ask it; one that fails does not know the file."""
        try:
            return bool(self._reader.sniff(head, path))
        except (Exception, SystemExit) as error:
            tell_once(f"{self._package}: its reader cannot look at files: {said(error)}")
            return False

    def sources(self, path: Path) -> list[Path]:
        """Nothing that it reads is kept."""
        return []

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[Mapping[str, Frame], Manifest]:
        """Let it read; raises `TraceError` naming its package where it gives no trace."""
        try:
            tables, manifest = self._reader.read(path, progress, limits)
            if not isinstance(manifest, Manifest):
                raise self._failed(path, f"{type(manifest).__name__} is no Manifest")
            return {**conformed(tables)}, Manifest.from_json(manifest.to_json())
        except StepscopeError:
            raise
        except (Exception, SystemExit) as error:
            raise self._failed(path, said(error)) from error

    def _failed(self, path: Path, why: str) -> TraceError:
        what = f"the reader of {self._package} failed: {why}"
        return TraceError(what, where=str(path), todo=f"mend or uninstall {self._package}")


def installed() -> Iterator[Reader]:
    """Readers of other packages; what cannot be used is told, and left out."""
    try:
        points = declared(GROUP)
    except ConfigError as error:
        tell_once(str(error))
        return
    for point in points:
        if reader := loaded(point):
            yield reader


@cache
def loaded(point: EntryPoint) -> Reader | None:
    """The reader that is declared, made once; None, and told, where it cannot be used."""
    try:
        given: Any = point.load()
        reader = given() if isinstance(given, type) else given
        why = next(_lacks(reader), None)
        if why is None:
            return InstalledReader(reader, package_of(point))
    except (Exception, SystemExit) as error:
        why = said(error)
    tell_once(str(refused(point, "reader", why)))
    return None


def _lacks(reader: Any) -> Iterator[str]:
    """Why something is no reader."""
    if not (isinstance(reader.name, str) and reader.name and reader.name.isprintable()):
        yield f"{reader.name!r} is not the name of a reader"
    if not isinstance(reader.one_per_rank, bool):
        yield f"{reader.one_per_rank!r} is not whether there is one file per rank"
    yield from (f"it has no {what}" for what in _ASKED if not callable(getattr(reader, what, None)))
