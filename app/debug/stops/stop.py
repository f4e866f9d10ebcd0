"""A stop: what it is called, and all of its hits, found once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import polars as pl

from stepscope.app.debug.stops.hits import Here, Hits
from stepscope.app.debug.stops.tables import Tables
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.query import near_names

Does = Literal["break", "watch", "trace"]


class Named(NamedTuple):
    """Whom a selection asks for by name, and the column that has the name."""

    column: str
    name: str


class Selection(NamedTuple):
    """Rows of a table that meet a condition, in SQL or as an expression."""

    table: str
    condition: str | pl.Expr
    whose: Named | None = None


class Kind(Protocol):
    """A way to say where to stop: one module here, and a line in KINDS."""

    @property
    def usage(self) -> tuple[tuple[str, str], ...]:
        """How it is written, and what that does, a pair for each form."""
        ...

    def read(self, wanted: str, tables: Tables) -> tuple[Selection, ...] | None:
        """What the words select; None where they are not of this kind, ConfigError if wrong."""
        ...

    def words(self, tables: Tables) -> Iterable[str]:
        """What may be written, to complete what was begun."""
        ...


class Hit(NamedTuple):
    """One hit of a stop: of which of its tables, and which of its hits there."""

    here: Here
    stop: int
    source: int
    place: int


@dataclass(frozen=True, slots=True)
class Stop:
    """A numbered stop. `columns` are what a trace point prints, None for what is usual.

    `num_untold` rows do not tell whether they meet its condition, where none is known to.
    """

    number: int
    does: Does
    wanted: str
    sources: tuple[Hits, ...]
    columns: tuple[str, ...] | None = None
    num_untold: int = 0

    @property
    def nowhere(self) -> str:
        """What is said of a stop without a hit: that no row meets it, or none is known to."""
        if not self.num_untold:
            return "no row of this trace meets it"
        return f"no row is known to meet it, and {self.num_untold:,} do not tell"

    @property
    def text(self) -> str:
        """The stop as it was written."""
        shown = f" => {', '.join(self.columns)}" if self.columns else ""
        return f"{self.does} {self.wanted}{shown}"

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def after(self, here: Here) -> Hit | None:
        """Its first hit behind a place."""
        places = ((source, hits.after(here)) for source, hits in enumerate(self.sources))
        return min(self._hits(places), default=None)

    def before(self, here: Here) -> Hit | None:
        """Its last hit before a place."""
        places = ((source, hits.before(here)) for source, hits in enumerate(self.sources))
        return max(self._hits(places), default=None)

    def num_until(self, here: Here) -> int:
        """How many of its hits are before a place or at it."""
        return sum(hits.num_until(here) for hits in self.sources)

    def is_at(self, here: Here) -> bool:
        """Whether one of its hits is at a place."""
        return any(hits.is_at(here) for hits in self.sources)

    def between(self, first: Here, last: Here) -> list[Hit]:
        """Its hits behind one place, up to and at another, in order."""
        places = (
            (source, place)
            for source, hits in enumerate(self.sources)
            for place in hits.between(first, last)
        )
        return sorted(self._hits(places))

    def row(self, hit: Hit, tables: Tables) -> Mapping[str, Any]:
        """The row that was hit, or of it what a trace point prints."""
        return tables.rows(self.sources[hit.source], [hit.place], self.columns).row(0, named=True)

    def _hits(self, places: Iterable[tuple[int, int | None]]) -> Iterable[Hit]:
        return (
            Hit(self.sources[source].here(place), self.number, source, place)
            for source, place in places
            if place is not None
        )


def found(selections: Iterable[Selection], tables: Tables) -> tuple[tuple[Hits, ...], int]:
    """All hits of selections, and where there are none how many rows do not tell.

    Raises ConfigError where the trace records none of their tables, has nobody of the name that is
    asked for, or tells in no row whether it meets the condition.
    """
    wanted = list(selections)
    for table in {each.table for each in wanted}:
        tables.table(table)  # which says what is wrong with its name
    recorded = [each for each in wanted if tables.is_recorded(each.table)]
    if not recorded:
        names = " and ".join(sorted({each.table for each in wanted}))
        raise ConfigError(f"not recorded: the trace has no row of {names}")
    hits = tuple(tables.hits(each.table, each.condition) for each in recorded)
    return hits, 0 if any(map(len, hits)) else _untold(recorded, tables)


def _untold(wanted: Iterable[Selection], tables: Tables) -> int:
    """How many rows do not tell whether they meet a condition that none is known to meet."""
    asked = list(wanted)
    _refuse_unknown({each.table: each.whose for each in asked if each.whose}, tables)
    conditions = [each for each in asked if isinstance(each.condition, str)]
    told = [tables.num_untold(each.table, str(each.condition)) for each in conditions]
    num_untold, num_rows = (sum(each) for each in zip(*told, strict=True)) if told else (0, 0)
    if told and num_untold == num_rows:
        names = " and ".join(tables.never_told(conditions[0].table, str(conditions[0].condition)))
        raise ConfigError(f"not recorded: {names or conditions[0].condition} is null throughout")
    return num_untold


def _refuse_unknown(wanted: Mapping[str, Named], tables: Tables) -> None:
    """Refuse somebody whom no row names: that it never happened to them says nothing."""
    if not wanted:
        return
    known = set(tables.requests).union(
        *(tables.names(table, whose.column) for table, whose in wanted.items())
    )
    name = next(iter(wanted.values())).name
    if name not in known:
        raise ConfigError(
            f"the trace has no request {name!r}", todo=near_names(name, sorted(known))
        )
