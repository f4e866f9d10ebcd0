"""Who was where in each waiting queue: the one definition for lanes and exports.

A request enters the queue at the event's `queue_index`, or at its end where an arrival or a
preemption has none, and leaves it when it is admitted, resumed or ended. Where an engine sorts a
queue, `queue_order` says how: its requests share the positions that they had. In a rank of which
`queue_order` alone is recorded, each order holds until the next of its queue. Where no admission of
a rank is recorded, nobody knows when a request left the queue, and the rank has no positions; the
same goes for each request that ran without an admission.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.order import Order, is_recorded
from stepscope.ingest.derive.states import (
    ENDS,
    ENTERS,
    LEAVES,
    is_list_of_arrivals,
    unknown_admissions,
)
from stepscope.ingest.derive.two_ended_queue import AT_END, QueueEvents, Stays, positions_of
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

QUEUE = ("rank", "queue")
MOST_POSITIONS, FEWEST_POSITIONS = 256, 16
MOST_CHANGES = 1 << 22
"""Changes of positions up to which as many as `MOST_POSITIONS` are followed."""
ENTER, LEAVE, SORT = 1, 2, 3
KINDS = {**dict.fromkeys(ENTERS, ENTER), **dict.fromkeys((*LEAVES, *ENDS), LEAVE)}
NO_ENTRY, UNCHANGED = -1, 1 << 62
POSITIONS = {
    "rank": pl.Int32, "queue": pl.String, "position": pl.Int32, "request": pl.String,
    "turn": pl.UInt32, "from_ns": pl.Int64, "to_ns": pl.Int64, "table": pl.String, "ref": pl.UInt32,
    "num_positions": pl.Int32,
}  # fmt: skip
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WaitingQueue:
    """One queue of a rank: how many waited at most, and who was at each position that is followed.

    `parts` have position, from_ns, to_ns (null while the trace does not tell of a change) and
    `entry`, which is the place of the stay in `turn` (the request's number), `ref` (the row of
    `table` that put it into the queue) and `request`. They can be gone through once.
    """

    rank: int
    queue: str | None
    table: str
    num_positions: int
    num_followed: int
    request: pl.Series
    turn: npt.NDArray[np.integer[Any]]
    ref: npt.NDArray[np.integer[Any]]
    parts: Iterable[pl.DataFrame]


def queue_positions(trace: Trace) -> pl.DataFrame:
    """Return which request was at each position of a waiting queue from when to when.

    Columns: POSITIONS, by rank, queue, position and time. `to_ns` is null while the trace does not
    tell of a change, `turn` numbers requests by when they entered first, `ref` is the row of
    `table` that put the request into the queue, and `num_positions` how many the queue ever had:
    of a long queue only the first are followed, as each change moves all that are behind it.
    """
    parts = (_named(queue, part) for queue in waiting_queues(trace) for part in queue.parts)
    return pl.concat([pl.DataFrame(schema=POSITIONS), *parts])


def _named(queue: WaitingQueue, part: pl.DataFrame) -> pl.DataFrame:
    """Rows of POSITIONS."""
    entry = part["entry"]
    return part.select(
        "position", "from_ns", "to_ns",
        rank=pl.lit(queue.rank), queue=pl.lit(queue.queue, pl.String), table=pl.lit(queue.table),
        request=queue.request.gather(entry), turn=pl.Series(queue.turn[entry.to_numpy()]),
        ref=pl.Series(queue.ref[entry.to_numpy()]), num_positions=pl.lit(queue.num_positions),
    ).select(pl.col(column).cast(kind) for column, kind in POSITIONS.items())  # fmt: skip


def waiting_queues(trace: Trace) -> Iterator[WaitingQueue]:
    """The queues of each rank that anyone waited in, by rank and name; `queue_positions` in parts.

    A million events are some seconds where requests are put into the middle of a queue or it is
    sorted, as each place then depends on all before; else a tenth of that.
    """
    if is_list_of_arrivals(trace):
        return
    unknown = unknown_admissions(trace.lifecycle).collect()
    ranks = [trace.table(table).select("rank") for table in ("lifecycle", "queue_order")]
    every = pl.concat(ranks).drop_nulls().unique().collect()["rank"].sort().to_list()
    for rank in every:
        yield from _of_rank(trace, rank, unknown.filter(pl.col("rank") == rank))


def _of_rank(trace: Trace, rank: int, unknown: pl.DataFrame) -> Iterator[WaitingQueue]:
    moves, orders = _moves(trace, rank, unknown), _orders(trace, rank)
    if orders.is_empty():
        if moves["is_admission"].any():
            yield from _of_events(rank, moves.drop("is_admission"))
        return
    names = pl.concat([moves["request"], orders["request"]]).unique(maintain_order=True)
    number = names.to_frame().with_row_index("number")
    moves = moves.join(number, on="request", how="left", maintain_order="left")
    members = orders.join(number, on="request", how="left", maintain_order="left").group_by(
        "ts_ns", "queue", maintain_order=True
    ).agg(pl.col("seq").max(), "number", "ref")  # fmt: skip
    sortings = [_Sorting(*each) for each in members.select("queue", "number", "ref").iter_rows()]
    sorts = members.select(
        "seq", "ts_ns", kind=pl.lit(SORT, pl.Int8), number=pl.int_range(pl.len(), dtype=pl.UInt32)
    )
    events = _in_turn(pl.concat([moves.drop("request", "is_admission"), sorts], how="diagonal"))
    most = _most_followed(events, max(orders["queue"].n_unique(), 1))
    queues = _Queues(sortings, most, is_followed=len(moves) > 0)
    queues.follow(events)
    yield from queues.queues(rank, names)


def _of_events(rank: int, moves: pl.DataFrame) -> Iterator[WaitingQueue]:
    """The one queue of a rank that never was sorted."""
    events = _in_turn(moves)
    request = events["request"]
    number = request.cast(pl.Categorical(pl.Categories.random())).to_physical()
    events = events.drop("request").with_columns(number=number)
    most, times = _most_followed(events, 1), events["ts_ns"].to_numpy()
    is_new = np.append(True, times[1:] != times[:-1])
    found = positions_of(
        QueueEvents(
            (events["kind"] == ENTER).to_numpy(),
            number.to_numpy().astype(np.int64),
            events["index"].cast(pl.Int64).fill_null(AT_END).to_numpy(),
            np.cumsum(is_new) - 1,
        ),
        most,
    )
    if found is None:
        queues = _Queues((), most, is_followed=True)
        queues.follow(events)
        yield from queues.queues(rank, request.unique(maintain_order=True))
        return
    if found.longest:
        yield WaitingQueue(
            rank, None, "lifecycle", found.longest, min(most, found.longest), request,
            number.to_numpy(), events["ref"].to_numpy(), _timed(found.stays, times[is_new]),
        )  # fmt: skip


def _timed(stays: Iterator[Stays], times: Ints) -> Iterator[pl.DataFrame]:
    """Positions with their times, which are those of moments."""
    for position, each in enumerate(stays):
        last = pl.Series(np.append(times, 0)[each.last])
        yield pl.DataFrame(
            {
                "position": np.full(len(each.first), position, np.int32),
                "from_ns": times[each.first],
                "to_ns": last.set(pl.Series(each.last == len(times)), None),
                "entry": each.event,
            }
        )


def _in_turn(events: pl.DataFrame) -> pl.DataFrame:
    """Events in their order, at times that never go back."""
    by = ["ts_ns"] if (events["seq"] == 0).all() else ["seq"]
    ordered = events if events[by[0]].is_sorted() else events.sort(by, maintain_order=True)
    return ordered.with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS).cum_max())


def _most_followed(events: pl.DataFrame, num_queues: int) -> int:
    """How many positions are followed of each queue."""
    num_moments = events["ts_ns"].n_unique() * num_queues
    return min(max(MOST_CHANGES // max(num_moments, 1), FEWEST_POSITIONS), MOST_POSITIONS)


def _moves(trace: Trace, rank: int, unknown: pl.DataFrame) -> pl.DataFrame:
    """The events by which requests enter and leave the queue, each with its place in the order."""
    kind = pl.col("event").replace_strict(KINDS, default=0, return_dtype=pl.Int8)
    stays = (pl.col("event") == "defer") & pl.col("queue_index").is_null()
    return (
        _in_order(trace, "lifecycle", rank)
        .select("ref", "seq", "request", "ts_ns", index="queue_index",
                kind=pl.when(~stays).then(kind).otherwise(0),
                is_admission=pl.col("event").is_in(LEAVES))
        .filter(pl.col("kind") > 0)
        .drop_nulls("request")
        .join(unknown, on="request", how="anti", maintain_order="left")
    )  # fmt: skip


def _orders(trace: Trace, rank: int) -> pl.DataFrame:
    """The rows of sorted queues, each queue in its order."""
    return (
        _in_order(trace, "queue_order", rank)
        .select("ref", "seq", "ts_ns", "queue", "index", "request")
        .drop_nulls(["index", "request"])
        .sort("ts_ns", "queue", "index", maintain_order=True)
    )


def _in_order(trace: Trace, table: str, rank: int) -> pl.DataFrame:
    """Rows of a rank that have a time, numbered by `ref`, each with its place as `seq`.

    Where none was counted, both tables have 0 for it, and are put into an order by their times.
    """
    rows = trace.table(table).with_row_index("ref").filter(pl.col("rank") == rank)
    timed = rows.drop_nulls("ts_ns").collect()
    if not timed["seq"].null_count():
        return timed
    if timed["seq"].null_count() == len(timed) and not is_recorded(trace, rank):
        return timed.with_columns(seq=pl.lit(0, pl.Int64))
    return timed.with_columns(seq=Order(trace, rank).numbers(table))


@dataclass(frozen=True, slots=True)
class _Sorting:
    """A queue as it was sorted: its name, the numbers of its requests, and their rows."""

    queue: str | None
    requests: list[int]
    refs: list[int]


@dataclass(slots=True)
class _Queue:
    """The entries of a queue in their order, and how its first positions changed over time.

    Each change is a time, the first position that changed, how many changed, and their entries.
    """

    entries: list[int] = field(default_factory=list)
    first_changed: int = UNCHANGED
    num_shown: int = 0
    longest: int = 0
    times: array[int] = field(default_factory=lambda: array("q"))
    firsts: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))
    changed: array[int] = field(default_factory=lambda: array("q"))

    def insert(self, at: int, entry: int) -> None:
        """Let an entry in at a position."""
        self.entries.insert(at, entry)
        self.first_changed = min(self.first_changed, at)

    def remove(self, entry: int) -> None:
        """Take an entry out."""
        at = self.entries.index(entry)
        del self.entries[at]
        self.first_changed = min(self.first_changed, at)

    def settle(self, ts_ns: int, most: int) -> None:
        """Write down who is where from now on, of the positions that may have changed."""
        first, self.first_changed = self.first_changed, UNCHANGED
        self.longest = max(self.longest, len(self.entries))
        after = self.entries[first:most]
        num_empty = max(self.num_shown - first - len(after), 0)
        self.num_shown = min(len(self.entries), most)
        if after or num_empty:
            self.times.append(ts_ns)
            self.firsts.append(first)
            self.counts.append(len(after) + num_empty)
            self.changed.extend(after)
            self.changed.extend([NO_ENTRY] * num_empty)

    def spans(self, requests: Ints) -> pl.DataFrame:
        """Which entry was at each position from when to when; `requests` are those of entries."""
        times, firsts, counts, changed = (
            np.array(each, np.int64)
            for each in (self.times, self.firsts, self.counts, self.changed)
        )
        before = np.cumsum(counts) - counts
        position = np.arange(len(changed)) + np.repeat(firsts - before, counts)
        order = np.argsort(position, kind="stable")
        position, from_ns = position[order], np.repeat(times, counts)[order]
        entry = changed[order]
        request = np.where(entry == NO_ENTRY, NO_ENTRY, requests[entry])
        is_new = np.ones(len(entry), np.bool_)
        is_new[1:] = (position[1:] != position[:-1]) | (request[1:] != request[:-1])
        position, from_ns, entry = position[is_new], from_ns[is_new], entry[is_new]
        to_ns = pl.Series(np.append(from_ns[1:], 0)[: len(entry)])
        goes_on = np.append(position[1:] != position[:-1], True)[: len(entry)]
        spans = pl.DataFrame({"position": position, "from_ns": from_ns, "entry": entry})
        spans = spans.with_columns(to_ns=to_ns.set(pl.Series(goes_on), None))
        return spans.filter(pl.col("entry") != NO_ENTRY).cast({"position": pl.Int32})


class _Queues:
    """The queues of a rank as its events change them.

    A request that enters again is another entry. `is_followed` tells that entering and leaving are
    recorded; else a sorting is all that is known of its queue.
    """

    def __init__(self, sortings: Sequence[_Sorting], most: int, *, is_followed: bool) -> None:
        self._sortings, self._most, self._is_followed = sortings, most, is_followed
        names = {each.queue for each in sortings}
        self._entered = names.pop() if len(names) == 1 else None
        """The queue that requests enter: which one is not recorded where there are several."""
        self._queues: dict[str | None, _Queue] = {}
        self._waiting: dict[int, tuple[_Queue, int]] = {}
        """The queue and the entry of each request that waits."""
        self._requests, self._refs = array("q"), array("q")

    def follow(self, events: pl.DataFrame) -> None:
        """Apply the events in their order, and write down after each moment who is where."""
        now = None
        for ts_ns, kind, number, index, ref in events.select(
            "ts_ns", "kind", "number", "index", "ref"
        ).iter_rows():
            if ts_ns != now:
                self._settle(now)
                now = ts_ns
            if kind == SORT:
                self._sort(self._sortings[number])
                continue
            self._leave(number)
            if kind == ENTER:
                queue, entry = self._queue_of(self._entered), self._entry(number, ref)
                end = len(queue.entries)
                queue.insert(end if index is None else min(max(index, 0), end), entry)
                self._waiting[number] = queue, entry
        self._settle(now)

    def queues(self, rank: int, names: pl.Series) -> Iterator[WaitingQueue]:
        """The queues with who was where in each; `names` are the requests by their numbers."""
        turn, ref = np.array(self._requests, np.int64), np.array(self._refs, np.int64)
        table = "lifecycle" if self._is_followed else "queue_order"
        for name, queue in sorted(self._queues.items(), key=lambda each: each[0] or ""):
            if queue.longest:
                yield WaitingQueue(
                    rank, name, table, queue.longest, min(queue.longest, self._most),
                    names.gather(turn), turn, ref, [queue.spans(turn)],
                )  # fmt: skip

    def _settle(self, ts_ns: int | None) -> None:
        for queue in self._queues.values():
            if ts_ns is not None and queue.first_changed != UNCHANGED:
                queue.settle(ts_ns, self._most)

    def _queue_of(self, name: str | None) -> _Queue:
        if name not in self._queues:
            self._queues[name] = _Queue()
        return self._queues[name]

    def _entry(self, number: int, ref: int) -> int:
        self._requests.append(number)
        self._refs.append(ref)
        return len(self._requests) - 1

    def _leave(self, number: int) -> None:
        place = self._waiting.pop(number, None)
        if place is not None:
            place[0].remove(place[1])

    def _sort(self, sorting: _Sorting) -> None:
        queue = self._queue_of(sorting.queue)
        queue.first_changed = 0
        if not self._is_followed:
            rows = dict(zip(sorting.requests, sorting.refs, strict=True))
            queue.entries = [self._entry(number, ref) for number, ref in rows.items()]
            return
        ordered = []
        for number in dict.fromkeys(sorting.requests):
            if number in self._waiting:
                where, entry = self._waiting[number]
                if where is not queue:
                    where.remove(entry)
                    queue.entries.append(entry)
                    self._waiting[number] = queue, entry
                ordered.append(entry)
        sorted_ones, following = set(ordered), iter(ordered)
        queue.entries = [next(following) if e in sorted_ones else e for e in queue.entries]
