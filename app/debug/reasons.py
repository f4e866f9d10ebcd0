"""Why a request was not in a batch: what the engine wrote down about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.app.debug.engine_state import State
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.narrow_numbers import Numbers, searched
from stepscope.ingest.derive.order import Order
from stepscope.ingest.derive.states import ENTERS, LEAVES
from stepscope.ingest.frames import only
from stepscope.ingest.times import EARLIEST_NS

IN_FAVOUR = ("admitted", "chosen")
MAX_REASONS = 8
SOUGHT = {"decisions": "request", "lifecycle": "request"}
"""By whom rows of these tables are looked for."""
BEGINS = frozenset((*ENTERS, *LEAVES))
"""Events with which a request begins to wait or to run."""
EVENTS = ["request", "seq", "step", "ts_ns", "event", "cause", "by_request"]
COLUMNS = [
    "verdict", "reason", "resource", "needed", "available", "holder", "instead", "ts_ns", "step",
    "site",
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
    site: str | None = None
    is_running: bool = False


class Reasons:
    """The recorded decisions about the requests of a rank."""

    def __init__(self, decisions: FlatRows, lifecycle: FlatRows) -> None:
        """Take what `told_reasons` gives."""
        self.decisions, self.lifecycle = decisions, lifecycle

    def about(self, request: str, seq: int) -> list[LeftOut]:
        """What was decided about a request by a place in the order, the last decision first."""
        places = self._decided(request, seq)[::-1][:MAX_REASONS]
        return [LeftOut(*row) for row in self.decisions.rows(places, ("request", *COLUMNS))]

    def knows(self, request: str) -> bool:
        """Whether anything is told to have happened to a request."""
        return len(self.lifecycle.places_of("request", request)) > 0

    def left_out(self, state: State) -> list[LeftOut]:
        """Everyone who waits, in order of the queue, then who runs and is not in the batch.

        With each goes the last decision about it since it began to wait or run: that one holds.
        """
        seated = {entry.request for entry in state.batch or ()}
        unseated = [name for name in state.running or () if name not in seated]
        holding = self.holding([*(state.waiting or ()), *unseated], state)
        return [
            *(holding.get(name, LeftOut(name)) for name in state.waiting or ()),
            *(_as_running(holding.get(name, LeftOut(name))) for name in unseated),
        ]

    def holding(self, requests: Sequence[str], state: State) -> dict[str, LeftOut]:
        """The last decision about each since its turn began, of those that hold in a state."""
        seq = state.seq or BEFORE_ALL
        num_by_then = _num_by(self.decisions, seq)
        last = self.decisions.last_of("request", requests, lambda places: places < num_by_then)
        rows = self.decisions.rows((at for at in last if at >= 0), ("request", *COLUMNS))
        told = [LeftOut(*row) for row in rows]
        since = self._since([left.request for left in told], seq)
        return {
            left.request: left
            for left, since_ns in zip(told, since, strict=True)
            if _holds(left, since_ns)
        }

    def _decided(self, request: str, seq: int) -> Numbers:
        """Which decisions are about a request, by a place in the order."""
        places = self.decisions.places_of("request", request)
        return places[: searched(places, _num_by(self.decisions, seq))]

    def _since(self, requests: Sequence[str], seq: int) -> list[int]:
        """When each began to wait or run, by a place in the order."""
        if not requests:
            return []
        events, num_by_then = self.lifecycle.texts("event"), _num_by(self.lifecycle, seq)
        last = self.lifecycle.last_of(
            "request",
            requests,
            lambda places: events.are_among(BEGINS, places) & (places < num_by_then),
        )
        times = iter(self.lifecycle.rows((at for at in last if at >= 0), ("ts_ns",)))
        return [EARLIEST_NS if at < 0 else next(times)[0] for at in last]


def _holds(left: LeftOut, since_ns: int) -> bool:
    is_since = left.ts_ns is not None and left.ts_ns >= since_ns
    return is_since and left.verdict is not None and left.verdict not in IN_FAVOUR


def told_reasons(order: Order) -> dict[str, pl.DataFrame]:
    """What was decided about the requests of a rank, and what happened to them."""
    decisions = order.rows("decisions", ("subject", *COLUMNS, "subject_kind"))
    is_about = decisions["subject_kind"] == "request"
    about = only(decisions.drop("subject_kind"), is_about).rename({"subject": "request"})
    lifecycle = order.rows("lifecycle", EVENTS)
    return {"decisions": about.select("request", "seq", *COLUMNS), "lifecycle": lifecycle}


def _num_by(rows: FlatRows, seq: int) -> int:
    return searched(rows.numbers("seq"), seq, "right")


def _as_running(left: LeftOut) -> LeftOut:
    return LeftOut(
        left.request, left.verdict, left.reason, left.resource, left.needed, left.available,
        left.holder, left.instead, left.ts_ns, left.step, left.site, is_running=True,
    )  # fmt: skip
