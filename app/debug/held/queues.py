"""The waiting queue and the running requests at any place, by the events of `lifecycle`.

Where an engine sorts its queue anew, `queue_order` says how it stood then.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter

import polars as pl

from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.narrow_numbers import searched
from stepscope.ingest.derive.states import ENDS, ENTERS, LEAVES

KEYFRAME_EVERY = 1024
SORTED = "sorted anew"
"""Among the events of requests, that a queue was sorted; which one is where an index stands."""

Queue = tuple[str, ...]


class Queues:
    """Applies events in their order; with keyframes, so that a jump applies few.

    A request enters the waiting queue at the event's `queue_index` (at its end where an arrival or
    a preemption does not say), and leaves it when it is admitted, resumed or ended. Those of a
    queue that was sorted share the places that they had among all who wait. Keyframes lie further
    apart where queues are long: together they hold at most four ids an event.
    """

    def __init__(self, events: FlatRows, orders: FlatRows) -> None:
        """Take what `queue_events` gives."""
        self._events, self._orders = events, orders
        self._seq, self._order = events.numbers("seq"), orders.numbers("order")
        self._keyframes: list[tuple[int, Queue, Queue]] = [(0, (), ())]
        self._last = self._keyframes[0]

    def at(self, seq: int) -> tuple[Queue, Queue]:
        """Waiting and running after every event up to `seq`, and that."""
        wanted = searched(self._seq, seq, "right")
        if self._last[0] != wanted:
            self._last = (wanted, *self._after(wanted))
        return self._last[1:]

    def _after(self, wanted: int) -> tuple[Queue, Queue]:
        place = bisect_right(self._keyframes, wanted, key=itemgetter(0)) - 1
        first, waiting, running = self._keyframes[place]
        queues = _Moving(list(waiting), dict.fromkeys(running), set(waiting))
        rows = self._events.rows(range(first, wanted), ("request", "event", "queue_index"))
        for number, (request, event, index) in enumerate(rows, first):
            if event == SORTED:
                queues.sort(self._as_sorted(index))
            else:
                queues.apply(request, event, index)
            self._keep(number + 1, queues)
        return tuple(queues.waiting), tuple(queues.running)

    def _as_sorted(self, order: int) -> list[str]:
        first, last = searched(self._order, order), searched(self._order, order, "right")
        return [name for (name,) in self._orders.rows(range(first, last), ("request",))]

    def _keep(self, number: int, queues: _Moving) -> None:
        num_ids = len(queues.waiting) + len(queues.running)
        if number - self._keyframes[-1][0] >= max(KEYFRAME_EVERY, num_ids // 4):
            self._keyframes.append((number, tuple(queues.waiting), tuple(queues.running)))


def queue_events(
    lifecycle: pl.DataFrame, queue_order: pl.DataFrame | None = None
) -> dict[str, pl.DataFrame]:
    """The events of one rank's rows, in the order of their `seq`, and each queue that was sorted.

    The requests of such a queue bear its `order`, which is the `queue_index` of the event.
    """
    told = lifecycle.select("seq", "request", "event", "queue_index")
    if queue_order is None:
        return {
            "events": told.sort("seq", maintain_order=True),
            "orders": pl.DataFrame(schema={"order": pl.Int64, "request": pl.String}),
        }
    orders = _orders(queue_order)
    events = pl.concat([told, _as_events(orders)]).sort("seq", maintain_order=True)
    members = orders.select(pl.col("requests").alias("request")).with_row_index("order")
    return {"events": events, "orders": members.explode("request")}


def _orders(queue_order: pl.DataFrame) -> pl.DataFrame:
    """Each queue as it was sorted: requests, and the `seq` of the last that was told of it."""
    in_order = queue_order.sort("ts_ns", "queue", "index", maintain_order=True)
    queues = in_order.group_by("ts_ns", "queue", maintain_order=True)
    return queues.agg(pl.col("seq").max(), requests="request")


def _as_events(orders: pl.DataFrame) -> pl.DataFrame:
    number = pl.int_range(pl.len(), dtype=pl.Int32)
    return orders.select("seq", request=pl.lit(""), event=pl.lit(SORTED), queue_index=number)


@dataclass(slots=True)
class _Moving:
    """Queues on their way through the events; `queued` is who is in `waiting`."""

    waiting: list[str]
    running: dict[str, None]
    queued: set[str]

    def apply(self, request: str, event: str, index: int | None) -> None:
        """Take one event into account."""
        if event in LEAVES:
            self._dequeue(request)
            self.running[request] = None
        elif event in ENDS:
            self._dequeue(request)
            self.running.pop(request, None)
        elif event in ENTERS and not (event == "defer" and index is None):
            self.running.pop(request, None)
            self._dequeue(request)
            self.waiting.insert(len(self.waiting) if index is None else index, request)
            self.queued.add(request)

    def sort(self, requests: list[str]) -> None:
        """Put those of a queue into its order, in the places that they have."""
        ordered = [name for name in dict.fromkeys(requests) if name in self.queued]
        members, following = set(ordered), iter(ordered)
        self.waiting = [next(following) if name in members else name for name in self.waiting]

    def _dequeue(self, request: str) -> None:
        if request in self.queued:
            self.queued.remove(request)
            self.waiting.remove(request)
