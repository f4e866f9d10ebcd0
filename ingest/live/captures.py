"""Files of captured messages, one for each format that engines publish, and the trace of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from io import FileIO
from pathlib import Path
from types import TracebackType

import polars as pl

from stepscope.ingest.errors import TraceError
from stepscope.ingest.frames import Frame, conformed
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest, ReadReport
from stepscope.ingest.readers.forward_pass.reader import ForwardPassReader
from stepscope.ingest.readers.kv_events.reader import KvEventsReader
from stepscope.ingest.readers.seam import Reader
from stepscope.ingest.storage.joined_manifest import merged
from stepscope.ingest.trace import Trace

PUBLISHED: tuple[Reader, ...] = (ForwardPassReader(), KvEventsReader())
"""Readers of what engines publish: a forward pass is a map, and a batch of KV events a list."""
_MAPS = frozenset(bytes([first]) for first in (*range(0x80, 0x90), 0xDE, 0xDF))


class Captures:
    """Files in a folder, each written with the messages of one format as they come."""

    def __init__(self, folder: Path) -> None:
        self._files = [folder / f"{number}.msgpack" for number in range(len(PUBLISHED))]
        self._opened: list[FileIO] = []
        self._stack = ExitStack()

    def __enter__(self) -> Captures:
        # Unbuffered: what has come is there whatever becomes of us.
        self._opened = [self._stack.enter_context(FileIO(file, "wb")) for file in self._files]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def file_of(self, payload: bytes) -> FileIO:
        """The file that a message belongs into, by what it holds."""
        return self._opened[0 if payload[:1] in _MAPS else 1]

    def trace(self, name: str, note: str, limits: Limits = DEFAULTS) -> Trace:
        """What was captured as one trace; raises `TraceError` where nothing of it can be read."""
        read: list[tuple[Mapping[str, Frame], Manifest]] = []
        failed: list[TraceError] = []
        for reader, file in zip(PUBLISHED, self._files, strict=True):
            if file.stat().st_size:
                try:
                    read.append(reader.read(file, None, limits))
                except TraceError as error:
                    failed.append(error)
        if failed and not read:
            raise failed[0]
        frames: dict[str, list[pl.LazyFrame]] = {}
        for tables, _ in read:
            for table, frame in conformed(tables).items():
                frames.setdefault(table, []).append(frame)
        together = {table: pl.concat(each) for table, each in frames.items()}
        notes = (note, *(f"not read: {error.what}" for error in failed))
        return Trace.from_tables(together, _noted([each for _, each in read], notes), name=name)


def _noted(manifests: list[Manifest], notes: tuple[str, ...]) -> Manifest:
    found = merged(manifests)
    producers = " and ".join(each.producer for each in manifests)
    report = found.report or ReadReport()
    return replace(found, producer=producers, report=replace(report, notes=(*notes, *report.notes)))
