"""The tables that a condition can be about, and where their rows stand in the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.app.debug.moments import Moments
from stepscope.app.debug.stops.finding_rows import FINDING_COLUMNS, FINDINGS, findings_of
from stepscope.app.debug.stops.hits import Hits, Numbers
from stepscope.ingest.derive.holding_intervals import INTERVALS, intervals_of
from stepscope.ingest.errors import QueryError
from stepscope.ingest.query import condition, explained, near
from stepscope.ingest.schema import BY_NAME, TABLES
from stepscope.ingest.trace import Trace

AT_STEPS = ("steps", "batch_rows")
"""Rows of these stand at their step's position; all others where they happened."""
MADE_OF = {"holds": "allocations", "occupancy": "allocations", "turns": "batch_rows"}
MEANINGS: Mapping[str, tuple[str, ...]] = {
    **{table.name: table.names for table in (*TABLES, *INTERVALS)},
    FINDINGS: tuple(FINDING_COLUMNS),
}
"""Columns of every table, by its name."""


class Tables:
    """Recorded tables and intervals of a trace; what is looked at is read once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._moments: dict[int, Moments] = {}
        self._made: dict[str, pl.LazyFrame] = {}

    def table(self, name: str) -> pl.LazyFrame:
        """A table by its name; raises `QueryError` naming near matches."""
        if name in BY_NAME:
            return self.trace.table(name)
        if name not in MEANINGS:
            raise QueryError(f"no table {name!r}", todo=near(name, MEANINGS))
        if name not in self._made:
            made = (
                findings_of(self.checked) if name == FINDINGS else self._intervals[name].collect()
            )
            self._made[name] = made.lazy()
        return self._made[name]

    def is_recorded(self, name: str) -> bool:
        """Whether the trace has what the table is made of: no row is not the same as none."""
        return name == FINDINGS or self.trace.has(MADE_OF.get(name, name))

    def moments(self, rank: int) -> Moments:
        """Where the steps of a rank are."""
        if rank not in self._moments:
            self._moments[rank] = Moments(self.trace, rank)
        return self._moments[rank]

    def share(self, rank: int, moments: Moments) -> None:
        """Take moments that somebody has, so that they are not read twice."""
        self._moments[rank] = moments

    def hits(self, name: str, wanted: str | pl.Expr) -> Hits:
        """Where rows of a table meet an SQL condition; raises `QueryError`."""
        expression = condition(wanted) if isinstance(wanted, str) else wanted
        rows = self.table(name).with_row_index("row_number").filter(expression)
        needed = ["ts_ns", "step"] if name in AT_STEPS else ["ts_ns"]
        with explained():
            found = rows.select("rank", "step", "ts_ns", "row_number").drop_nulls(needed).collect()
        return self._placed(name, found)

    def rows(
        self, hits: Hits, places: Sequence[int], columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The rows of hits, as recorded or by SQL expressions over their columns."""
        numbers = pl.DataFrame(
            {"row_number": hits.row[list(places)]}, schema={"row_number": pl.UInt32}
        )
        rows = self.table(hits.table).with_row_index("row_number")
        found = numbers.lazy().join(rows, on="row_number", how="left", maintain_order="left")
        chosen = [pl.all().exclude("row_number")] if columns is None else [*map(condition, columns)]
        with explained():
            return found.select(chosen).collect()

    def _placed(self, name: str, found: pl.DataFrame) -> Hits:
        rank = found["rank"].cast(pl.Int64).to_numpy()
        ts_ns = found["ts_ns"].to_numpy().copy()
        order = np.zeros(len(found), np.int64)
        step = np.full(len(found), -1, np.int64)
        steps = found["step"].fill_null(-1).to_numpy()
        for number in np.unique(rank).tolist():
            mine = np.flatnonzero(rank == number)
            at = Places(self.moments(number))
            if name in AT_STEPS:
                order[mine] = at.of_steps(steps[mine])
                step[mine] = steps[mine]
                ts_ns[mine] = at.step_ns[order[mine]]
            else:
                order[mine] = at.of_times(ts_ns[mine])
        row = found["row_number"].cast(pl.Int64).to_numpy()
        return Hits.sorted(name, (ts_ns, rank, order, step, row))

    @cached_property
    def requests(self) -> list[str]:
        """The names of all requests, sorted."""
        names = [self.trace.table(table).select("request") for table in ("lifecycle", "batch_rows")]
        return pl.concat(names).drop_nulls().unique().collect()["request"].sort().to_list()

    @cached_property
    def checked(self) -> CheckResult:
        """What the rules say of the trace; they are run when somebody asks."""
        return check(self.trace)

    @cached_property
    def _intervals(self) -> dict[str, pl.LazyFrame]:
        return intervals_of({table.name: self.trace.table(table.name) for table in TABLES})

    def example(self, name: str) -> Mapping[str, Any] | None:
        """A row from the middle of a table, to make an example of; None where it has none."""
        if not self.is_recorded(name):
            return None
        rows = self.table(name)
        num = int(rows.select(pl.len()).collect().item())
        return rows.slice(num // 2, 1).collect().row(0, named=True) if num else None


class Places:
    """Places of many steps or times at once among the steps of a rank."""

    def __init__(self, moments: Moments) -> None:
        self.step_ns: Numbers = moments.step_ns
        steps = np.asarray(moments.steps, np.int64)
        self._order = np.argsort(steps, kind="stable")
        self._sorted = steps[self._order]

    def of_steps(self, steps: Numbers) -> Numbers:
        """Places of steps that the rank has."""
        found: Numbers = self._order[np.searchsorted(self._sorted, steps)]
        return found

    def of_times(self, ts_ns: Numbers) -> Numbers:
        """Places of the last steps formed by these times; -1 before the first."""
        return np.searchsorted(self.step_ns, ts_ns, "right").astype(np.int64) - 1
