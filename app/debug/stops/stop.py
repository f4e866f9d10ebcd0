"""A stop: what it is called, and all of its hits, found once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import polars as pl

from stepscope.app.debug.stops.hits import Here, Hits
from stepscope.app.debug.stops.tables import Tables
from stepscope.ingest.errors import ConfigError

Does = Literal["break", "watch", "trace"]


class Selection(NamedTuple):
    """Rows of a table that meet a condition, in SQL or as an expression."""

    table: str
    condition: str | pl.Expr


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
    """A numbered stop. `columns` are what a trace point prints, None for what is usual."""

    number: int
    does: Does
    wanted: str
    sources: tuple[Hits, ...]
    columns: tuple[str, ...] | None = None

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


def found(selections: Iterable[Selection], tables: Tables) -> tuple[Hits, ...]:
    """All hits of selections; raises ConfigError where the trace records none of their tables."""
    wanted = list(selections)
    for table in {each.table for each in wanted}:
        tables.table(table)  # which says what is wrong with its name
    recorded = [each for each in wanted if tables.is_recorded(each.table)]
    if not recorded:
        names = " and ".join(sorted({each.table for each in wanted}))
        raise ConfigError(f"not recorded: the trace has no row of {names}")
    return tuple(tables.hits(*each) for each in recorded)
