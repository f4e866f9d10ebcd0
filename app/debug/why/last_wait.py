"""Where somebody waited last: the position to ask at where none is given."""

from __future__ import annotations

from typing import cast

import numpy as np
import polars as pl

from stepscope.app.debug.moments import Position
from stepscope.app.debug.session import Session
from stepscope.app.debug.why.chain import Subject
from stepscope.app.debug.why.evidence import Evidence
from stepscope.app.debug.why.subjects import subject_of
from stepscope.app.debug.why.waiting_requests import IN_FAVOUR
from stepscope.ingest.derive.states import ENDS, LEAVES


def last_wait(session: Session, subject: str) -> Position:
    """The position before somebody's last wait ended; the end of the rank where it never did."""
    told = Evidence.of(session)
    who = subject_of(told, subject)
    if who.kind == "request":
        return _of_request(session, told, who)
    times = session.moments.event_ns
    end_ns = int(times[-1]) if len(times) else session.position.ts_ns
    if who.kind == "task":
        spans = told.spans.of(int(who.name))
        begun = [span["ts_ns"] for span in spans if span["ts_ns"] is not None]
        return session.moments.position(min(begun) - 1 if begun else end_ns)
    if who.kind == "rank" and not len(told.collectives) and len(told.waits):
        lasted = pl.col("to_ns") - pl.col("from_ns")
        longest = told.waits.sort(lasted, descending=True, maintain_order=True)
        return session.moments.position(longest["to_ns"][0] - 1)
    inside = told.collectives.filter(pl.col("rank") == told.rank)["ts_ns"].max()
    is_later = who.kind == "rank" and inside is not None
    return session.moments.position(max(end_ns, cast("int", inside)) if is_later else end_ns)


def _of_request(session: Session, told: Evidence, who: Subject) -> Position:
    """Where it was still waiting before it was let in last, or before it ended."""
    rows = told.lifecycle.of(who.name)
    moves = [row for row in rows if row["event"] in (*LEAVES, *ENDS)]
    let_in = [row for row in moves if row["event"] in LEAVES]
    last = next(reversed(let_in or moves), None)
    if moves and moves[-1]["event"] == "reject":
        return session.moments.at_seq(moves[-1]["seq"])
    is_first = last is not None and last["seq"] == min(row["seq"] for row in rows)
    if is_first and moves[-1]["event"] in ENDS:  # nothing tells how long it waited before
        return session.moments.at_seq(moves[-1]["seq"])
    if not rows and (before := _before_it_ran(session, told, who)) is not None:
        return before
    if last is None or is_first:
        ends = session.moments.changes.ends()
        return session.moments.at_seq(ends[1]) if ends else session.position
    came = max((row["seq"] for row in rows if row["seq"] < last["seq"]), default=last["seq"])
    place = int(np.searchsorted(session.moments.step_seq, last["seq"])) - 1
    if place >= 0 and session.moments.step_seq[place] >= came:
        return session.moments.at_step(place)
    return session.moments.at_seq(last["seq"] - 1)


def _before_it_ran(session: Session, told: Evidence, who: Subject) -> Position | None:
    """Where no event is recorded: before the first batch after it was last left out."""
    left_out = [
        row["step"]
        for row in told.about_requests.of(who.name)
        if row["step"] is not None and row["verdict"] not in IN_FAVOUR
    ]
    own = (pl.col("request") == who.name) & (pl.col("rank") == told.rank)
    later = pl.col("step") > max(left_out, default=0)
    ran = session.trace.batch_rows.filter(own, later).select(pl.col("step").min()).collect().item()
    place = None if ran is None else session.moments.place_of(ran)
    return session.moments.at_step(place - 1) if place and left_out else None
