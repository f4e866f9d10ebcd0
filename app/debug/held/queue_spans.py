"""The waiting queue and the running requests at any place, where nobody comes into the middle.

A request waits or runs from an event until its next. Where each joins the queue at an end, as in
most engines, these spans and the order in which they began are all that there is to know: a jump to
any place costs the same, and nothing has to be applied on the way.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.held.by_name import ByName
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.following import Places, by_group, codes, next_of_group, seq_of
from stepscope.app.debug.held.narrow_numbers import NEVER, searched, within
from stepscope.ingest.derive.states import ENDS, ENTERS, LEAVES

WAITS, RUNS, ENDED = 1, 2, 3
KINDS = {
    **dict.fromkeys(ENTERS, WAITS), **dict.fromkeys(LEAVES, RUNS), **dict.fromkeys(ENDS, ENDED),
}  # fmt: skip
Kinds = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]
Queue = tuple[str, ...]


class QueueSpans:
    """Waiting and running requests at any place in the order of their events."""

    def __init__(self, waiting: FlatRows, running: FlatRows) -> None:
        """Take what `queue_spans` gives."""
        self._waiting, self._running = _Spans(waiting), _Spans(running)

    def at(self, seq: int) -> tuple[Queue, Queue]:
        """Waiting and running after every event up to `seq`, and that."""
        return self._waiting.at(seq), self._running.at(seq)


class _Spans:
    """Spans of requests, in the order of the events at which they began."""

    def __init__(self, spans: FlatRows) -> None:
        self._from, self._until = spans.numbers("from"), spans.numbers("until")
        self._rank, self._last_until = spans.numbers("rank"), spans.numbers("last_until")
        self._requests = spans.texts("request")

    def at(self, seq: int) -> Queue:
        """Whose span lasts behind a place, in the order of their ranks."""
        # All that began before `first` have ended by then.
        first = searched(self._last_until, within(self._last_until, seq), "right")
        last = searched(self._from, seq, "right")
        lasting = first + np.flatnonzero(self._until[first:last] > within(self._until, seq))
        in_order = lasting[np.argsort(self._rank[lasting], kind="stable")]
        return tuple(name or "" for name in self._requests.take(in_order.tolist()))


def queue_spans(
    lifecycle: pl.DataFrame, by_request: ByName | None = None
) -> dict[str, pl.DataFrame] | None:
    """The spans of one rank's rows, in the order of their `seq`: who waits, and who runs.

    None where a request was put into the middle of the queue: who stands there has to be known.
    `by_request` says which rows are of which request, where that was found before.
    """
    told = _with_kind(lifecycle)
    is_move = told["kind"] > 0
    events = told.filter(is_move)
    kind, seq = events["kind"].to_numpy(), events["seq"].to_numpy()
    if by_request is not None and by_request.is_exact[0]:
        order, is_first = _only(is_move.to_numpy(), *by_request.in_groups())
    else:
        order, is_first, _ = by_group(codes(events["request"]))
    before, began = _before(order, is_first, kind)
    joined = _joined_at(kind, before, events["queue_index"])
    if joined is None:
        return None
    spans = events.select("request").with_columns(
        pl.Series("from", seq),
        until=seq_of(next_of_group(order, is_first), seq),
        rank=np.where(kind == RUNS, began, joined),
    )
    of_kind = {"waiting": kind == WAITS, "running": kind == RUNS}
    return {
        name: spans.filter(pl.Series(is_of)).with_columns(last_until=pl.col("until").cum_max())
        for name, is_of in of_kind.items()
    }


def _with_kind(lifecycle: pl.DataFrame) -> pl.DataFrame:
    """Events with what a request does from then on; 0 for those that move it nowhere."""
    kind = pl.col("event").replace_strict(KINDS, default=0, return_dtype=pl.Int8)
    stays = (pl.col("event") == "defer") & pl.col("queue_index").is_null()
    moved = pl.when(~stays).then(kind).otherwise(0)
    return lifecycle.select("seq", "request", "queue_index", kind=moved)


def _only(is_wanted: Flags, order: Places, is_first: Flags) -> tuple[Places, Flags]:
    """The order of some rows alone, as `by_group` gives it, out of that of all."""
    if is_wanted.all():
        return order, is_first
    wanted = is_wanted[order]
    group = np.cumsum(is_first)[wanted]
    number = np.cumsum(is_wanted) - 1
    return number[order[wanted]], np.append(True, group[1:] != group[:-1])[: len(group)]


def _before(order: Places, is_first: Flags, kind: Kinds) -> tuple[Kinds, Places]:
    """By event: what its request did before it, and, of one that runs then, when it began to.

    0 where nothing was told before. Who runs already and is let in again keeps its place.
    """
    kinds = kind[order]
    befores = np.where(is_first, np.int8(0), np.roll(kinds, 1))
    before, began = np.empty_like(kind), np.arange(len(kind))
    before[order] = befores
    if ((befores == RUNS) & (kinds == RUNS)).any():
        begins = np.where(befores != RUNS, np.arange(len(kind)), 0)
        began[order] = order[np.maximum.accumulate(begins)]
    return before, began


def _joined_at(kind: Kinds, before: Kinds, queue_index: pl.Series) -> Places | None:
    """By event a rank in the queue: later ones come behind, those put at its front before all."""
    joins, leaves = kind == WAITS, before == WAITS
    number = np.arange(len(kind))
    if queue_index.null_count() == len(kind):
        return number
    # Those who wait without the one that joins.
    others = np.cumsum(joins.astype(np.int8) - leaves, dtype=np.int64) - joins
    index = queue_index.cast(pl.Int64).fill_null(NEVER).to_numpy()
    is_back = ~joins | (index >= others)
    if not (is_back | (index == 0)).all():
        return None
    return number if is_back.all() else np.where(is_back, number, -number - 1)
