"""The events of all lines of all planes, and what their numbers are called in each plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.xplane.decode import (
    EVENT_COLUMNS,
    STAT_COLUMNS,
    decoded,
    entry,
    first_fields,
)
from stepscope.ingest.readers.xplane.split import LINE, PLANE, Events, Field, Opened

MALFORMED = "events that cannot be decoded"
COUNTED = "events that only say how often something happened"
PROGRAMS = "bytes of programs (HLO)"
_SPACE_NOTES = {(2,): "error", (3,): "warning"}
_HOST = (4,)
_MOST_NOTES = 8
_SHOWN_CHARS = 200


@dataclass(slots=True)
class Line:
    """A line: its number, names, time in nanoseconds, and its events, as they are found."""

    number: int = 0
    name: str = ""
    display_name: str = ""
    since_ns: int = 0
    events: list[pl.DataFrame] = field(default_factory=list)
    stats: list[pl.DataFrame] = field(default_factory=list)
    num_events: int = 0

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Its events, and their arguments by row."""
        events = pl.concat([pl.DataFrame(schema=EVENT_COLUMNS), *self.events])
        return events, pl.concat([pl.DataFrame(schema=STAT_COLUMNS), *self.stats])

    def drained(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """As `frames`, and they are forgotten."""
        found = self.frames()
        self.events.clear()
        self.stats.clear()
        return found


@dataclass(slots=True)
class Plane:
    """A plane: what names of events and arguments mean in it, and its lines."""

    name: str = ""
    lines: list[Line] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    stats: list[bytes] = field(default_factory=list)

    def numbers(self) -> dict[str, int]:
        """Its own arguments that are whole numbers, by name."""
        told = map(first_fields, self.stats)
        found = {self.keys.get(said.get(1, 0)): said.get(3, said.get(4)) for said in told}  # type: ignore[arg-type]  # field 1 is a number
        return {key: value for key, value in found.items() if key and isinstance(value, int)}


@dataclass(slots=True)
class Collected:
    """All planes, what was counted, and what the file says of itself."""

    limits: Limits
    planes: list[Plane] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    num_events: int = 0
    num_names: int = 0
    beyond: str | None = None

    def add_all(self, fields: Iterable[Opened | Field | Events]) -> None:
        """Take fields up to the limit of events."""
        for each in fields:
            match each:
                case Opened(path) if path == PLANE:
                    self.planes.append(Plane())
                case Opened():
                    self.planes[-1].lines.append(Line())
                case Events():
                    self._add_events(each)
                case Field():
                    self._say(each)
            if self.beyond:
                return

    def _add_events(self, found: Events) -> None:
        told = decoded(found)
        line = self.planes[-1].lines[-1]
        self.skipped[MALFORMED] += told.num_malformed
        self.skipped[COUNTED] += told.num_counted
        room = self.limits.events - self.num_events
        events = told.events.head(room)
        own = (pl.col("event") + line.num_events).alias("event")
        stats = told.stats.filter(pl.col("event") < room).with_columns(own)
        line.events.append(events)
        line.stats.append(stats)
        line.num_events += len(events)
        self.num_events += len(events)
        if len(told.events) > room:
            self.beyond = f"more than {self.limits.events:,} events ({raised_by('events')})"

    def _say(self, said: Field) -> None:
        match said.path, said.value:
            case path, bytes(text) if path in _SPACE_NOTES:
                if len(self.notes) < _MOST_NOTES:
                    self.notes.append(f"{_SPACE_NOTES[path]}: {self._text(text)[:_SHOWN_CHARS]}")
            case path, bytes(text) if path == _HOST:
                self.hosts.append(self._text(text)[:_SHOWN_CHARS])
            case path, value if path[:-1] == LINE:
                self._say_of_line(self.planes[-1].lines[-1], path[-1], value)
            case path, bytes(value) if path[:-1] == PLANE:
                self._say_of_plane(self.planes[-1], path[-1], value)

    def _say_of_line(self, line: Line, number: int, value: int | bytes) -> None:
        match number, value:
            case 1, int():
                line.number = value
            case 2, bytes():
                line.name = self._text(value)
            case 11, bytes():
                line.display_name = self._text(value)
            case 3, int():
                line.since_ns = value - (1 << 64) if value >> 63 else value

    def _say_of_plane(self, plane: Plane, number: int, value: bytes) -> None:
        match number:
            case 2:
                plane.name = self._text(value)
            case 4 | 5 if self.num_names < self.limits.events:
                self.num_names += 1
                named = entry(value)
                if named:
                    names = plane.names if number == 4 else plane.keys
                    names[named.number] = named.name[: self.limits.text]
            case 6:
                plane.stats.append(value)

    def _text(self, value: bytes) -> str:
        return value[: self.limits.text].decode("utf-8", "replace")
