"""Rows out of a log's lines: whose they are, when they were, and what is counted about them.

Each engine, rank or container that writes into the log is a source, and becomes a rank: its own
number if that is free, else the next that is. A line's time is its own; where it has none it is
placed behind the line before, and where it says no year that of the time before is taken. Where a
line says how long a step took, and the time is in whole seconds, steps are placed one after the
other within their second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from stepscope.ingest.errors import LimitExceeded
from stepscope.ingest.frames import polars_schema
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.readers.text.fields import Number
from stepscope.ingest.readers.text.times import UNDATED, Stamp, stamp_of
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.times import FAR_NS, POSITION_NS

BACK_NS = 1_000_000_000
"""By how much an uptime must fall back to be that of a new start: threads write out of order."""
"""How far a line without a time is placed behind the line before."""
TOO_LARGE = "numbers that no column can hold, left out"
YEAR_BEFORE = "years of times that say none, from a time before"
YEAR_ASSUMED = f"years of times that say none: {UNDATED.year} where the log begins"
LIMIT_TAG_CHARS = 1_024
_CHUNK_ROWS = 32_768
_LAST_STEP = 1 << 53
_HELD: dict[pl.DataType, range] = {
    pl.Int64(): range(-(1 << 63), 1 << 63),
    pl.Int32(): range(-(1 << 31), 1 << 31),
}
_COLUMNS = {name: table.names for name, table in BY_NAME.items()}
Value = int | float | str | bool | None


@dataclass(slots=True)
class Line:
    """A line of an engine: its text, who wrote it, and the time that was packed beside it.

    One that is not whole is the last of a log that ends in the middle of it.
    """

    text: str
    origin: str = ""
    packed_time: str = ""
    is_whole: bool = True


@dataclass(slots=True)
class Source:
    """An engine or rank that writes into the log, and where it is: its time and its step."""

    rank: int
    name: str
    last_ns: int | None = None
    dated_ns: int | None = None
    stamped_ns: int = -(1 << 62)
    begins_ns: int = -(1 << 62)
    ends_ns: int = -(1 << 62)
    step: int | None = None
    offset: int = 0
    uptime_ns: int = 0
    started_ns: int = 0
    """When the start began that uptimes count from: 0, or the end of the start before."""
    stamps: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class LogRows:
    """The tables as they grow, and the counts for the report."""

    limits: Limits = DEFAULTS
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)
    sources: dict[tuple[str, str, str], Source] = field(default_factory=dict)
    num_rows: int = 0
    latest_ns: int = 0
    dated_ns: int | None = None
    knows_year: bool = False
    has_stated_times: bool = False
    """Whether lines without times were placed by durations that the log states."""
    over: list[tuple[int, int]] = field(default_factory=list)
    """Ranks, and times at which a line says that no step of theirs begun before still runs."""
    stated: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Of ranks' steps: when each began and how long it took, where a later line states it."""
    _open: dict[str, list[list[Value]]] = field(default_factory=dict)
    _full: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    _names: set[tuple[str, str]] = field(default_factory=set)
    _ranks: dict[int, int] = field(default_factory=dict)

    def source(self, engine: str, line: Line, label: str = "", number: int = 0) -> Source:
        """The source that a line is from; `number` is the rank that its label asks for."""
        key = (engine, line.origin, label)
        most = self.limits.tracks
        if key not in self.sources and len(self.sources) >= most:
            taken = f"lines of more than {most:,} engines, taken for one ({raised_by('tracks')})"
            self.repaired[taken] += 1
            key = (engine, "", "")
        found = self.sources.get(key)
        if found is None:
            name = " ".join(part for part in (engine, label, line.origin) if part)
            found = self.sources[key] = Source(self._free_rank(number), name)
        return found

    def _free_rank(self, number: int) -> int:
        """The number, or the next that is free; a taken one knows where to look on."""
        rank = number
        while rank in self._ranks:
            rank = self._ranks[rank]
        self._ranks[number] = self._ranks[rank] = rank + 1
        return rank

    # -- times -------------------------------------------------------------------------------

    def time(self, source: Source, line: Line, own: str = "") -> Stamp:
        """When the line was written: `own` is the time in its text, which comes first."""
        near = stamp_of(line.packed_time) if line.packed_time else None
        dated_ns = self.dated_ns if source.dated_ns is None else source.dated_ns
        near_ns = near.ns if near else dated_ns
        stamp = (own and stamp_of(own, near_ns)) or stamp_of(line.text, near_ns) or near
        if not stamp or (stamp.is_uptime and near):
            stamp = near or self._behind(source)
        elif stamp.is_uptime:
            stamp = self._since_start(source, stamp)
        else:
            self._dated(source, stamp, has_year=stamp.has_year or near is not None)
        source.last_ns = stamp.ns
        self.latest_ns = max(self.latest_ns, stamp.ns)
        return stamp

    def _since_start(self, source: Source, stamp: Stamp) -> Stamp:
        """A time that counts from the engine's start; where it falls back, that is a new one."""
        source.stamps["uptime"] += 1
        if stamp.ns < source.uptime_ns - BACK_NS:
            source.started_ns += source.uptime_ns
            self.repaired["starts of an engine, placed after the one before"] += 1
        source.uptime_ns = stamp.ns
        return replace(stamp, ns=source.started_ns + stamp.ns)

    def _dated(self, source: Source, stamp: Stamp, *, has_year: bool) -> None:
        """Keep what the next time that says no year is close to."""
        source.dated_ns = self.dated_ns = stamp.ns
        self.knows_year = self.knows_year or has_year
        source.stamps["dated" if has_year else "undated"] += 1
        if not has_year:
            self.inferred[YEAR_BEFORE if self.knows_year else YEAR_ASSUMED] += 1

    def _behind(self, source: Source) -> Stamp:
        self.inferred["times from the position of the line"] += 1
        source.stamps["position"] += 1
        last = self.latest_ns if source.last_ns is None else source.last_ns
        return Stamp(max(last, source.ends_ns) + POSITION_NS, 1, is_placed=True)

    def _placed(self, source: Source, stamp: Stamp, dur_ns: int, *, is_end: bool) -> int:
        """When a step began whose line was written when it ended, or when it began.

        Behind the step before, as far as the stamp leaves it open, and never before it began,
        unless the clock was set back.
        """
        earliest = stamp.ns - dur_ns if is_end and not stamp.is_placed else stamp.ns
        is_set_back = stamp.ns < source.stamped_ns
        source.stamped_ns = stamp.ns
        if is_set_back:
            return earliest
        begins = max(earliest, min(source.ends_ns, earliest + stamp.resolution_ns - 1))
        return max(begins, source.begins_ns)

    # -- rows --------------------------------------------------------------------------------

    def step(
        self,
        source: Source,
        line: Line,
        *,
        inferred: str,
        number: int | None = None,
        dur_ns: int | None = None,
        is_end: bool = False,
        at: Stamp | None = None,
        **columns: Value,
    ) -> tuple[int, int]:
        """Add a step; gives its number and when it began.

        `is_end` says that its line was written when it ended; `number` is the engine's own; `at` is
        when it was written, where that was found out before.
        """
        stamp = at or self.time(source, line)
        self.has_stated_times |= stamp.is_placed and dur_ns is not None
        begins = self._placed(source, stamp, dur_ns or 0, is_end=is_end and dur_ns is not None)
        source.begins_ns, source.ends_ns = begins, min(begins + (dur_ns or 0), FAR_NS)
        source.step = self._numbered(source, number)
        tag = line.text.strip()[-LIMIT_TAG_CHARS:]
        said = {"dur_ns": dur_ns, "tag": tag, "inferred": inferred, **columns}
        self.add("steps", source, begins, step=source.step, **said)
        self.inferred[f"steps from {inferred}"] += 1
        return source.step, begins

    def _numbered(self, source: Source, number: int | None) -> int:
        """The engine's own number; from where it starts over, counted on."""
        last = source.step
        if number is None or number + source.offset > _LAST_STEP:
            return 1 if last is None else last + 1
        if last is not None and number + source.offset <= last:
            source.offset = last + 1 - number
            self.repaired["numbers of steps that start over or repeat, counted on"] += 1
        return number + source.offset

    def counters(
        self, source: Source, ts_ns: int, numbers: dict[str, Number], *, track: str = ""
    ) -> None:
        """Add a sample of each number, under its name."""
        for name, found in numbers.items():
            if not self._is_known(track, name):
                most = f"more than {self.limits.tracks:,} counters ({raised_by('tracks')})"
                self.skipped[f"samples of {most}"] += 1
                continue
            sample = {"name": name, "unit": found.unit, "value": found.value}
            self.add("counters", source, ts_ns, track=track or None, **sample)

    def _is_known(self, track: str, name: str) -> bool:
        if len(self._names) < self.limits.tracks:
            self._names.add((track, name))
        return (track, name) in self._names

    def add(self, table: str, source: Source, ts_ns: int, **columns: Value) -> None:
        """Add a row to a table; raises `LimitExceeded` where there are too many."""
        self.num_rows += 1
        if self.num_rows > self.limits.rows:
            raise LimitExceeded(f"more than {self.limits.rows:,} rows", todo=raised_by("rows"))
        known = {"rank": source.rank, "ts_ns": ts_ns, **columns}
        rows = self._open.setdefault(table, [])
        rows.append([known.get(name) for name in _COLUMNS[table]])
        if len(rows) >= _CHUNK_ROWS:
            self._close(table)

    def _close(self, table: str) -> None:
        rows, schema = self._open.pop(table), polars_schema(BY_NAME[table])
        try:
            frame = pl.DataFrame(rows, schema=schema, orient="row")
        except (pl.exceptions.ComputeError, OverflowError):
            self.repaired[TOO_LARGE] += _without_too_large(rows, schema)
            frame = pl.DataFrame(rows, schema=schema, orient="row")
        self._full.setdefault(table, []).append(frame)

    def tables(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Every table that has a row, in the order of the lines."""
        for table in list(self._open):
            self._close(table)
        for table, frames in self._full.items():
            yield table, pl.concat(frames)


def _without_too_large(rows: list[list[Value]], schema: pl.Schema) -> int:
    """Make null of whole numbers that their columns cannot hold; gives how many these were."""
    ranges = [(at, _HELD[kind]) for at, kind in enumerate(schema.dtypes()) if kind in _HELD]
    num = 0
    for row in rows:
        for at, held in ranges:
            if isinstance(value := row[at], int) and value not in held:
                row[at] = None
                num += 1
    return num
