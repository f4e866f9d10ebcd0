"""What a query gave on a screen: its rows as far as a screen has them, and how many are told."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.app.kept.queries import asked
from stepscope.app.units import count
from stepscope.ingest.query import MOST_ROWS, Bounds
from stepscope.ingest.trace import Trace

EXAMPLE = "SELECT kind, count(*) AS steps, avg(dur_ns) AS dur_ns FROM steps GROUP BY kind"


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of an answer, at most as many as a screen may be given; `is_cut` where more are."""

    query: str
    frame: pl.DataFrame
    is_cut: bool

    @property
    def told(self) -> str:
        """How many rows it has."""
        number = f"more than {count(MOST_ROWS)}" if self.is_cut else count(len(self.frame))
        return f"{number} {'row' if len(self.frame) == 1 else 'rows'}"


def answer(trace: Trace, query: str, *, keeps: bool = True) -> Answer:
    """Ask, within the bounds of a screen, and keep the query; raises QueryError."""
    if keeps:
        asked(query)
    frame = trace.sql(query, Bounds(rows=MOST_ROWS))
    return Answer(query, frame.head(MOST_ROWS), len(frame) > MOST_ROWS)
