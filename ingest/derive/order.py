"""The one order of all rows of a rank that tell how its scheduler's state changes.

Our recorder counts these rows as they are told (`seq`). What others wrote has times alone, and is
put into an order by them: of one moment a later step's rows come later, those of a table in the
order in which they lie there, and requests and blocks change hands before a batch is formed of
them. Such an order is inferred, and `Order.is_recorded` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.order_runs import OrderRuns, Places, Told, runs_of
from stepscope.ingest.schema import OF_STATE
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

AT_ONE_MOMENT = (
    "lifecycle", "allocations", "slot_tokens", "queue_order", "decisions", "batch_rows", "steps",
)  # fmt: skip
"""Which tables come first, of what is known to have happened at one moment alone."""
WHOLE = ("batch_rows", "steps")
FIRST = 1


def is_recorded(trace: Trace, rank: int | None = None) -> bool:
    """Whether the order of a rank's rows, or of any rank's, was recorded and is not inferred."""
    of_rank = pl.lit(value=True) if rank is None else pl.col("rank") == rank
    told = (_has_seq(trace.table(table.name).filter(of_rank)) for table in OF_STATE)
    return any(found.collect().item() for found in told)


def how_known(trace: Trace) -> str | None:
    """Give how the order of changes is known, "recorded" or "inferred"; None where there are none.

    Steps and batches follow each other by their times, so what counts is what lies between them.
    """
    if not any(trace.has(table) for table in AT_ONE_MOMENT if table not in WHOLE):
        return None
    return "recorded" if is_recorded(trace) else "inferred"


def _has_seq(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.select(pl.col("seq").is_not_null().any())


class _Kept(NamedTuple):
    """Columns of a table in the one order, and which of its rows each is, if not the next."""

    places: pl.Series | None
    columns: dict[str, pl.Series]


class Order:
    """Rows of a rank's tables, each with its place in the one order as `seq`, which is never null.

    A row that was not counted among rows that were, such as one of a front end in a process of its
    own, comes behind the last that was told by its time.
    """

    def __init__(
        self, trace: Trace, rank: int, found: tuple[bool, OrderRuns] | None = None
    ) -> None:
        """Order the rows of a rank; `found` says what was found before of the same rows."""
        self._trace = trace
        self._of_rank = pl.col("rank") == rank
        self.is_recorded = is_recorded(trace, rank) if found is None else found[0]
        self._runs = None if found is None else found[1]
        self._kept: dict[str, _Kept] = {}
        self._reading = {table.name: Lock() for table in OF_STATE}
        self._ordering = Lock()

    def rows(self, table: str, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns of a table, and `seq`, in that order; without rows that have no time.

        Times, steps and places are read once, until `let_go`; several threads may ask.
        """
        with self._reading[table]:
            kept = self._kept.get(table) or self._placed(table)
            self._kept[table] = kept
        known = dict(kept.columns)
        if missing := [name for name in columns if name not in known]:
            read = self._timed(table).select(missing).collect()
            known |= zip(missing, read if kept.places is None else read[kept.places], strict=True)
        return pl.DataFrame([*(known[name] for name in columns if name != "seq"), known["seq"]])

    def let_go(self, tables: Sequence[str] = ()) -> None:
        """Keep no rows of some tables."""
        for table in tables:
            self._kept.pop(table, None)

    def numbers(self, table: str) -> pl.Series:
        """Give the place of each row that has a time, as these lie in the table."""
        if not self.is_recorded:
            return pl.Series("seq", self._inferred.get(table, ()), pl.Int64)
        rows = self._timed(table).select("ts_ns", "seq").collect()
        by_time = pl.Series(self.all_last_by(rows["ts_ns"].to_numpy()))
        return rows["seq"].fill_null(by_time)

    @property
    def runs(self) -> OrderRuns:
        """Every place in the order, with the time and the step that had been reached there."""
        with self._ordering:
            if self._runs is None:
                self._runs = runs_of([self._told(table.name) for table in OF_STATE])
            return self._runs

    def last_by(self, ts_ns: int) -> int:
        """Give the last place that was reached by a time; less than any before the first."""
        return int(self.runs.all_last_by(ts_ns, FIRST - 1))

    def all_last_by(self, ts_ns: Places) -> Places:
        """Give for each of many times what `last_by` gives for one."""
        return self.runs.all_last_by(ts_ns, FIRST - 1)

    def step_of(self, seq: int) -> int | None:
        """Give the last step of which something had been told at a place."""
        return self.runs.step_of(seq)

    def time_of(self, seq: int) -> int:
        """Give the time that had been reached at a place."""
        return int(self.runs.times_of([seq])[0])

    def times_of(self, seqs: npt.ArrayLike) -> Places:
        """Give the times that had been reached at places; the first of all for what is before."""
        return self.runs.times_of(seqs)

    def _told(self, table: str) -> Told:
        rows = self.rows(table, ("step", "ts_ns"))
        return Told(rows["seq"], rows["ts_ns"], rows["step"])

    def _timed(self, table: str) -> pl.LazyFrame:
        return self._trace.table(table).filter(self._of_rank).drop_nulls("ts_ns")

    def _placed(self, table: str) -> _Kept:
        """Where each row comes, with what was read to find that."""
        rows = self._timed(table).select("step", "ts_ns", "seq").collect()
        if not self.is_recorded:
            number = pl.Series("seq", self._inferred.get(table, ()), pl.Int64)
            rows = rows.with_columns(number)
        elif rows["seq"].null_count():
            rows = self._with_lost(rows.with_row_index("place"))
        if not rows["seq"].is_sorted():
            rows = rows.with_row_index("place") if "place" not in rows.columns else rows
            rows = rows.sort("seq", maintain_order=True)
        places = rows["place"] if "place" in rows.columns else None
        return _Kept(places, {name: rows[name] for name in ("step", "ts_ns", "seq")})

    def _with_lost(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with those that were not counted behind the others, each placed by its time."""
        known, lost = rows.drop_nulls("seq"), rows.filter(pl.col("seq").is_null())
        placed = lost.drop("seq").sort("ts_ns", maintain_order=True)
        placed = placed.join_asof(self._last_by_time, on="ts_ns")
        late = pl.col("seq").fill_null(FIRST - 1)
        return pl.concat([known, placed.with_columns(late)], how="diagonal")

    @cached_property
    def _last_by_time(self) -> pl.DataFrame:
        """The last place of each time that was counted: ts_ns, seq."""
        parts = [self._timed(table.name).select("ts_ns", "seq").drop_nulls() for table in OF_STATE]
        in_order = pl.concat(parts).sort("seq").with_columns(pl.col("ts_ns").cum_max())
        return in_order.group_by("ts_ns").agg(pl.col("seq").max()).sort("ts_ns").collect()

    @cached_property
    def _inferred(self) -> dict[str, pl.Series]:
        """The places of each table's rows, where none was counted."""
        parts = [
            self._timed(table).select(
                pl.col("ts_ns").clip(-FAR_NS, FAR_NS), "step", table=pl.lit(place, pl.Int8)
            )
            for place, table in enumerate(AT_ONE_MOMENT)
        ]
        keys = pl.concat(parts).with_row_index("row").collect()
        in_order = keys.sort("ts_ns", "step", "table", "row", nulls_last=False)
        numbered = in_order.with_columns(seq=pl.int_range(FIRST, len(keys) + FIRST)).sort("row")
        return {
            AT_ONE_MOMENT[part["table"][0]]: part["seq"]
            for part in numbered.partition_by("table", maintain_order=True)
        }
