"""The tables that a condition can be about, and where their rows stand in the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding_table import FINDING_COLUMNS, FINDINGS
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.held.near_rows import NearRows
from stepscope.app.debug.moments import Moments, Position
from stepscope.app.debug.stops.finding_rows import findings_of, lowest_rank
from stepscope.app.debug.stops.hits import Hits, Numbers
from stepscope.app.debug.stops.placing import Places
from stepscope.ingest import schema
from stepscope.ingest.derive.holding_intervals import INTERVALS, MADE_OF, intervals_of
from stepscope.ingest.errors import QueryError
from stepscope.ingest.query import condition, explained, near
from stepscope.ingest.schema import BY_NAME, TABLES
from stepscope.ingest.trace import Trace

AT_STEPS = ("steps", "batch_rows")
"""Rows of these stand at their step's position; all others where they happened."""
OF_STATE = {table.name for table in schema.OF_STATE}
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
        self._places: dict[int, Places] = {}
        self._near: dict[int, NearRows] = {}
        self._made: dict[str, pl.LazyFrame] = {}

    def table(self, name: str) -> pl.LazyFrame:
        """A table by its name; raises `QueryError` naming near matches."""
        if name in BY_NAME:
            return self.trace.table(name)
        if name not in MEANINGS:
            raise QueryError(f"no table {name!r}", todo=near(name, MEANINGS))
        if name not in self._made:
            made = self._findings() if name == FINDINGS else self._intervals[name].collect()
            self._made[name] = made.lazy()
        return self._made[name]

    def _findings(self) -> pl.DataFrame:
        return findings_of(self.checked, lowest_rank(self.trace))

    def is_recorded(self, name: str) -> bool:
        """Whether the trace has what the table is made of: no row is not the same as none."""
        return name == FINDINGS or self.trace.has(MADE_OF.get(name, name))

    def moments(self, rank: int) -> Moments:
        """Where the steps of a rank are."""
        if rank not in self._moments:
            self._moments[rank] = Moments(self.trace, rank)
        return self._moments[rank]

    def places(self, rank: int) -> Places:
        """Where many rows of a rank are."""
        if rank not in self._places:
            self._places[rank] = Places(self.moments(rank))
        return self._places[rank]

    def share(self, rank: int, moments: Moments) -> None:
        """Take moments that somebody has, so that they are not read twice."""
        self._moments[rank] = moments

    def share_checked(self, checked: CheckResult) -> None:
        """Take what the rules said, where somebody has run them all."""
        self.checked = checked

    def hits(self, name: str, wanted: str | pl.Expr) -> Hits:
        """Where rows of a table meet an SQL condition; raises `QueryError`."""
        expression = condition(wanted) if isinstance(wanted, str) else wanted
        rows = self.table(name).with_row_index("row_number").filter(expression)
        seq = "seq" if name in OF_STATE else pl.lit(None, pl.Int64).alias("seq")
        with explained():
            found = rows.select("rank", "step", "ts_ns", "row_number", seq).collect()
        is_placed = pl.any_horizontal(pl.col("ts_ns", "step").is_not_null())
        return self._placed(name, found.filter(is_placed))

    def num_untold(self, name: str, wanted: str) -> tuple[int, int]:
        """Rows of a table that do not tell whether they meet a condition, and of how many."""
        with explained():
            asked = self.table(name).select(condition(wanted).is_null().sum(), rows=pl.len())
            num_untold, num_rows = asked.collect().row(0)
        return num_untold, num_rows

    def never_told(self, name: str, wanted: str) -> list[str]:
        """Columns of a condition that no row of a table has."""
        names = condition(wanted).meta.root_names()
        has = self.table(name).select(pl.col(names).is_not_null().any()).collect()
        return [each for each in has.columns if not has[each][0]]

    def names(self, name: str, column: str) -> list[str]:
        """Whom a column of a table names; nobody where the trace has no row of it."""
        if not self.is_recorded(name):
            return []
        return self.table(name).select(column).drop_nulls().unique().collect()[column].to_list()

    def then(self, name: str, rank: int, position: Position) -> pl.LazyFrame:
        """Rows of a rank up to a position: those of state in the order of changes."""
        rows = self.table(name).filter(pl.col("rank") == rank)
        by_time = pl.col("ts_ns") <= position.ts_ns
        if name not in OF_STATE:
            return rows.filter(by_time).sort("ts_ns", maintain_order=True)
        last = pl.lit(position.seq or BEFORE_ALL)
        if not self.moments(rank).order.is_recorded:
            rows = self._numbered(name, rank).drop("row_number")
        is_then = pl.when(pl.col("seq").is_null()).then(by_time).otherwise(pl.col("seq") <= last)
        return rows.filter(is_then).sort("seq", maintain_order=True)

    def told_at(self, rank: int, seq: int) -> dict[str, pl.DataFrame]:
        """The rows of a rank that tell of the change at a place, by their tables."""
        names = [name for name in MEANINGS if name in OF_STATE and self.is_recorded(name)]
        if self.moments(rank).order.is_recorded:
            if rank not in self._near:
                self._near[rank] = NearRows(self.trace, rank)
            return dict(zip(names, self._near[rank].at("seq", seq, names), strict=True))
        numbered = [self._numbered(name, rank).filter(pl.col("seq") == seq) for name in names]
        rows = dict(zip(names, pl.collect_all(numbered), strict=True))
        return {name: told.drop("row_number", strict=False) for name, told in rows.items()}

    def rows(
        self, hits: Hits, places: Sequence[int], columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """The rows of a few hits, as recorded or by SQL expressions over their columns."""
        table = self.table(hits.table)
        numbers = hits.row[list(places)].tolist()
        found = pl.collect_all([table.slice(number, 1) for number in numbers])
        rows = pl.concat(found) if found else table.head(0).collect()
        with explained():
            return rows if columns is None else rows.select(map(condition, columns))

    def _placed(self, name: str, found: pl.DataFrame) -> Hits:
        rank = found["rank"].cast(pl.Int64).to_numpy()
        row = found["row_number"].cast(pl.Int64).to_numpy()
        step = np.full(len(found), -1, np.int64)
        ts_ns, order = np.zeros_like(step), np.zeros_like(step)
        for number in found["rank"].unique().sort().to_list():
            mine = np.flatnonzero(rank == number)
            at_step, at_seq, at_time = (mine[at] for at in self._kinds(name, number, found[mine]))
            places = self.places(number)
            step[at_step] = found["step"].gather(at_step).to_numpy()
            ts_ns[at_step], order[at_step] = places.of_steps(step[at_step])
            seqs = self._seqs(name, number, found[at_seq])
            ts_ns[at_seq], order[at_seq] = places.of_changes(seqs)
            times = found["ts_ns"].gather(at_time).to_numpy()
            ts_ns[at_time], order[at_time] = places.of_times(times)
        return Hits.sorted(name, (ts_ns, rank, order, step, row))

    def _kinds(self, name: str, rank: int, rows: pl.DataFrame) -> tuple[Numbers, ...]:
        """Which rows stand at a step, which behind a change, and which at a time."""
        has_time = rows["ts_ns"].is_not_null().to_numpy()
        has_step = rows["step"].is_not_null().to_numpy()
        at_step = has_step & ((name in AT_STEPS) | ~has_time)
        if name not in AT_STEPS and at_step.any():
            at_step &= np.isin(rows["step"].fill_null(-1).to_numpy(), self.moments(rank).steps)
        at_seq = ~at_step & has_time & (name in OF_STATE)
        at_time = ~at_step & ~at_seq & has_time
        return tuple(np.flatnonzero(each) for each in (at_step, at_seq, at_time))

    def _seqs(self, name: str, rank: int, rows: pl.DataFrame) -> Numbers:
        """The places of rows of state in the order of changes."""
        order = self.moments(rank).order
        if order.is_recorded:
            by_time = pl.Series(order.all_last_by(rows["ts_ns"].to_numpy()), dtype=pl.Int64)
            return rows["seq"].fill_null(by_time).to_numpy()
        if not len(rows):
            return np.zeros(0, np.int64)
        numbered = self._numbered(name, rank).select("row_number", "seq")
        wanted = rows.lazy().select("row_number")
        joined = wanted.join(numbered, on="row_number", how="left", maintain_order="left")
        return joined.collect()["seq"].to_numpy()

    def _numbered(self, name: str, rank: int) -> pl.LazyFrame:
        """Rows of a rank with their places, where these were not recorded and are inferred."""
        key = f"{name} of rank {rank}"
        if key not in self._made:
            rows = self.table(name).with_row_index("row_number").filter(pl.col("rank") == rank)
            timed = rows.drop_nulls("ts_ns").collect()
            self._made[key] = timed.with_columns(self.moments(rank).order.numbers(name)).lazy()
        return self._made[key]

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
