"""The rows of one process: what was timed, with its event, and what counters came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import polars as pl

from stepscope.ingest.readers.encodings.sqlite import Database
from stepscope.ingest.readers.profile_tables import LIMIT_NS
from stepscope.ingest.readers.rocpd import decode
from stepscope.ingest.readers.rocpd.decode import DISPATCH, EVENT, PMC_EVENT, PREFIX, SAMPLE

TIMELESS = "rows without a time"
BACKWARDS = "end before begin taken as its begin"
VALUELESS = "counters without a value or a time"
_KIND, _CALL = "category_id", "stack_id"
_COLUMNS: dict[str, pl.DataType] = {
    "table": pl.String(), "ts_ns": pl.Int64(), "dur_ns": pl.Int64(), "event_id": pl.Int64(),
    **dict.fromkeys(("pid", "tid", "agent_id", "kernel_id", "queue_id", "name_id", "track_id"),
                    pl.Int64()),
    "called": pl.String(), "args": pl.String(),
}  # fmt: skip


@dataclass(slots=True)
class Collected:
    """What was read of all processes, by what it is called behind the names of their tables."""

    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)


class Process:
    """The tables of one process, which have its id behind their names."""

    def __init__(self, opened: Database, suffix: str, found: Collected) -> None:
        self._opened = opened
        self._suffix = suffix
        self._found = found

    def whole(self, name: str, columns: decode.Columns) -> pl.DataFrame:
        """All rows of one of its tables, none where it has no such table."""
        return self._opened.whole(f"{PREFIX}{name}{self._suffix}", columns)

    def timed(self) -> pl.DataFrame:
        """What was when, with the category, number and message of its event."""
        parts = [pl.DataFrame(schema=_COLUMNS)]
        for name, columns in decode.TIMED.items():
            parts += [_of_rows(name, rows) for rows in self._records(name, columns)]
        parts += [_of_samples(rows) for rows in self._records(SAMPLE, decode.SAMPLES)]
        rows = pl.concat(parts)
        begins = pl.col("ts_ns").is_between(-LIMIT_NS, LIMIT_NS).fill_null(value=False)
        ends = (pl.col("ts_ns") + pl.col("dur_ns")).is_between(-LIMIT_NS, LIMIT_NS)
        good = rows.filter(begins & ends.fill_null(value=True))
        self._found.read.update(_counts(good))
        lost = Counter(_counts(rows)) - Counter(_counts(good))
        self._found.skipped.update({f"{name}: {TIMELESS}": num for name, num in lost.items()})
        self._found.repaired[BACKWARDS] += int((good["dur_ns"] < 0).sum())
        own = good.with_columns(pl.col("dur_ns").clip(lower_bound=0))
        return own.join(self._events(), on="event_id", how="left", maintain_order="left")

    def counted(self, timed: pl.DataFrame) -> pl.DataFrame:
        """What each counter came to at an event (ts_ns, pmc_id, value), summed over instances."""
        values = pl.concat(
            [pl.DataFrame(schema={"event_id": pl.Int64, "pmc_id": pl.Int64, "value": pl.Float64}),
             *self._records(PMC_EVENT, decode.PMC_EVENTS)]
        )  # fmt: skip
        when = timed.select("event_id", "ts_ns").drop_nulls().unique("event_id", keep="first")
        good = values.filter(pl.col("value").is_finite()).join(
            when, on="event_id", how="inner", maintain_order="left"
        )
        self._found.read[PMC_EVENT] += len(good)
        self._found.skipped[VALUELESS] += len(values) - len(good)
        keys = ("event_id", "ts_ns", "pmc_id")
        return good.group_by(keys, maintain_order=True).agg(pl.col("value").sum())

    def _records(self, name: str, columns: decode.Columns) -> list[pl.DataFrame]:
        table = f"{PREFIX}{name}{self._suffix}"
        return list(self._opened.records(table, columns)) if table in self._opened.tables else []

    def _events(self) -> pl.DataFrame:
        message = pl.col("extdata").str.json_path_match("$.message")
        told = self.whole(EVENT, decode.EVENTS).unique("id", keep="first")
        has_message = pl.col("extdata").str.contains('"message"', literal=True)
        return told.select(
            pl.col("id").alias("event_id"), _KIND, pl.col(_CALL).alias("correlation"),
            pl.when(has_message).then(message).alias("message"),
        )  # fmt: skip


def _counts(rows: pl.DataFrame) -> dict[str, int]:
    return {name: num for name, num in rows["table"].value_counts().iter_rows() if num}


def _of_rows(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    said = pl.lit(None, pl.String)
    if name == decode.ALLOCATION:
        said = pl.concat_str("type", "level", separator=" ", ignore_nulls=True)
    agent = pl.lit(None, pl.Int64)
    if name == decode.COPY:
        agent = pl.coalesce("dst_agent_id", "src_agent_id")
    if name == DISPATCH:
        agent = pl.col("agent_id")
    args = [
        pl.col(column) for column in decode.ARGS.get(name, ()) if not rows[column].is_null().all()
    ]
    return _as_columns(
        rows.with_columns(agent_id=agent),
        table=pl.lit(name),
        ts_ns=pl.col("start"),
        dur_ns=pl.col("end") - pl.col("start"),
        called=said,
        args=pl.struct(args).struct.json_encode() if args else pl.lit(None, pl.String),
    )


def _of_samples(rows: pl.DataFrame) -> pl.DataFrame:
    return _as_columns(rows, table=pl.lit(SAMPLE), ts_ns=pl.col("timestamp"))


def _as_columns(rows: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    told = rows.with_columns(**columns)
    gaps = {
        name: pl.lit(None, dtype) for name, dtype in _COLUMNS.items() if name not in told.columns
    }
    return told.with_columns(**gaps).select(
        pl.col(name).cast(dtype) for name, dtype in _COLUMNS.items()
    )
