"""The tally of a journal: rows dropped per table, and why, in a mapped file.

    stepdrp2, and JSON {"version": 2, "tables": [names]}, padded to `HEADER_BYTES`
    256 bytes: the first reason
    u64 for each table: rows dropped

In format 1 there was no header, and the number of counts tells which tables there were.
"""

from __future__ import annotations

import json
import os
import struct
from contextlib import suppress
from pathlib import Path
from time import time_ns
from typing import Any, NamedTuple

from stepscope.ingest.format_version import check_format, check_magic
from stepscope.ingest.recording.forms.rows import Segment
from stepscope.ingest.recording.segments import HEADER_BYTES, make_segment
from stepscope.ingest.schema import FORMAT_VERSION, TABLES

TALLY_MAGIC = b"stepdrp2"
REASON_BYTES = 256
TABLE_NAMES = tuple(table.name for table in TABLES)
COUNTS = HEADER_BYTES + REASON_BYTES
"""Offset of the first count."""
MOST_TALLY_BYTES = 64 << 10
TALLY_BYTES = COUNTS + 8 * len(TABLES)

_UNTIL_CORES = (
    "steps", "batch_rows", "segments", "lifecycle", "decisions", "allocations", "accesses", "tasks",
    "core_spans",
)  # fmt: skip
_UNTIL_COUNTERS = ("task_edges", "collectives", "outputs", "spans", "flows", "counters")
_FORMAT_1 = {
    len(tables): tables
    for tables in (
        (*_UNTIL_CORES, *_UNTIL_COUNTERS),
        (*_UNTIL_CORES, *_UNTIL_COUNTERS, "queue_order"),
        (*_UNTIL_CORES, *_UNTIL_COUNTERS, "queue_order", "slot_tokens"),
        (*_UNTIL_CORES, "core_waits", *_UNTIL_COUNTERS, "queue_order", "slot_tokens"),
        (
            *_UNTIL_CORES, "core_waits", "ready_order", "thread_phases", *_UNTIL_COUNTERS,
            "queue_order", "slot_tokens",
        ),
    )
}  # fmt: skip
"""Tables of format 1 in the order of their counts, by how many there were."""


class Tally:
    """Rows dropped per table, and why, in a mapped file that survives a crash.

    A process that was forked off counts its rows in a file of its own in the same folder, from its
    first dropped row on; `total` adds them up.
    """

    def __init__(self, folder: Path) -> None:
        self.dropped: dict[str, int] = {}
        self.reason = ""
        self._folder = folder
        self._forked: dict[str, int] = {}
        self._is_fork = False
        self._mapped: Segment | None = make_segment(folder / "tally", _header(), TALLY_BYTES)

    def total(self) -> dict[str, int]:
        """Rows dropped per table, of this process and of those that were forked off from it."""
        if self._folder.is_dir() and not self._is_fork:  # it goes when the recorder is closed
            self._forked = read_tallies(self._folder, "tally.*").rows
        names = {**self.dropped, **self._forked}
        return {name: self.dropped.get(name, 0) + self._forked.get(name, 0) for name in names}

    def drop(self, table: str, num_rows: int = 1) -> None:
        """Count rows that are not recorded."""
        self.dropped[table] = self.dropped.get(table, 0) + num_rows
        if self._mapped is None:
            self._mapped = self._mapped_of_fork()
        place = COUNTS + 8 * TABLE_NAMES.index(table)
        struct.pack_into("<Q", self._mapped, place, self.dropped[table])

    def note(self, reason: str) -> None:
        """Keep the first reason; later ones follow from it."""
        if not self.reason:
            self.reason = reason
            self._write_reason()

    def detach(self) -> None:
        """Count from 0, in a file of this process's own: it was forked off."""
        self.dropped, self._forked, self.reason, self._mapped = {}, {}, "", None
        self._is_fork = True

    def _mapped_of_fork(self) -> Segment:
        try:
            name = f"tally.{os.getpid()}-{time_ns()}"
            self._mapped = make_segment(self._folder / name, _header(), TALLY_BYTES)
        except OSError:  # the recorder was closed meanwhile, mostly
            self._mapped = bytearray(TALLY_BYTES)
        self._write_reason()
        return self._mapped

    def _write_reason(self) -> None:
        if self._mapped is not None:
            raw = self.reason.encode("utf-8", "replace")[:REASON_BYTES]
            self._mapped[HEADER_BYTES : HEADER_BYTES + len(raw)] = raw


class Dropped(NamedTuple):
    """What a tally states: rows dropped per table, and the first reason.

    `is_damaged` tells that its tables are not known, or that counts are missing.
    """

    rows: dict[str, int]
    reason: str
    is_damaged: bool = False


def read_tallies(folder: Path, pattern: str = "tally*") -> Dropped:
    """Add up the tallies of a journal, of forked processes too; raises `NewerFormat`."""
    rows: dict[str, int] = {}
    reasons, is_damaged = [], False
    for file in sorted(folder.glob(pattern)):
        raw = b""
        with suppress(OSError), file.open("rb") as opened:
            raw = opened.read(MOST_TALLY_BYTES)
        found = parse_tally(raw, file)
        for name, num_rows in found.rows.items():
            rows[name] = rows.get(name, 0) + num_rows
        reasons.append(found.reason)
        is_damaged |= found.is_damaged
    return Dropped(rows, next(filter(None, reasons), ""), is_damaged)


def parse_tally(raw: bytes, file: Path) -> Dropped:
    """Parse the bytes of a tally of any format; raises `NewerFormat`."""
    if not raw.strip(b"\0"):
        return Dropped({}, "")
    try:
        tables, start = _tables(raw, file)
    except (ValueError, KeyError, TypeError, RecursionError):
        return Dropped({}, "", is_damaged=True)
    reason, counts = raw[start : start + REASON_BYTES], raw[start + REASON_BYTES :]
    num_bytes = 8 * len(tables)
    values = struct.unpack(f"<{len(tables)}Q", counts[:num_bytes].ljust(num_bytes, b"\0"))
    return Dropped(
        {name: value for name, value in zip(tables, values, strict=True) if value},
        reason.rstrip(b"\0").decode("utf-8", "replace"),
        is_damaged=not tables or len(counts) < num_bytes,
    )


def _header() -> bytes:
    text = json.dumps({"version": FORMAT_VERSION, "tables": TABLE_NAMES})
    return (TALLY_MAGIC + text.encode()).ljust(HEADER_BYTES, b"\0")


def _tables(raw: bytes, file: Path) -> tuple[tuple[str, ...], int]:
    """Return the tables that are counted, none where that is not known, and the reason's offset."""
    if raw[: len(TALLY_MAGIC) - 1] != TALLY_MAGIC[:-1]:
        num_counts, rest = divmod(len(raw) - REASON_BYTES, 8)
        return (() if rest else _FORMAT_1.get(num_counts, ())), 0
    check_magic(raw, TALLY_MAGIC, file)
    header: Any = json.loads(raw[len(TALLY_MAGIC) : HEADER_BYTES].rstrip(b"\0"))
    check_format(header["version"], file)
    tables = tuple(header["tables"])
    if not {*tables} <= {*TABLE_NAMES}:
        raise ValueError("unknown tables")
    return tables, HEADER_BYTES
