"""Recorded runs of a real vLLM, and the scheduler's own state at each of their steps."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace

RUNS = ("gen_mix", "serve_prefix")
Row = dict[str, Any]


@dataclass(frozen=True)
class RecordedRun:
    """A trace, and `truth`: a row per step, with what the scheduler held after it formed the batch.

    `rows` are the trace's tables as plain rows, for counts that use none of our code.
    """

    folder: Path
    name: str

    @cached_property
    def trace(self) -> Trace:
        """The trace, opened as any other."""
        return Trace.open(self.folder / f"{self.name}.trace")

    @cached_property
    def truth(self) -> list[Row]:
        """Step, t, waiting, running, free, blocks (of each request) and batch, in order."""
        lines = (self.folder / f"{self.name}.truth.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @cached_property
    def metrics(self) -> Row:
        """What the engine itself counted of its requests."""
        text = (self.folder / f"{self.name}.metrics.json").read_text(encoding="utf-8")
        return dict(json.loads(text))

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """Every table's rows as dictionaries, as recorded."""
        return {name: list(self._table(name)) for name in BY_NAME}

    def _table(self, name: str) -> list[Row]:
        return self.trace.table(name).collect().rows(named=True)


def unpack(shared: Path, name: str, folder: Path) -> RecordedRun:
    """Unpack one of `RUNS` into a folder of its own."""
    with tarfile.open(shared / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return RecordedRun(folder, name)
