"""Why a request was not in a batch: what the engine wrote down about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.app.debug.engine_state import State
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.held.flat_rows import FlatRows, searched
from stepscope.ingest.derive.order import Order
from stepscope.ingest.derive.states import ENTERS, LEAVES
from stepscope.ingest.times import EARLIEST_NS

IN_FAVOUR = ("admitted", "chosen")
MAX_REASONS = 8
SOUGHT = {"decisions": "request", "turns": "request"}
"""By whom rows of these tables are looked for."""
FEW_ROWS = 4096
COLUMNS = [
    "verdict", "reason", "resource", "needed", "available", "holder", "instead", "ts_ns", "step",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A decision about a request; all but `request` is None where nothing was recorded.

    `is_running` tells a request that was admitted, and is not in the batch, from one that waits.
    """

    request: str
    verdict: str | None = None
    reason: str | None = None
    resource: str | None = None
    needed: int | None = None
    available: int | None = None
    holder: str | None = None
    instead: str | None = None
    ts_ns: int | None = None
    step: int | None = None
    is_running: bool = False


class Reasons:
    """The recorded decisions about the requests of a rank."""

    def __init__(self, decisions: FlatRows, turns: FlatRows) -> None:
        """Take what `told_reasons` gives."""
        self._decisions, self._turns = decisions, turns
        self._latest_ns = decisions.numbers("latest_ns")

    def about(self, request: str, seq: int) -> list[LeftOut]:
        """What was decided about a request by a place in the order, the last decision first."""
        until = _num_by(self._decisions, seq)
        places = self._decisions.texts("request").places_of([request], 0, until)
        last = self._decisions.rows(places[::-1][:MAX_REASONS], ("request", *COLUMNS))
        return [LeftOut(*row) for row in last]

    def left_out(self, state: State) -> list[LeftOut]:
        """Everyone who waits, in order of the queue, then who runs and is not in the batch.

        With each goes the last decision about it since it began to wait or run: that one holds.
        """
        seated = {entry.request for entry in state.batch or ()}
        unseated = [name for name in state.running or () if name not in seated]
        holding = self._holding([*(state.waiting or ()), *unseated], state.seq or BEFORE_ALL)
        return [
            *(holding.get(name, LeftOut(name)) for name in state.waiting or ()),
            *(_as_running(holding.get(name, LeftOut(name))) for name in unseated),
        ]

    def _holding(self, requests: Sequence[str], seq: int) -> dict[str, LeftOut]:
        """The last decision about each since its turn began, of those that still hold."""
        began = _last_of(requests, self._turns, ("request", "since"), _num_by(self._turns, seq))
        since = [began.get(name, (name, EARLIEST_NS))[1] for name in requests]
        # What was decided before anybody's turn holds of nobody, and need not be looked at.
        first = searched(self._latest_ns, min(since, default=EARLIEST_NS))
        until = _num_by(self._decisions, seq)
        last = _last_of(requests, self._decisions, ("request", *COLUMNS), until, first)
        known = {name: LeftOut(*row) for name, row in last.items()}
        return {
            name: known[name]
            for name, since_ns in zip(requests, since, strict=True)
            if name in known and _holds(known[name], since_ns)
        }


def _holds(left: LeftOut, since_ns: int) -> bool:
    is_since = left.ts_ns is not None and left.ts_ns >= since_ns
    return is_since and left.verdict is not None and left.verdict not in IN_FAVOUR


def told_reasons(order: Order) -> dict[str, pl.DataFrame]:
    """What was decided about the requests of a rank, and since when each waited or ran."""
    decisions = order.rows("decisions", ("subject", *COLUMNS, "subject_kind"))
    about = decisions.filter(pl.col("subject_kind") == "request").rename({"subject": "request"})
    turns = order.rows("lifecycle", ("request", "ts_ns", "event"))
    begun = turns.filter(pl.col("event").is_in([*ENTERS, *LEAVES]))
    return {
        "decisions": about.select("request", "seq", *COLUMNS, latest_ns=pl.col("ts_ns").cum_max()),
        "turns": begun.select("request", "seq", since="ts_ns"),
    }


def _num_by(rows: FlatRows, seq: int) -> int:
    return searched(rows.numbers("seq"), seq, "right")


def _last_of(
    requests: Sequence[str], rows: FlatRows, columns: Sequence[str], num: int, first: int = 0
) -> dict[str, tuple[Any, ...]]:
    """The last of the rows from `first` to before `num` of each request.

    They are looked for from behind: most were told lately.
    """
    found: dict[str, tuple[Any, ...]] = {}
    missing, width = set(requests), FEW_ROWS
    while missing and num > first:
        places = rows.texts("request").places_of([*missing], max(first, num - width), num)
        found |= {row[0]: row for row in rows.rows(places, columns)}
        missing -= found.keys()
        num, width = num - width, width * 8
    return found


def _as_running(left: LeftOut) -> LeftOut:
    return LeftOut(
        left.request, left.verdict, left.reason, left.resource, left.needed, left.available,
        left.holder, left.instead, left.ts_ns, left.step, is_running=True,
    )  # fmt: skip
