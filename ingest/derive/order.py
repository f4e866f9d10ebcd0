"""The one order of all rows of a rank that tell how its scheduler's state changes.

Our recorder counts these rows as they are told (`seq`). What others wrote has times alone, and is
put into an order by them: of one moment a later step's rows come later, those of a table in the
order in which they lie there, and requests and blocks change hands before a batch is formed of
them. Such an order is inferred, and `Order.is_recorded` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.schema import OF_STATE
from stepscope.ingest.times import EARLIEST_NS, FAR_NS
from stepscope.ingest.trace import Trace

AT_ONE_MOMENT = (
    "lifecycle", "allocations", "queue_order", "decisions", "batch_rows", "steps",
)  # fmt: skip
"""Which tables come first, of what is known to have happened at one moment alone."""
WHOLE = ("batch_rows", "steps")
FIRST = 1
MOST_GAPS = 4
"""How many numbers may be left out for each that was told, until sorting takes less memory."""


def is_recorded(trace: Trace, rank: int | None = None) -> bool:
    """Whether the order of a rank's rows, or of any rank's, was recorded and is not inferred."""
    of_rank = pl.lit(value=True) if rank is None else pl.col("rank") == rank
    told = [_has_seq(trace.table(table.name).filter(of_rank)) for table in OF_STATE]
    return any(found.item() for found in pl.collect_all(told))


def how_known(trace: Trace) -> str | None:
    """Give how the order of changes is known, "recorded" or "inferred"; None where there are none.

    Steps and batches follow each other by their times, so what counts is what lies between them.
    """
    if not any(trace.has(table) for table in AT_ONE_MOMENT if table not in WHOLE):
        return None
    return "recorded" if is_recorded(trace) else "inferred"


def _has_seq(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.select(pl.col("seq").is_not_null().any())


Places = npt.NDArray[np.int64]


class Moments(NamedTuple):
    """All places of the order, each once, with the latest time and step of the rows until there.

    Some rows are told later than they happened; `EARLIEST_NS` stands where no step was told yet.
    """

    seq: Places
    ts_ns: Places
    step: Places


def _places(seq: Places) -> tuple[Places, Places]:
    """Every number once, sorted, and the place of each row's among them.

    Numbers that were counted are nearly without gaps, so they are found by counting, not sorting.
    """
    if not len(seq):
        return seq, seq
    first = int(seq.min())
    num = int(seq.max()) - first + 1
    if num > MOST_GAPS * len(seq):
        return np.unique(seq, return_inverse=True)
    is_told = np.zeros(num, bool)
    is_told[seq - first] = True
    places = np.cumsum(is_told)[seq - first] - 1
    return np.flatnonzero(is_told) + first, places


class Order:
    """Rows of a rank's tables, each with its place in the one order as `seq`, which is never null.

    A row that was not counted among rows that were, such as one of a front end in a process of its
    own, comes behind the last that was told by its time.
    """

    def __init__(self, trace: Trace, rank: int) -> None:
        self._trace = trace
        self._of_rank = pl.col("rank") == rank
        self.is_recorded = is_recorded(trace, rank)

    def rows(self, table: str, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns of a table, and `seq`, in that order; without rows that have no time."""
        wanted = [name for name in columns if name != "seq"]
        if not self.is_recorded:
            number = pl.Series("seq", self._inferred.get(table, ()), pl.Int64)
            rows = self._timed(table).select(wanted).collect().with_columns(number)
        else:
            rows = self._counted(table, wanted)
        return rows if rows["seq"].is_sorted() else rows.sort("seq", maintain_order=True)

    def numbers(self, table: str) -> pl.Series:
        """Give the place of each row that has a time, as these lie in the table."""
        if not self.is_recorded:
            return pl.Series("seq", self._inferred.get(table, ()), pl.Int64)
        rows = self._timed(table).select("ts_ns", "seq").collect()
        by_time = pl.Series(self.all_last_by(rows["ts_ns"].to_numpy()))
        return rows["seq"].fill_null(by_time)

    @cached_property
    def moments(self) -> Moments:
        """Every place in the order, with the time and the step that had been reached there."""
        rows = pl.concat([self.rows(table.name, ("ts_ns", "step")) for table in OF_STATE])
        seq, place = _places(rows["seq"].to_numpy())
        reached = []
        for column in (rows["ts_ns"], rows["step"].fill_null(EARLIEST_NS)):
            latest = np.full(len(seq), EARLIEST_NS)
            np.maximum.at(latest, place, column.to_numpy())
            reached.append(np.maximum.accumulate(latest))
        return Moments(seq, *reached)

    def last_by(self, ts_ns: int) -> int:
        """Give the last place that was reached by a time; less than any before the first."""
        place = int(np.searchsorted(self.moments.ts_ns, ts_ns, "right")) - 1
        return int(self.moments.seq[place]) if place >= 0 else FIRST - 1

    def all_last_by(self, ts_ns: Places) -> Places:
        """Give for each of many times what `last_by` gives for one."""
        if not len(ts_ns) or not len(self.moments.seq):
            return np.full(len(ts_ns), FIRST - 1)
        place = np.searchsorted(self.moments.ts_ns, ts_ns, "right") - 1
        return np.where(place >= 0, self.moments.seq[place], FIRST - 1)

    def step_of(self, seq: int) -> int | None:
        """Give the last step of which something had been told at a place."""
        place = int(np.searchsorted(self.moments.seq, seq, "right")) - 1
        step = int(self.moments.step[place]) if place >= 0 else EARLIEST_NS
        return None if step == EARLIEST_NS else step

    def time_of(self, seq: int) -> int:
        """Give the time that had been reached at a place."""
        return int(self.times_of([seq])[0])

    def times_of(self, seqs: npt.ArrayLike) -> Places:
        """Give the times that had been reached at places; the first of all for what is before."""
        places = np.searchsorted(self.moments.seq, seqs, "right") - 1
        times: Places = self.moments.ts_ns[np.maximum(places, 0)]
        return times

    def _timed(self, table: str) -> pl.LazyFrame:
        return self._trace.table(table).filter(self._of_rank).drop_nulls("ts_ns")

    def _counted(self, table: str, columns: Sequence[str]) -> pl.DataFrame:
        rows = self._timed(table).select({*columns, "ts_ns", "seq"}).collect()
        if rows["seq"].null_count():
            known, lost = rows.drop_nulls("seq"), rows.filter(pl.col("seq").is_null())
            placed = lost.drop("seq").sort("ts_ns", maintain_order=True)
            placed = placed.join_asof(self._last_by_time, on="ts_ns")
            late = pl.col("seq").fill_null(FIRST - 1)
            rows = pl.concat([known, placed.with_columns(late)], how="diagonal")
        return rows.select(*columns, "seq")

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
