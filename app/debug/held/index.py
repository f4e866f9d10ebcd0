"""All that a session needs of a rank, made of its rows once: the parts, each a few flat tables.

None stands for a part of which nobody told: that is not the same as one without rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from stepscope.app.debug.cores import given_spans
from stepscope.app.debug.empty import (
    has_only_empty_batches,
    has_only_empty_queues,
    has_only_free_blocks,
)
from stepscope.app.debug.formed import formed_steps
from stepscope.app.debug.held.by_name import ByName
from stepscope.app.debug.held.device_cores import device_cores
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.pools import holds_of
from stepscope.app.debug.held.queue_spans import queue_spans
from stepscope.app.debug.held.queues import queue_events
from stepscope.app.debug.held.ready_queues import (
    LISTED_COLUMNS,
    TASK_COLUMNS,
    stays_of,
    tells_of_queues,
)
from stepscope.app.debug.held.slot_lengths import lengths_of
from stepscope.app.debug.held.thread_phases import PHASE_COLUMNS, phases_of
from stepscope.app.debug.moments import CHANGES, ends_of
from stepscope.app.debug.reasons import SOUGHT, told_reasons
from stepscope.app.debug.step_batches import in_order
from stepscope.app.timeline.lanes.bounds import DURATIONS, TIMED, bounds_of
from stepscope.ingest.derive.order import Order
from stepscope.ingest.derive.order_runs import OrderRuns
from stepscope.ingest.derive.states import is_list_of_arrivals
from stepscope.ingest.frames import only, without_nulls
from stepscope.ingest.schema import BY_NAME, OF_STATE
from stepscope.ingest.trace import Trace

STATE_COLUMNS: dict[str, list[str]] = {
    "batch_rows": ["step", "row", "request", "phase", "num_tokens"],
    "lifecycle": ["request", "event", "queue_index"],
    "queue_order": ["ts_ns", "index", "request", "queue"],
    "allocations": ["resource", "id", "op", "owner", "source"],
    "slot_tokens": ["slot", "num_tokens"],
    "core_spans": ["rank", "ts_ns", "dispatch_ns", "end_ns", "slot", "core", "task", "block"],
    "core_waits": ["rank", "ts_ns", "slot", "core", "task", "block"],
}
STEPS = (
    "step", "ts_ns", "dur_ns", "kind", "token_budget", "reserved_tokens", "kv_blocks_total",
    "num_prefill_tokens", "num_decode_tokens", "by_rank",
)  # fmt: skip
NEEDED = ("ts_ns", "step", "request", "id", "owner", "core", "task", "index")
ALSO_NEEDED = {"slot_tokens": ("slot", "num_tokens")}
"""What a row of a table needs beside these to say anything."""

Frames = Mapping[str, pl.DataFrame] | None
Part = Mapping[str, FlatRows] | None
Index = Mapping[str, Part]
Finder = Callable[[pl.Series], ByName]
Used = TypeVar("Used")
READ = tuple(table.name for table in OF_STATE)
OF_RUNS = ("places", "times", "steps")
ENDS = ("first_ns", "last_ns")
AT_ONCE = 2


class Recipe(NamedTuple):
    """How a part is made: which tables of the order it reads, that these go behind the last."""

    name: str
    make: Callable[[Made], Frames]
    reads: tuple[str, ...] = ()


class Made:
    """The rows of one rank, and the parts that are made of them."""

    def __init__(self, trace: Trace, rank: int) -> None:
        self.trace, self.rank = trace, rank
        self.order = Order(trace, rank)
        self._by_request: ByName | None = None
        self._seeking = Lock()
        self._resources: set[str] | None = None

    def parts(self, use: Callable[[str, Part], Used]) -> dict[str, Used]:
        """Make each part, and use it at once: two at a time, as each takes memory."""
        readers = {table: {part.name for part in PARTS if table in part.reads} for table in READ}
        with ThreadPoolExecutor(AT_ONCE) as workers:
            made = {part.name: workers.submit(self._used, part, use, readers) for part in PARTS}
        return {name: done.result() for name, done in made.items()}

    def _used(
        self, part: Recipe, use: Callable[[str, Part], Used], readers: Mapping[str, set[str]]
    ) -> Used:
        used = use(part.name, laid_out(part.make(self), {"lifecycle": self.by_request}))
        for table in part.reads:
            readers[table].discard(part.name)
            if not readers[table]:
                self.order.let_go([table])
        return used

    def rows(self, table: str) -> pl.DataFrame:
        """The rows of a table that tell of the state, each of what it needs to say so."""
        columns = STATE_COLUMNS[table]
        every = (*NEEDED, *ALSO_NEEDED.get(table, ()))
        needed = [column for column in columns if column in every]
        if BY_NAME[table].is_of_state:
            return without_nulls(self.order.rows(table, columns), needed)
        rows = self.trace.table(table).filter(pl.col("rank") == self.rank)
        return rows.select(columns).drop_nulls(needed).collect()

    def of_order(self) -> Frames:
        """The runs of the order, whether it was recorded, and how far the whole trace reaches."""
        runs = self.order.runs
        read = {table: self._of_all_ranks(table) for table in TIMED if table in READ}
        first_ns, end_ns = bounds_of(self.trace, read)
        return {
            "bounds": pl.DataFrame({"first_ns": [first_ns], "end_ns": [end_ns]}),
            "events": pl.DataFrame(
                ends_of(self._events()), dict.fromkeys(ENDS, pl.Int64), orient="row"
            ),
            "places": pl.DataFrame({"first": runs.first, "last": runs.last}),
            "times": pl.DataFrame({"time_from": runs.time_from, "ts_ns": runs.ts_ns}),
            "steps": pl.DataFrame({"step_from": runs.step_from, "step": runs.step}),
            "how": pl.DataFrame({"is_recorded": [int(self.order.is_recorded)]}),
        }

    def _events(self) -> Iterator[pl.LazyFrame]:
        """The times of all changes, as they were put into the order or as they lie."""
        for table, column in CHANGES:
            if table in READ:
                yield self.order.rows(table, [column]).lazy().select(column)
            else:
                rows = self.trace.table(table).filter(pl.col("rank") == self.rank)
                yield rows.select(column).drop_nulls()

    def _of_all_ranks(self, table: str) -> pl.LazyFrame:
        """Times of a table: of this rank as they were put into the order, of others as they lie."""
        columns = ["ts_ns", *([DURATIONS[table]] if table in DURATIONS else [])]
        others = self.trace.table(table).filter(pl.col("rank") != self.rank).drop_nulls("ts_ns")
        return pl.concat(
            [self.order.rows(table, columns).lazy().select(columns), others.select(columns)]
        )

    def of_steps(self) -> Frames:
        """When each step's batch was formed, and what is told of the steps themselves."""
        formed = formed_steps(self.order, is_closed=self.trace.manifest.closed)
        return {"formed": formed, "told": self.order.rows("steps", STEPS).drop_nulls("step")}

    def of_reasons(self) -> Frames:
        """What was decided about requests."""
        return told_reasons(self.order)

    def by_request(self, requests: pl.Series) -> ByName:
        """Which rows of `lifecycle` are of which request; found once, whichever thread asks."""
        with self._seeking:
            self._by_request = self._by_request or ByName.of(requests)
            return self._by_request

    def of_batches(self) -> Frames:
        """Who was in each step's batch."""
        rows = self.rows("batch_rows")
        is_known = len(rows) or has_only_empty_batches(self.trace, self.rank)
        return {"rows": in_order(rows)} if is_known else None

    def of_queues(self) -> Frames:
        """The queues of a rank that tells of its requests; what tells of none is not an empty one.

        The same goes for arrivals alone: nobody says when they left the queue.
        """
        every = self.order.rows("lifecycle", STATE_COLUMNS["lifecycle"])
        told = without_nulls(every, ["request"])
        is_known = len(told) or has_only_empty_queues(self.trace, self.rank)
        if not is_known or is_list_of_arrivals(self.trace):
            return None
        orders = self.rows("queue_order")
        if len(orders):
            return queue_events(told, orders)
        # Rows without a request are no events of a queue.
        by_request = self.by_request(every["request"]) if len(told) == len(every) else None
        return queue_spans(told, by_request) or queue_events(told, orders)

    def of_slots(self) -> Frames:
        """Who held which slot."""
        return self._pool("slot", is_free=False)

    def of_slot_tokens(self) -> Frames:
        """How many tokens lie in each slot."""
        rows = self.rows("slot_tokens")
        return {"lengths": lengths_of(rows)} if len(rows) else None

    def of_kv_blocks(self) -> Frames:
        """Who held which KV block."""
        return self._pool("kv-block", is_free=has_only_free_blocks(self.trace, self.rank))

    def of_cores(self) -> Frames:
        """What the cores ran, those included of which only the manifest tells."""
        spans = self.rows("core_spans")
        waits = self.rows("core_waits")
        if not len(spans) and not len(waits):
            return None
        return given_spans(spans, device_cores(self.trace.manifest), waits)

    def of_ready(self) -> Frames:
        """Who stood in which ready queue, and where in it."""
        if not tells_of_queues(self.trace, self.rank):
            return None
        tasks, listed = (
            self._as_it_is("tasks", TASK_COLUMNS),
            self._as_it_is("ready_order", LISTED_COLUMNS),
        )
        return {"stays": stays_of(tasks, listed, self._formed())}

    def of_threads(self) -> Frames:
        """What each thread of the device's scheduler did."""
        rows = self._as_it_is("thread_phases", PHASE_COLUMNS)
        return phases_of(rows, self._formed()) if len(rows) else None

    def _as_it_is(self, table: str, columns: Sequence[str]) -> pl.DataFrame:
        rows = self.trace.table(table).filter(pl.col("rank") == self.rank)
        return rows.select(columns).collect()

    def _formed(self) -> pl.DataFrame:
        return formed_steps(self.order, is_closed=self.trace.manifest.closed)

    def _pool(self, resource: str, *, is_free: bool) -> Frames:
        if self._resources is not None and resource not in self._resources and not is_free:
            return None
        every = self.rows("allocations")
        self._resources = {*every["resource"].unique()}
        rows = only(every, every["resource"] == resource)
        return {"holds": holds_of(rows)} if len(rows) or is_free else None


PARTS = (
    Recipe("order", Made.of_order, READ),
    Recipe("kv_blocks", Made.of_kv_blocks, ("allocations",)),
    Recipe("slots", Made.of_slots, ("allocations",)),
    Recipe("batches", Made.of_batches, ("batch_rows",)),
    Recipe("steps", Made.of_steps, READ),
    Recipe("queues", Made.of_queues, ("lifecycle", "queue_order")),
    Recipe("reasons", Made.of_reasons, ("decisions", "lifecycle")),
    Recipe("slot_tokens", Made.of_slot_tokens, ("slot_tokens",)),
    Recipe("cores", Made.of_cores),
    Recipe("ready", Made.of_ready, READ),
    Recipe("threads", Made.of_threads, READ),
)
"""All parts: those that take longest come first, and who needs the order comes behind it."""


def made_in_memory(trace: Trace, rank: int) -> Index:
    """Make all parts."""
    return Made(trace, rank).parts(lambda _, part: part)


def laid_out(part: Frames, finders: Mapping[str, Finder] = MappingProxyType({})) -> Part:
    """The frames of a part as flat rows; `finders` say of some tables where those sought are."""
    if part is None:
        return None
    found = {name: find(part[name][SOUGHT[name]]) for name, find in finders.items() if name in part}
    return {
        name: FlatRows.of(rows, SOUGHT.get(name), found.get(name)) for name, rows in part.items()
    }


def bounds_in(index: Index) -> tuple[int, int]:
    """From when to when the trace reaches, as `bounds_of` says it."""
    [bounds] = (index["order"] or {})["bounds"].rows([0], ("first_ns", "end_ns"))
    return bounds[0], bounds[1]


def events_in(index: Index) -> list[tuple[int, int]]:
    """The first and the last time of each of CHANGES that has any."""
    events = (index["order"] or {})["events"]
    return [(first_ns, last_ns) for first_ns, last_ns in events.rows(range(len(events)), ENDS)]


def order_of(trace: Trace, rank: int, index: Index) -> Order:
    """The order of a rank's rows, as it was found."""
    part = index["order"] or {}
    arrays = {
        name: array.astype(np.int64, copy=False)
        for table in OF_RUNS
        for name, array in part[table].arrays().items()
    }
    is_recorded = bool(part["how"].numbers("is_recorded")[0])
    return Order(trace, rank, (is_recorded, OrderRuns(**arrays)))
