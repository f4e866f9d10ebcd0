"""A look at the recorded rows of one rank, up to a position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from stepscope.analyzers.views.partial import has_required
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.engine_state import State
from stepscope.app.debug.moments import Position


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked at: a debugger's current rank, at one position."""

    debugger: Debugger
    position: Position
    state: State

    @classmethod
    def of(cls, debugger: Debugger) -> Look:
        """Look at where the debugger is."""
        return cls(debugger, debugger.position, debugger.session.state)

    @property
    def ts_ns(self) -> int:
        """The time of the position."""
        return self.position.ts_ns

    @property
    def step(self) -> pl.Expr:
        """The step of the position, null before the first."""
        return pl.lit(self.position.step, pl.Int64)

    def rows(self, table: str) -> pl.LazyFrame:
        """All rows of the rank."""
        return self.debugger.tables.table(table).filter(pl.col("rank") == self.debugger.rank)

    def then(self, table: str) -> pl.LazyFrame:
        """Rows of the rank up to the position, in order."""
        return self.debugger.tables.then(table, self.debugger.rank, self.position)

    def now(self, table: str) -> pl.LazyFrame:
        """Rows of the position's step."""
        return self.rows(table).filter(pl.col("step") == self.step)


@dataclass(frozen=True, slots=True)
class Facet:
    """One side of the state: a name, what its rows are, the tables that it is read from.

    `read` gives a row for each thing, None where the trace turns out not to tell; `key` names the
    column by which one of them is asked for.
    """

    name: str
    meaning: str
    needs: tuple[str, ...]
    key: str
    read: Callable[[Look], pl.DataFrame | None]

    def at(self, look: Look) -> pl.DataFrame | None:
        """The rows at a position; None where the trace does not tell, which is not empty."""
        if not all(map(look.debugger.tables.is_recorded, self.needs)):
            return None
        if not all(has_required(look.debugger.trace, table) for table in self.needs):
            return None
        return self.read(look)
