"""Who stands in which ready queue of a device, in the order in which the next pass looks at them.

A task stands behind all that came before it, and of those that came in one instant the one with the
lower number goes first; `ready_order` lists a queue where that is not so. What a step brings about
is there once its batch has been formed, which is where a session stands at a step.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.narrow_numbers import searched
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

TASK_COLUMNS = ("step", "task", "queue", "queued_ns", "dequeued_ns")
LISTED_COLUMNS = ("step", "ts_ns", "queue", "index", "task")
STAY = ("queue", "task", "from_ns", "to_ns", "last_to_ns")
Queues = dict[str, tuple[int, ...]]


class ReadyQueues:
    """Answers for any time, behind all that happened then."""

    def __init__(self, stays: FlatRows) -> None:
        """Take what `stays_of` gives."""
        self._stays = stays
        self._from, self._to = stays.numbers("from_ns"), stays.numbers("to_ns")
        self._last_to = stays.numbers("last_to_ns")

    def at(self, ts_ns: int) -> Queues:
        """The tasks of each queue that has any, the first of it first."""
        first = searched(self._last_to, ts_ns, "right")
        window = slice(first, searched(self._from, ts_ns, "right"))
        there = first + np.flatnonzero(self._to[window] > ts_ns)
        return _by_queue(self._stays.rows(there, ("queue", "task")))


def stays_of(tasks: pl.DataFrame, listed: pl.DataFrame, formed: pl.DataFrame) -> pl.DataFrame:
    """From when to when a task stood where it stood in a queue, in the order of the queues.

    `tasks` and `listed` are of one rank, and have TASK_COLUMNS and LISTED_COLUMNS; `formed` has
    `step`, and `ts_ns`, at which its batch was formed.
    """
    came = tasks.drop_nulls(("task", "queue", "queued_ns")).select(
        "step", "task", "queue", at_ns="queued_ns", is_listed=pl.lit(0), place=pl.col("task")
    )
    moved = listed.drop_nulls(("task", "queue", "ts_ns", "index")).select(
        "step", "task", "queue", at_ns="ts_ns", is_listed=pl.lit(1),
        place=pl.col("index").cast(pl.Int64),
    )  # fmt: skip
    left = tasks.drop_nulls("task").select("task", "dequeued_ns").unique("task", keep="first")
    begins = formed.select("step", begins_ns=pl.col("ts_ns") + 1).unique("step", keep="first")
    order = ("at_ns", "is_listed", "place")
    stays = pl.concat([came, moved]).sort(order).join(left, on="task", how="left")
    next_ns = pl.col("at_ns").shift(-1).over("task")
    return (
        stays.join(begins, on="step", how="left", maintain_order="left")
        .with_columns(
            from_ns=pl.max_horizontal("at_ns", "begins_ns"),
            to_ns=pl.min_horizontal(next_ns, "dequeued_ns").fill_null(FAR_NS),
        )
        .filter(pl.col("from_ns") < pl.col("to_ns"))
        .sort("from_ns", *order)
        .with_columns(last_to_ns=pl.col("to_ns").cum_max())
        .select(STAY)
    )


def ready_at(trace: Trace, rank: int, ts_ns: int) -> Queues | None:
    """The queues of a rank at a time, without a session; None where the trace does not tell."""
    if not tells_of_queues(trace, rank):
        return None
    of_rank = pl.col("rank") == rank
    is_there = (pl.col("queued_ns") <= ts_ns) & (pl.col("dequeued_ns").fill_null(FAR_NS) > ts_ns)
    tasks = trace.tasks.filter(of_rank, is_there).select(TASK_COLUMNS).collect()
    listed = trace.ready_order.filter(of_rank, pl.col("ts_ns") <= ts_ns).select(LISTED_COLUMNS)
    theirs = listed.filter(pl.col("task").is_in(tasks["task"].implode())).collect()
    never = pl.DataFrame(schema={"step": pl.Int64, "ts_ns": pl.Int64})
    stays = stays_of(tasks, theirs, never).filter(
        pl.col("from_ns") <= ts_ns, pl.col("to_ns") > ts_ns
    )
    return _by_queue(stays.select("queue", "task").rows())


def tells_of_queues(trace: Trace, rank: int) -> bool:
    """Whether a rank tells when its tasks came into their queues: one that does not is unknown.

    Where tasks ran and none of them left its queue, that was not recorded.
    """
    told = trace.tasks.filter(pl.col("rank") == rank).select(
        pl.col("queue", "queued_ns", "dequeued_ns").is_not_null().any(),
        ran=(pl.col("outcome") == "run").any(),
    )
    queue, queued, dequeued, ran = told.collect().row(0)
    return bool(queue and queued and (dequeued or not ran))


def _by_queue(rows: list[tuple[str, int]]) -> Queues:
    found: dict[str, list[int]] = {}
    for queue, task in rows:
        found.setdefault(queue, []).append(task)
    return {queue: tuple(held) for queue, held in found.items()}
