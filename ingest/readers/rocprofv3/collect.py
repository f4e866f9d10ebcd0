"""All records of a file: what is timed as columns, and what its numbers are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.gathered import Rows
from stepscope.ingest.readers.rocprofv3 import decode
from stepscope.ingest.readers.rocprofv3.decode import (
    BUFFERS,
    CALLBACKS,
    COUNTED,
    Json,
    counted,
    number,
    timed,
)
from stepscope.ingest.readers.text.json_records import Record
from stepscope.ingest.readers.text.long_texts import LongTexts

MALFORMED, TIMELESS = "records that are not objects", "records without a time"
NOT_READ, VALUELESS = "records that are not read", "records without a value"
_NAMES = ("formatted_kernel_name", "demangled_kernel_name", "kernel_name")
_COLUMNS: dict[str, type[pl.DataType]] = {
    "process": pl.Int64, "category": pl.String,
    **dict.fromkeys(("kind", "operation", "thread", "correlation", "ts_ns", "ends_ns", "agent",
                     "queue", "kernel"), pl.Int64),
    "args": pl.String,
}  # fmt: skip
_COUNTED = {
    **dict.fromkeys(("process", "agent", "correlation", "ts_ns", "counter"), pl.Int64),
    "value": pl.Float64,
}
_PROCESS = 2
"""Among the numbers of what is around a record: that of its process."""


@dataclass(slots=True)
class Collected:
    """Records as columns, counts, and names by process and number.

    kernels     names of kernels; markers what a call of roctx was given, by correlation
    counters    names of counters; counted what they came to, a row for each of a kernel
    operations  names by kind and operation
    gpus        numbers of GPUs by handle
    about       what each process says about itself, in the order of the file
    """

    limits: Limits
    rows: Rows = field(default_factory=lambda: Rows(_COLUMNS))
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    kernels: dict[tuple[int, int], str] = field(default_factory=dict)
    markers: dict[tuple[int, int], str] = field(default_factory=dict)
    counters: dict[tuple[int, int], str] = field(default_factory=dict)
    counted: Rows = field(default_factory=lambda: Rows(_COUNTED))
    operations: dict[tuple[int, int, int], str] = field(default_factory=dict)
    gpus: dict[tuple[int, int], int] = field(default_factory=dict)
    about: dict[int, Json] = field(default_factory=dict)
    beyond: str | None = None
    _num_kinds: Counter[int] = field(default_factory=Counter)
    texts: LongTexts = field(init=False)

    def __post_init__(self) -> None:
        """Hold texts to the limits."""
        self.texts = LongTexts(self.limits)

    def add_all(self, records: Iterable[Record]) -> None:
        """Take records up to the limit of events."""
        for record in records:
            process = record.within[_PROCESS] if len(record.within) > _PROCESS else 0
            if record.path[1] == BUFFERS:
                self._add_timed(process, record)
            elif record.path[1] == CALLBACKS:
                self._add_counted(process, record)
            elif said := decode.decoded(record.text):
                self._name(process, record.path[1:], said)
            if len(self.rows) + len(self.counted) >= self.limits.events:
                self.beyond = f"{self.limits.events:,} events ({raised_by('events')})"
                return

    def _add_timed(self, process: int, record: Record) -> None:
        category = record.path[2]
        said = decode.decoded(record.text)
        found = timed(said) if said else None
        if found is None:
            self.skipped[f"{category}: {MALFORMED if said is None else TIMELESS}"] += 1
            return
        self.read[category] += 1
        self.rows.add((process, category, *found[:-1], self.texts.args(found.args)))

    def _add_counted(self, process: int, record: Record) -> None:
        category = record.path[2]
        said = decode.decoded(record.text) if category == COUNTED else None
        if said is None:
            self.skipped[f"{category}: {MALFORMED if category == COUNTED else NOT_READ}"] += 1
            return
        found = counted(said)
        if not found.values:
            self.skipped[f"{category}: {VALUELESS}"] += 1
            return
        self.read[category] += 1
        place = (process, found.agent, found.correlation, found.begins)
        for own, value in found.values.items():
            self.counted.add((*place, own, value))

    def _name(self, process: int, path: tuple[str, ...], said: Json) -> None:
        """Keep what numbers mean, as many as there may be events."""
        if len(self.kernels) + len(self.markers) + len(self.counters) >= self.limits.events:
            return
        match path:
            case ("metadata",):
                self.about[process] = said
            case ("agents",):
                own, gpu = decode.handle(said, "id"), decode.gpu_number(said)
                if own is not None and gpu is not None:
                    self.gpus[process, own] = gpu
            case ("kernel_symbols",):
                self._call(self.kernels, process, number(said.get("kernel_id")), _symbol(said))
            case ("counters",):
                self._call(self.counters, process, decode.handle(said, "id"), said.get("name"))
            case ("strings", "marker_api"):
                self._call(self.markers, process, number(said.get("key")), said.get("value"))
            case ("strings", "buffer_records"):
                self._name_operations(process, said)

    def _call(
        self, names: dict[tuple[int, int], str], process: int, own: int | None, name: object
    ) -> None:
        if own is not None and isinstance(name, str):
            names[process, own] = self.texts.name(name)

    def _name_operations(self, process: int, said: Json) -> None:
        """Kinds are numbered as they are listed, and so are their operations."""
        kind = self._num_kinds[process]
        self._num_kinds[process] += 1
        listed = said.get("operations")
        for operation, name in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(name, str):
                self.operations[process, kind, operation] = self.texts.name(name)


def _symbol(said: Json) -> str | None:
    """The best of a kernel's names."""
    return next((said[name] for name in _NAMES if isinstance(said.get(name), str)), None) or None
