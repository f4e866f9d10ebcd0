"""Why a rank waits: the collective that it is in, and which rank has not joined it.

Without any collective, the request of the rank that has waited longest.
"""

from __future__ import annotations

from typing import Any, cast

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.app.debug.why.at_position import View
from stepscope.app.debug.why.chain import Link, Proof, Root, Subject
from stepscope.app.debug.why.links import Hop, unknown
from stepscope.app.debug.why.subjects import subjects_of

Collective = dict[str, Any]


def of_rank(view: View, who: Subject) -> Hop:
    """One hop from a rank: to the rank that it waits for, or to what it does."""
    inside = entered(view, int(who.name))
    if inside is None:
        return _computes(view, who)
    what = f"{inside['op']} {inside['command'] or ''}".rstrip()
    late = _last_to_join(view, inside)
    link = Link(
        who, f"{who} waits in {what} (number {inside['ordinal']} of {_group(inside)})",
        view.session.moments.position(inside["ts_ns"]), _proof(inside), "collective",
        holder=None if late is None else Subject("rank", str(late[0])),
    )  # fmt: skip
    if late is None:
        return link, _until(view, who, inside, what)
    rank, joins = late
    other = Subject("rank", str(rank))
    if joins is None and entered(view, rank) is not None:
        return link, other
    says = f"{other} {_joins(view, joins)} {what}; {_doing(view, rank)}"
    return link, Root("another rank", other, says, f"{other} joining it sooner",
                      _proof(inside if joins is None else joins))  # fmt: skip


def entered(view: View, rank: int) -> Collective | None:
    """The collective that a rank is in at the time of the position; None where it is in none.

    Once a rank is in one for ever, those that never leave their last one are taken to be in it.
    """
    now, rows = view.at.ts_ns, view.told.collectives
    own = rows.filter(pl.col("rank") == rank)
    stuck_ns = rows.filter(pl.col("dur_ns").is_null())["ts_ns"].min()
    is_stuck = stuck_ns is not None and now >= cast("int", stuck_ns)
    last = next(own.filter(pl.col("ts_ns") <= now).tail(1).iter_rows(named=True), None)
    final = next(own.tail(1).iter_rows(named=True), None)
    if is_stuck and final is not None and final["dur_ns"] is None:
        return final
    if last is None or last["dur_ns"] is None or last["ts_ns"] + last["dur_ns"] <= now:
        return None
    return last


def _last_to_join(view: View, inside: Collective) -> tuple[int, Collective | None] | None:
    """The rank that has not joined by now, and its own row if it ever does; None if all have."""
    rows = view.told.collectives
    alike = pl.all_horizontal(
        pl.col(name).eq_missing(pl.lit(inside[name], rows.schema[name]))
        for name in ("group", "stream", "ordinal", "op", "command")
    )
    joined = {row["rank"]: row for row in rows.filter(alike).iter_rows(named=True)}
    late = [
        (rank, joined.get(rank))
        for rank in _expected(view, inside)
        if rank != inside["rank"] and (rank not in joined or joined[rank]["ts_ns"] > view.at.ts_ns)
    ]
    never = [each for each in late if each[1] is None]
    return max(never or late, key=lambda each: (each[1] or inside)["ts_ns"], default=None)


def _expected(view: View, inside: Collective) -> list[int]:
    named = str(inside["expected_ranks"] or "").split(",")
    numbers = (whole_number(rank.strip()) for rank in named)
    ranks = [rank for rank in numbers if rank is not None]
    rows = view.told.collectives
    is_of_group = pl.col("group").eq_missing(pl.lit(inside["group"], rows.schema["group"]))
    return ranks or sorted(rows.filter(is_of_group)["rank"].unique())


def _joins(view: View, joins: Collective | None) -> str:
    if joins is None:
        return "never joins"
    return f"comes only at {view.clock(joins['ts_ns'])} to"


def _doing(view: View, rank: int) -> str:
    """What a rank did last before the time of the position, as its collectives tell it."""
    now = view.at.ts_ns
    before = view.told.collectives.filter(pl.col("rank") == rank, pl.col("ts_ns") <= now).tail(1)
    last = next(before.iter_rows(named=True), None)
    if last is None:
        return "it has joined none before"
    what = f"{last['op']} {last['command'] or ''}".rstrip()
    return f"it left {what} at {view.clock(last['ts_ns'] + (last['dur_ns'] or 0))} and computes"


def _until(view: View, who: Subject, inside: Collective, what: str) -> Root:
    """All have joined, or nobody else is told of."""
    if inside["dur_ns"] is None:
        return unknown(who, f"all have joined {what}, and its end")
    says = f"all have joined {what}, until {view.clock(inside['ts_ns'] + inside['dur_ns'])}"
    return Root("running until", who, says, "less to send", _proof(inside))


def _computes(view: View, who: Subject) -> Hop:
    if not len(view.told.collectives):
        return _longest_waiting(view, who)
    link = Link(who, f"{who} is in no collective", view.at)
    step = view.step_row(view.at.step) if int(who.name) == view.told.rank else {}
    if step and step["dur_ns"] is not None:
        says = (
            f"it computes step {step['step']}, until {view.clock(step['ts_ns'] + step['dur_ns'])}"
        )
        shown = Proof("steps", step["step"], step["ts_ns"], step["seq"])
        return link, Root("running until", who, says, "a shorter step", shown)
    return link, Root("not waiting", who, "it is in no collective here", "")


def _longest_waiting(view: View, who: Subject) -> Hop:
    """Where no collective is recorded: to the request of the rank that has waited longest."""
    waits = view.told.waits
    if not len(view.told.lifecycle):
        link = Link(who, f"no collective and no request of {who} is recorded", view.at)
        says = "why follows requests, tasks, cores, and ranks in collectives"
        return link, Root("not recorded", who, says, subjects_of(view.told))
    now = waits.filter(pl.col("from_ns") <= view.at.ts_ns, pl.col("to_ns") > view.at.ts_ns)
    if now.is_empty():
        says = f"none of {times(len(view.told.lifecycle.names()), 'request')} waits here"
        link = Link(who, f"no request of {who} waits", view.at)
        return link, Root("not waiting", who, says, subjects_of(view.told))
    name, from_ns, _ = now.row(0)
    says = (
        f"{times(now.height, 'request')} of {who} wait{'s' if now.height == 1 else ''} here, "
        f"{name} longest, since {view.clock(from_ns)}"
    )
    return Link(who, says, view.at), Subject("request", name)


def _group(inside: Collective) -> str:
    return f"group {inside['group']}" if inside["group"] else "its group"


def _proof(row: Collective) -> Proof:
    return Proof("collectives", row["step"], row["ts_ns"])
