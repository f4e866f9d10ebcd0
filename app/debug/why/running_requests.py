"""A request that is in the batch: until when it runs, or what its step itself waits for."""

from __future__ import annotations

import polars as pl

from stepscope.app.debug.why.at_position import View, proof
from stepscope.app.debug.why.chain import Link, Root, Subject
from stepscope.app.debug.why.links import Hop, unknown
from stepscope.app.debug.why.rows_by_name import Row
from stepscope.ingest.derive.states import ENDS


def in_batch(view: View, who: Subject, moved: Row | None) -> Hop:
    """Where a chain ends at one that runs: with when it ends, as the trace tells it."""
    step = view.step_row(view.at.step)
    batch = None if step or moved else view.last_batch(who.name)
    rows = {"steps": step, "lifecycle": moved, "batch_rows": batch}
    shown = next((proof(table, row) for table, row in rows.items() if row), None)
    link = Link(who, f"{who} runs in step {view.at.step}", view.at, shown)
    rank = Subject("rank", str(view.told.rank))
    if step and step["dur_ns"] is None and _is_stuck(view):
        return link, rank
    if step and step["dur_ns"] is None and _is_last(view):
        says = f"step {view.at.step} began and is not told to have ended"
        return link, Root("silent", who, says, "an executor that ends, or a watchdog", shown)
    ends = view.later(who.name, (*ENDS, "preempt"))
    if ends is None:
        return link, unknown(who, f"{who} runs, and its end is not recorded")
    what = "it is preempted" if ends["event"] == "preempt" else f"its {ends['event']}"
    says = f"{who} runs until {view.clock(ends['ts_ns'])}, {what} in step {ends['step']}"
    return link, Root("running until", who, says, f"an earlier end of {who}, or more room",
                      proof("lifecycle", ends))  # fmt: skip


def _is_stuck(view: View) -> bool:
    """Whether the rank is in a collective that it never left."""
    rows = view.told.collectives.filter(pl.col("rank") == view.told.rank).tail(1)
    return bool(len(rows)) and rows["dur_ns"][0] is None and _is_last(view)


def _is_last(view: View) -> bool:
    steps = view.session.moments.steps
    return bool(steps) and steps[-1] == view.at.step
