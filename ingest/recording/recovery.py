"""Read a journal, whole or not: every row whose marker stands, and a count of what is discarded.

Nothing in a journal is believed before it is checked: it may be cut, torn or overwritten.
"""

from __future__ import annotations

import json
import mmap
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.ingest.columns import Column, Table, Type
from stepscope.ingest.format_version import check_format, check_magic
from stepscope.ingest.manifest import Manifest, ReadReport, Writer, manifest_name
from stepscope.ingest.progress import Progress
from stepscope.ingest.recording.holding import is_held
from stepscope.ingest.recording.lasting import LASTING_TABLES
from stepscope.ingest.recording.segments import (
    COLUMNS,
    HEADER_BYTES,
    LARGEST_BYTES,
    LASTING,
    ROWS,
    ROWS_MAGIC,
    STRINGS_MAGIC,
    Header,
    journal_folder,
)
from stepscope.ingest.recording.tally import TABLE_NAMES, read_tallies
from stepscope.ingest.schema import BY_NAME

MOST_BYTES = 4 * LARGEST_BYTES


@dataclass(frozen=True, slots=True)
class Recovered:
    """Rows of one segment, in the order in which they were recorded.

    `num_open` counts places that were taken and hold neither a row nor the mark of a dropped one.
    """

    table: Table
    number: int
    rows: pl.DataFrame
    discarded_bytes: int = 0
    num_open: int = 0


@dataclass(slots=True)
class Loss:
    """What could not be kept of a journal, and why.

    `is_damage` tells that there was more than rows that were being written when the process died.
    """

    discarded_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    is_damage: bool = False

    def add(self, file: Path, what: str, num_bytes: int = 0, *, is_torn: bool = False) -> None:
        """Count bytes of a file that are discarded; `is_torn` where they are of unfinished rows."""
        self.discarded_bytes += num_bytes
        self.notes.append(f"{file.name}: {what}")
        self.is_damage |= not is_torn


@dataclass(slots=True)
class Found:
    """What was found in a writer's journal: segments, what was lost, and what was dropped, why."""

    writer: Writer
    segments: list[Recovered]
    loss: Loss
    dropped: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    is_live: bool = False

    def num_rows(self) -> dict[str, int]:
        """Rows per table."""
        counts: dict[str, int] = {}
        for segment in self.segments:
            name = segment.table.name
            counts[name] = counts.get(name, 0) + segment.rows.height
        return counts

    def said(self) -> dict[str, Any]:
        """What a manifest keeps of it under `recovered`."""
        return {
            "rows": self.num_rows(),
            "live": self.is_live,
            "discarded_bytes": self.loss.discarded_bytes,
            "notes": [*self.loss.notes, *([self.reason] if self.reason else [])],
        }

    def without(self, covered: Mapping[str, set[int]]) -> Found:
        """The same without segments that Parquet files hold already, by the table's name."""
        left = [each for each in self.segments if each.number not in covered[each.table.name]]
        return replace(self, segments=left)


def read_journal(trace: Path, writer: Writer, progress: Progress | None = None) -> Found:
    """Read all that is in the journal of one writer; nothing is written. Raises `NewerFormat`."""
    folder, loss = journal_folder(trace, writer), Loss()
    is_live = is_held(folder)
    strings, files = Strings(folder, loss), segment_files(folder)
    found: list[Recovered] = []
    for done, file in enumerate(files, 1):
        segment = read_segment(file, strings, writer.rank, loss)
        found += [segment] if segment else []
        if progress:
            progress(f"recovering rank {writer}", done, len(files))
    return Found(writer, found, loss, *read_tally(folder, loss), is_live=is_live)


def unknown(writer: Writer) -> Manifest:
    """Give the manifest of a writer whose own is lost."""
    lost = ReadReport(notes=(f"{manifest_name(writer)} is missing",))
    return Manifest("unknown", ranks=(writer.rank,), closed=False, report=lost)


def with_found(manifest: Manifest, found: Found, tables: Iterable[str]) -> Manifest:
    """Say in the manifest of a writer what was found in its journal, unless it says so already.

    `tables` are those that have rows: of a run that was never closed none is known to be whole.
    """
    if manifest.recovered or (manifest.closed and not found.loss.notes):
        return manifest
    return replace(
        manifest,
        tables=manifest.tables or dict.fromkeys(tables, "partial"),
        recovered={str(found.writer): found.said()},
        dropped=manifest.dropped or found.dropped,
    )


def segment_files(journal: Path) -> list[Path]:
    """List the segments of rows in a journal, in the order in which they were begun."""
    return sorted(
        file for table in TABLE_NAMES for file in journal.glob(f"{table}-{'[0-9]' * 6}*.seg")
    )


def table_of(file: Path) -> str:
    """Give the table in a segment's name."""
    return file.name.rpartition("-")[0]


def number_of(file: Path) -> int:
    """Give the number in a segment's name."""
    digits = file.stem.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def read_segment(file: Path, strings: Strings, rank: int, loss: Loss) -> Recovered | None:
    """Read the whole rows of one segment; None where it holds none or vanished."""
    raw = _bytes_of(file, loss)
    header = None if _is_blank(raw) else header_of(raw, file, loss)
    if header is None:
        return None
    # Only a journal needs numpy, and a finished trace has none.
    from stepscope.ingest.recording.forms.reading import read_rows  # noqa: PLC0415 - it needs numpy

    try:
        found = read_rows(raw, header, strings, rank)
    except ValueError as error:
        loss.add(file, str(error), len(raw.rstrip(b"\0")))
        return None
    beyond = raw[found.end :]
    discarded = found.torn_bytes + (0 if _is_blank(beyond) else len(beyond))
    if discarded:
        loss.add(file, f"{discarded} bytes that are not a whole row", discarded, is_torn=True)
    table = BY_NAME[header.table]
    return Recovered(table, number_of(file), found.rows, discarded, found.num_open)


def read_tally(journal: Path, loss: Loss | None = None) -> tuple[dict[str, int], str]:
    """Read how many rows were dropped per table, and the first reason; raises `NewerFormat`."""
    found = read_tallies(journal)
    if found.is_damaged and loss:
        num_bytes = sum(len(file.read_bytes().rstrip(b"\0")) for file in journal.glob("tally*"))
        loss.add(journal / "tally", "it is damaged: counts of dropped rows are lost", num_bytes)
    return found.rows, found.reason


class Strings:
    """The strings of a journal by id; one that is lost reads as `lost-<id>`."""

    def __init__(self, journal: Path, loss: Loss) -> None:
        self._journal, self._loss = journal, loss
        parts = [self._part(file) for file in sorted(journal.glob("strings-*.seg"))]
        found = {int.from_bytes(raw[8:16], "little"): raw for raw in parts if raw}
        self._firsts = sorted(found)
        self._parts = [found[first] for first in self._firsts]
        self._num_lost = 0

    def texts(self, ids: Iterable[int]) -> list[str | None]:
        """Give the strings of some ids; id 0 is null."""
        return [self._text(number) if number else None for number in ids]

    def chunk(self, number: int) -> bytes | None:
        """Give the bytes that were written under an id; None where they are lost."""
        part = bisect_right(self._firsts, number * 8) - 1
        raw, at = (self._parts[part], number * 8 - self._firsts[part]) if part >= 0 else (b"", 0)
        end = at + 4 + int.from_bytes(raw[at : at + 4], "little")
        if len(raw) < end + 4 or int.from_bytes(raw[end : end + 4], "little") != number:
            return None
        return raw[at + 4 : end]

    def _part(self, file: Path) -> bytes | mmap.mmap:
        try:
            with file.open("rb") as opened:
                raw = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # an empty file cannot be mapped
            return b""
        try:
            check_magic(raw[: len(STRINGS_MAGIC)], STRINGS_MAGIC, file)
        except ValueError:
            self._loss.add(file, "the header is damaged", len(raw))
            return b""
        return raw

    def _text(self, number: int) -> str:
        raw = self.chunk(number)
        return self._lost(number) if raw is None else raw.decode("utf-8", "replace")

    def _lost(self, number: int) -> str:
        if not self._num_lost:
            self._loss.add(self._journal, "strings are lost; they read as lost-<number>")
        self._num_lost += 1
        return f"lost-{number}"


def _bytes_of(file: Path, loss: Loss) -> bytes:
    try:
        if file.stat().st_size > MOST_BYTES:
            loss.add(file, "larger than a segment can be", file.stat().st_size)
            return b""
        return file.read_bytes()
    except FileNotFoundError:
        return b""  # compacted meanwhile: its rows are in the Parquet file
    except OSError as error:
        loss.add(file, f"cannot be read: {error.strerror}")
        return b""


def header_of(raw: bytes, file: Path, loss: Loss) -> Header | None:
    """Parse the header of a segment; None, and noted in `loss`, where it is damaged.

    Raises `NewerFormat`.
    """
    try:
        check_magic(raw, ROWS_MAGIC, file)
        if len(raw) < HEADER_BYTES:
            raise ValueError
        header = json.loads(raw[len(ROWS_MAGIC) : HEADER_BYTES].rstrip(b"\0"))
        check_format(header.get("version", 1), file)
        parsed = _parsed(header)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        loss.add(file, "the header is damaged", len(raw))
        return None
    known = _columns_of(BY_NAME[parsed.table], parsed.form)
    if unknown := [column.name for column in parsed.columns if column.name not in known]:
        loss.add(file, f"columns of another version are left out: {', '.join(unknown)}")
    return parsed


def _parsed(said: Any) -> Header:
    table = BY_NAME[said["table"]]
    form, num_later = said.get("form", ROWS), said.get("num_later", 0)
    known = _columns_of(table, form)
    columns = [
        known[name] if name in known or form == LASTING else Column(name, Type(kind), "")
        for name, kind in said["columns"]
    ]
    header = Header(
        table.name, columns, dict(said["constants"]), said["num_places"], form, num_later
    )
    names = [column.name for column in columns] + [*header.constants]
    required = (table if form != LASTING else LASTING_TABLES[table.name]).required
    fits = (
        [[column.name, column.type] for column in columns] == said["columns"]
        and len(set(names)) == len(names)
        and set(required) <= set(names)
        and all(known[name].type is Type.STR for name in header.constants)
        and all(isinstance(text, str) for text in header.constants.values())
        and header.num_places >= 0
        and 0 <= num_later < len(columns)
    )
    if not fits:
        raise ValueError
    return header


def _columns_of(table: Table, form: str) -> dict[str, Column]:
    """The columns that may stand in a segment of a form; raises KeyError for what is none."""
    forms = {ROWS: table, COLUMNS: table, LASTING: LASTING_TABLES.get(table.name)}
    found = forms[form]
    return {column.name: column for column in found.columns} if found else {}


def _is_blank(raw: bytes) -> bool:
    return not raw.strip(b"\0")
