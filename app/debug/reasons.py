"""Why a request was not in a batch: what the engine wrote down about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from stepscope.app.debug.engine_state import State
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.ingest.derive.order import Order
from stepscope.ingest.derive.states import ENTERS, LEAVES

IN_FAVOUR = ("admitted", "chosen")
MAX_REASONS = 8
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

    def __init__(self, order: Order) -> None:
        decisions = order.rows("decisions", ("subject", *COLUMNS, "subject_kind"))
        self._decisions = (
            decisions.filter(pl.col("subject_kind") == "request")
            .rename({"subject": "request"})
            .drop("subject_kind")
        )
        turns = order.rows("lifecycle", ("request", "ts_ns", "event"))
        self._turns = turns.filter(pl.col("event").is_in([*ENTERS, *LEAVES])).select(
            "request", "seq", since="ts_ns"
        )

    def about(self, request: str, seq: int) -> list[LeftOut]:
        """What was decided about a request by a place in the order, the last decision first."""
        known = self._decisions.filter(pl.col("seq") <= seq, pl.col("request") == request)
        last = known.drop("seq").tail(MAX_REASONS).reverse()
        return [LeftOut(*row) for row in last.iter_rows()]

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

    def _holding(self, requests: Iterable[str], seq: int) -> dict[str, LeftOut]:
        wanted = pl.DataFrame({"request": list(requests)}, schema={"request": pl.String})
        turns = self._turns.filter(pl.col("seq") <= seq).join(wanted, on="request", how="semi")
        known = self._decisions.filter(pl.col("seq") <= seq).drop("seq")
        last = known.join(wanted, on="request", how="semi").unique(
            "request", keep="last", maintain_order=True
        )
        since = turns.drop("seq").unique("request", keep="last", maintain_order=True)
        holds = (pl.col("ts_ns") >= pl.col("since").fill_null(pl.col("ts_ns"))) & ~pl.col(
            "verdict"
        ).is_in(IN_FAVOUR)
        rows = last.join(since, on="request", how="left", maintain_order="left").filter(holds)
        return {row[0]: LeftOut(*row) for row in rows.drop("since").iter_rows()}


def _as_running(left: LeftOut) -> LeftOut:
    return LeftOut(
        left.request, left.verdict, left.reason, left.resource, left.needed, left.available,
        left.holder, left.instead, left.ts_ns, left.step, is_running=True,
    )  # fmt: skip
