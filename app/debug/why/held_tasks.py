"""Why a task of the device waits: for a task before it, for cores, or for its turn on a core."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.app.debug.why.at_position import View, proof
from stepscope.app.debug.why.chain import Link, Proof, Root, Subject
from stepscope.app.debug.why.links import Hop, unknown
from stepscope.app.debug.why.rows_by_name import Row
from stepscope.app.units import count
from stepscope.ingest.times import FAR_NS

SINGLE = ("core", "queue")
"""What a task on single cores waits for: a core of its kind, or those that go first."""
MOST_LOOKED_AT = 16
SYNC_START = "sync-start"
KINDS = {"AIC": ("AIC",), "AIV": ("AIV0", "AIV1"), "MIX": ("AIC", "AIV0", "AIV1")}


def of_task(view: View, who: Subject) -> Hop:
    """One hop from a task: to what it waits for, or to the root."""
    now, number = view.at.ts_ns, int(who.name)
    task = view.told.tasks.of(number)[0]
    name = f"{who} ({task['name']})" if task["name"] else str(who)
    if task["ts_ns"] is not None and task["ts_ns"] > now:
        says = f"it is submitted at {view.clock(task['ts_ns'])}"
        return _told(view, who, f"{name} is not there yet", task), Root(
            "not waiting", who, says, "", _proof("tasks", task)
        )
    before = [row for row in view.told.before.of(number) if _is_open(view, row["from_task"])]
    blocks = view.told.spans.of(number)
    if before and not any(span["ts_ns"] <= now for span in blocks):
        return _behind(view, who, name, task, before)
    open_ = [span for span in blocks if (span["end_ns"] or FAR_NS) > now]
    if blocks and not open_:
        ended = max(span["end_ns"] for span in blocks)
        says = f"its last block ended at {view.clock(ended)}"
        return _told(view, who, f"{name} has run", task), Root(
            "not waiting", who, says, "", _proof("core_spans", blocks[-1])
        )
    runs = [span for span in open_ if span["ts_ns"] <= now]
    if runs:
        return _running(view, who, name, runs)
    given = [span for span in open_ if (span["dispatch_ns"] or FAR_NS) <= now]
    return _given(view, who, name, given) if given else _ready(view, who, name, task, open_)


def _is_open(view: View, number: int) -> bool:
    """Whether a task is not known to have ended by now."""
    found = view.told.tasks.of(number)
    return bool(found) and (found[0]["retired_ns"] or FAR_NS) > view.at.ts_ns


def _behind(view: View, who: Subject, name: str, task: Row, before: list[Row]) -> Hop:
    """A task waits for the last of those before it."""
    ends = {
        row["from_task"]: view.told.tasks.of(row["from_task"])[0]["retired_ns"] or FAR_NS
        for row in before
    }
    last = max(ends, key=lambda number: ends[number])
    other = Subject("task", str(last))
    more = f" and {len(ends) - 1:,} more" if len(ends) > 1 else ""
    link = Link(
        who, f"{name} waits for {other}{more}, which it depends on",
        view.session.moments.position(task["ts_ns"]), _proof("tasks", task), "task",
        holder=other, num_holders=len(ends),
    )  # fmt: skip
    return link, other


def _running(view: View, who: Subject, name: str, runs: list[Row]) -> Hop:
    last = max(runs, key=lambda span: span["end_ns"] or FAR_NS)
    link = Link(who, f"{name} runs on core {last['core']}",
                view.session.moments.position(last["ts_ns"]),
                _proof("core_spans", last))  # fmt: skip
    if last["end_ns"] is None:
        says = f"its block {last['block']} began on core {last['core']} and never ended"
        return link, Root("silent", who, says, "what it waits for there", link.proof)
    says = f"{name} runs on core {last['core']} until {view.clock(last['end_ns'])}"
    return link, Root("running until", who, says, "a shorter block, or more cores", link.proof)


def _given(view: View, who: Subject, name: str, given: list[Row]) -> Hop:
    """It was dispatched, and has not begun: who runs on one of its cores, and how it came there."""
    cores = [span["core"] for span in given]
    on_them = [span for span in _running_now(view) if span["core"] in cores]
    holder = Subject("task", str(on_them[0]["task"])) if on_them else None
    admitted = [row for row in _decided(view, who) if row["verdict"] == "admitted"]
    shown = proof("decisions", admitted[-1]) if admitted else _proof("core_spans", given[0])
    row = admitted[-1] if admitted else {}
    link = Link(
        who, f"{name} was dispatched and has not begun: {row.get('reason') or 'not said why'}",
        view.session.moments.position(shown.ts_ns), shown, "core-group", row.get("needed"),
        row.get("available"), holder, len(on_them) or None, site=row.get("site"),
    )  # fmt: skip
    if holder is None:
        says = f"it was dispatched, and begins at {view.clock(given[0]['ts_ns'])}"
        return link, Root("running until", who, says, "a shorter dispatch", shown)
    if row.get("resource") in {None, *SINGLE}:
        return link, holder
    until = on_them[0]["end_ns"]
    ends = "and never ends" if until is None else f"until {view.clock(until)}"
    says = f"{row['reason']}: {holder} runs on core {on_them[0]['core']} {ends}"
    return link, Root("policy", who, says, "a look at all cores of the group", shown)


def _decided(view: View, who: Subject) -> list[Row]:
    return [row for row in view.told.about_tasks.of(who.name) if row["ts_ns"] <= view.at.ts_ns]


def _running_now(view: View) -> list[Row]:
    """The blocks that execute at the time of the position, the one that ends last first."""
    now = view.at.ts_ns
    runs = (pl.col("ts_ns") <= now) & (pl.col("end_ns").fill_null(FAR_NS) > now)
    rows = view.told.spans.rows.filter(runs)
    return rows.sort("end_ns", descending=True, nulls_last=False).to_dicts()


def _ready(view: View, who: Subject, name: str, task: Row, blocks: list[Row]) -> Hop:
    """It could run: who has its cores, and whether they were given to others meanwhile."""
    decided = _decided(view, who)
    put_back = next((row for row in reversed(decided) if row["verdict"] != "admitted"), None)
    row = put_back or {}
    resource = row.get("resource") or "core-group"
    holders = _ahead(view, task, row) if resource == "queue" else ()
    holders = holders or [str(span["task"]) for span in _on_its_cores(view, task)]
    ready = task["ready_ns"] if task["ready_ns"] is not None else task["ts_ns"]
    holder = Subject("task", holders[0]) if holders else None
    shown = _proof("tasks", task) if put_back is None else proof("decisions", put_back)
    link = Link(
        who, f"{name} is ready since {view.clock(ready)}{_in_queue(view, task)}: "
        f"{row.get('reason') or 'not begun'}",
        view.session.moments.position(shown.ts_ns), shown, resource, row.get("needed"),
        row.get("available"), holder, len(holders) or None, _no_more(row, holders),
        row.get("site"),
    )  # fmt: skip
    younger = 0 if resource in SINGLE else _overtaken(view, task, ready)
    if younger and put_back:
        says = (f"{count(younger)} blocks that were ready later were given cores of its kind "
                f"since: {row['reason']}")  # fmt: skip
        return link, Root("policy", who, says, "cores that are kept for it", shown)
    if holder is not None:
        return link, holder
    if not blocks and not decided:
        return link, unknown(who, "no decision about it, and no block of it")
    told = f"{row['reason']}; by now " if row.get("reason") else ""
    says = f"{told}cores of its kind are free, and it is not dispatched"
    return link, Root("policy", who, says, "a dispatcher that looks at it", shown)


def _ahead(view: View, task: Row, row: Row) -> list[str]:
    """Who goes first: whom the row names, and all who stand before the task in its queue.

    Where no queues are told, whom it names, or else who is the first that lacks a core.
    """
    named = row["holder"]
    if view.state.ready is not None:
        waiting = {str(each) for held in view.state.ready.values() for each in held}
        before = [str(each) for each in _queue_of(view, task)[1]]
        return [*([named] if named in waiting else []), *(n for n in before if n != named)]
    number = None if named is None else whole_number(named)
    if number is not None and _has_blocks_left(view, number):
        return [named]
    rows = view.told.about_tasks.rows
    first = rows.filter(
        (pl.col("ts_ns") <= view.at.ts_ns) & (pl.col("resource") == "core")
        & (pl.col("verdict") == "deferred") & (pl.col("subject") != str(task["task"]))
    )  # fmt: skip
    for name in reversed(first["subject"].tail(MOST_LOOKED_AT).to_list()):
        number = whole_number(name)
        if number is None:
            continue
        of_queue = view.told.tasks.of(number)
        if of_queue and of_queue[0]["shape"] == task["shape"] and _has_blocks_left(view, number):
            return [name]
    return []


def _queue_of(view: View, task: Row) -> tuple[str, tuple[int, ...]]:
    """The ready queue that a task stands in, and who stands before it there."""
    number = task["task"]
    for queue, held in (view.state.ready or {}).items():
        if number in held:
            return queue, held[: held.index(number)]
    return "", ()


def _in_queue(view: View, task: Row) -> str:
    """Where it stands among those that are ready; nothing where no queues are told."""
    queue, before = _queue_of(view, task)
    if not queue or queue == SYNC_START:
        return ", and nothing is placed before it" if queue else ""
    return (
        f", behind {count(len(before))} in the {queue} queue"
        if before
        else (f", first in the {queue} queue")
    )


def _has_blocks_left(view: View, number: int) -> bool:
    """Whether a task has blocks that no core was given by now."""
    found = view.told.tasks.of(number)
    spans = view.told.spans.of(number)
    now = view.at.ts_ns
    given = {row["block"] for row in spans if (row["dispatch_ns"] or row["ts_ns"]) <= now}
    return bool(found) and len(given) < (found[0]["num_blocks"] or 0)


def _no_more(row: Row, holders: Sequence[str]) -> str | None:
    """Whom a row names, where that one is not in the way any more."""
    named = row.get("holder")
    is_there = named is None or named in holders or not named.isdecimal()
    return None if is_there or not holders else f"task {named}"


def _on_its_cores(view: View, task: Row) -> list[Row]:
    """The blocks that run on cores of the kinds that a task needs."""
    kinds = KINDS.get(task["shape"], ())
    return [
        span
        for span in _running_now(view)
        if span["core_kind"] in kinds and span["task"] != task["task"]
    ]


def _overtaken(view: View, task: Row, ready: int) -> int:
    """How many blocks that were ready later got a core of its kinds before it."""
    given = pl.coalesce("dispatch_ns", "ts_ns")
    is_later = (pl.col("ready_ns") > ready) & (given > ready) & (given <= view.at.ts_ns)
    is_alike = pl.col("core_kind").is_in(KINDS.get(task["shape"], ()))
    is_other = pl.col("task") != task["task"]
    return len(view.told.spans.rows.filter(is_later, is_alike, is_other))


def of_core(view: View, who: Subject) -> Hop:
    """One hop from a core: to the task that has it."""
    slots = (view.state.cores or {}).get(int(who.name))
    if slots is None:
        return Link(who, f"{who} is not told of", view.at), unknown(who, "what it holds")
    block = slots.running or slots.pending
    if block is None:
        link = Link(who, f"{who} is idle", view.at)
        return link, Root("not waiting", who, "no block was dispatched to it", "")
    other = Subject("task", str(block[0]))
    verb = "runs" if slots.state == "running" else "is held for"
    span = next(iter(view.told.spans.of(block[0])), None)
    shown = None if span is None else _proof("core_spans", span)
    return Link(who, f"{who} {verb} a block of {other}", view.at, shown, holder=other), other


def _told(view: View, who: Subject, says: str, task: Row) -> Link:
    return Link(who, says, view.session.moments.position(task["ts_ns"]), _proof("tasks", task))


def _proof(table: str, row: Row) -> Proof:
    return Proof(table, row["step"], row["ts_ns"])
