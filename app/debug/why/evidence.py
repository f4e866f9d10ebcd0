"""The rows that a chain is proved by, each read once for a session."""

from __future__ import annotations

from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from stepscope.analyzers.views.declared import is_by_priority
from stepscope.analyzers.views.requests import waits
from stepscope.app.debug.held.device_cores import device_cores
from stepscope.app.debug.held.index import STEPS
from stepscope.app.debug.reasons import COLUMNS, EVENTS
from stepscope.app.debug.session import Session
from stepscope.app.debug.why.rows_by_name import Row, RowsByName, RowsOfRequests
from stepscope.ingest.derive.order import FIRST
from stepscope.ingest.derive.order_runs import Places

DECISIONS = ("subject_kind", "subject", *COLUMNS)
ROWS_A_SPENT = 1_000
_OF_SESSION: WeakKeyDictionary[Session, Evidence] = WeakKeyDictionary()


class Evidence:
    """Rows of the rank of a session, by whom they are about."""

    def __init__(self, session: Session) -> None:
        self.trace, self.rank, self.order = session.trace, session.rank, session.moments.order
        self.first_ns = session.bounds_ns[0]
        self._reasons, self._steps = session.reasons, session.told_steps

    @classmethod
    def of(cls, session: Session) -> Evidence:
        """The evidence of a session, the same each time."""
        if session not in _OF_SESSION:
            _OF_SESSION[session] = cls(session)
        return _OF_SESSION[session]

    @cached_property
    def lifecycle(self) -> RowsOfRequests:
        """What happened to requests."""
        return RowsOfRequests(self._reasons.lifecycle, EVENTS)

    @cached_property
    def about_requests(self) -> RowsOfRequests:
        """What was decided about requests."""
        return RowsOfRequests(self._reasons.decisions, ("request", "seq", *COLUMNS))

    @cached_property
    def priorities(self) -> dict[str, int]:
        """Priorities of requests, the lower first; empty where no such order is declared."""
        if not is_by_priority(self.trace):
            return {}
        known = self.trace.lifecycle.filter(
            pl.col("rank") == self.rank, pl.col("request").is_not_null(),
            pl.col("priority").is_not_null(),
        )  # fmt: skip
        rows = known.group_by("request").agg(pl.col("priority").first()).collect()
        return dict(rows.iter_rows())

    @cached_property
    def about_tasks(self) -> RowsByName:
        """What was decided about tasks."""
        return self._decided("task")

    @cached_property
    def about_buckets(self) -> RowsByName:
        """What was decided about buckets."""
        return self._decided("bucket")

    def step_row(self, step: int | None) -> Row:
        """What is told of a step itself; empty where nothing is."""
        places = np.flatnonzero(self._steps.numbers("step") == step)[:1]
        columns = ("seq", *STEPS)
        found = self._steps.rows(places, columns)
        return dict(zip(columns, found[0], strict=True)) if found else {}

    @cached_property
    def tasks(self) -> RowsByName:
        """The tasks of the device, by their numbers."""
        return self._by_number("tasks", "task")

    @cached_property
    def spans(self) -> RowsByName:
        """The blocks of tasks on cores, by the number of the task."""
        return self._by_number("core_spans", "task")

    @cached_property
    def before(self) -> RowsByName:
        """Whom a task waits for: its edges, by the later task."""
        return self._by_number("task_edges", "to_task")

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """The collectives of all ranks, in order of time."""
        rows = self.trace.table("collectives").drop_nulls(["ts_ns", "rank"])
        return rows.sort("ts_ns", maintain_order=True).collect()

    def ranks(self) -> list[int]:
        """All ranks of the trace."""
        rows = [self.trace.table(name).select("rank") for name in ("steps", "lifecycle")]
        of_rows = pl.concat(rows).drop_nulls().unique().collect()["rank"].to_list()
        in_collectives = self.collectives["rank"].to_list()
        return sorted({self.rank, *self.trace.manifest.ranks, *of_rows, *in_collectives})

    @cached_property
    def waits(self) -> pl.DataFrame:
        """When requests of the rank waited: request, from_ns, to_ns, in order of time."""
        rows = waits(self.trace).filter(pl.col("rank") == self.rank)
        return rows.select("request", "from_ns", "to_ns").sort("from_ns", "request").collect()

    def requests(self) -> list[str]:
        """The requests of all ranks, in order of their names."""
        events = self.trace.lifecycle.select("request")
        is_about = pl.col("subject_kind") == "request"
        decisions = self.trace.decisions.filter(is_about).select(request="subject")
        names = pl.concat([events, decisions]).drop_nulls().unique().sort("request")
        return names.collect()["request"].to_list()

    def cores(self) -> list[int]:
        """The cores that ever ran a block, or of which the manifest tells."""
        ran = self.spans.rows["core"].drop_nulls().unique().to_list()
        return sorted({*ran, *device_cores(self.trace.manifest)})

    def num_missing(self, after: int, until: int) -> int:
        """How many rows are missing between two places of the order; 0 where none was counted.

        A recorder may spend a number on no row (decision 0044): few single ones are not counted.
        """
        places, missing = self._gaps
        may_be_spent = (missing == 1).sum() <= 1 + self.order.runs.num_places // ROWS_A_SPENT
        first, last = np.searchsorted(places, (after, until), "right")
        between = missing[first:last]
        return int(between[between > int(may_be_spent)].sum())

    def is_unbroken(self, after: int, until: int) -> bool:
        """Whether every number between two places has a row: nothing at all can be missing."""
        first, last = np.searchsorted(self._gaps[0], (after, until), "right")
        return self.order.is_recorded and first == last

    @cached_property
    def _gaps(self) -> tuple[Places, Places]:
        """The places in front of which numbers have no row, and how many."""
        first, last = self.order.runs.first, self.order.runs.last
        if not self.order.is_recorded or not len(first):
            return first[:0], first[:0]
        missing = first - np.append(min(FIRST, first[0]) - 1, last[:-1]) - 1
        return first[missing > 0], missing[missing > 0]

    def _decided(self, kind: str) -> RowsByName:
        rows = self._decisions.filter(pl.col("subject_kind") == kind)
        return RowsByName(rows, "subject")

    @cached_property
    def _decisions(self) -> pl.DataFrame:
        return self.order.rows("decisions", DECISIONS)

    def _by_number(self, table: str, name: str) -> RowsByName:
        rows = self.trace.table(table).filter(pl.col("rank") == self.rank)
        return RowsByName(rows.collect(), name)
