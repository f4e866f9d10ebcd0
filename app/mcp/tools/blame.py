"""Where the time of requests went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from stepscope.app.mcp.answering.uncut import Answer, FrameRows, NotRecorded
from stepscope.app.mcp.tools.tool import Arguments, Tool, TraceName, text

if TYPE_CHECKING:
    from stepscope.analyzers.latency.blame import Blame
    from stepscope.app.mcp.desk.held_traces import HeldTrace, HeldTraces


class Blamed(Arguments, frozen=True):
    """Which trace, and whose latency."""

    trace: TraceName
    request: Annotated[
        str,
        text("One request, by its id or its client's id: its causes, and each of its waits with "
             "the reason that was recorded; empty for all, the slowest first.", 4_096),
    ] = ""  # fmt: skip


def _answer(held: HeldTraces, asked: Blamed) -> Answer:
    from stepscope.app.mcp.desk.recorded_by import lacks

    opened = held.trace(asked.trace)
    every = opened.blamed
    if asked.request and not every.names_requests:
        return Answer(
            {"trace": opened.name},
            not_recorded=(lacks("requests: the trace names none", "lifecycle", "batch_rows"),),
            notes=every.notes and ("without `request`, the whole run is split",),
        )
    if asked.request:
        return _one(opened, asked.request)
    lacking = [] if every.names_requests else [
        lacks("requests: the trace names none, so the whole run is split", "lifecycle")
    ]  # fmt: skip
    if every.requests.is_empty():
        lacking = [lacks("where any time went", "lifecycle", "steps")]
    lacking += _unknown(every)
    return Answer(
        {"trace": opened.name, **_totals(every)},
        _Requests(every),
        "requests, the slowest first: their causes add up to their latency",
        tuple(lacking),
        notes=("causes are explained by the command stepscope blame; idle and unknown is time that "
               "the trace does not explain",),
    )  # fmt: skip


def _one(opened: HeldTrace, shown: str) -> Answer:
    from stepscope.analyzers.latency.blame import blame
    from stepscope.app.mcp.answering.marked_text import named_as
    from stepscope.app.present.blame_reasons import reasons, waits_of

    names = opened.blamed.requests["request"].drop_nulls().unique().to_list()
    found = blame(opened.trace, named_as(shown, names))
    waits = waits_of(found.intervals)
    because = reasons(opened.trace, waits)
    rows = [
        {**row, "because": reason or None}
        for row, reason in zip(waits.to_dicts(), because, strict=True)
    ]
    return Answer(
        {"trace": opened.name, "requests": _told(found, 0, len(found.requests)), "to_know_first":
         list(found.notes)},
        rows,
        "waits, in order of time, with the recorded reason",
        tuple(_unknown(found)),
    )  # fmt: skip


def _unknown(blamed: Blame) -> list[NotRecorded]:
    """That some of the time is not explained."""
    from stepscope.app.mcp.desk.recorded_by import lacks

    unknown = int(blamed.requests["unknown_ns"].sum() or 0) if len(blamed.requests) else 0
    if not unknown:
        return []
    return [lacks(f"why {unknown:,} ns of these latencies passed", "decisions", "batch_rows")]


def _totals(blamed: Blame) -> dict[str, Any]:
    return {
        "num_requests": len(blamed.requests) if blamed.names_requests else None,
        "total_ns": blamed.total_ns,
        "causes": {
            each.cause.name: {
                "total_ns": each.total_ns,
                "share": round(each.share, 4),
                "requests": each.num_requests if blamed.names_requests else None,
                "each_ns": each.each_ns,
            }
            for each in blamed.totals()
        },
        "to_know_first": list(blamed.notes),
    }


def _told(blamed: Blame, first: int, last: int) -> list[dict[str, Any]]:
    """Some of the requests, in the order of the table, with the causes that took any time."""
    from stepscope.analyzers.latency.blame import ABOUT
    from stepscope.analyzers.latency.causes import CAUSES

    rows = FrameRows(blamed.requests)[first:last]
    return [
        {
            **{name: row[name] for name in ABOUT},
            "causes_ns": {each.name: row[each.column] for each in CAUSES if row[each.column]},
        }
        for row in rows
    ]


class _Requests:
    """The requests, the slowest first."""

    def __init__(self, blamed: Blame) -> None:
        from dataclasses import replace

        order = blamed.requests.sort(
            "latency_ns", descending=True, nulls_last=True, maintain_order=True
        )
        self._blamed = replace(blamed, requests=order)

    def __len__(self) -> int:
        return len(self._blamed.requests)

    def __getitem__(self, which: slice) -> list[dict[str, Any]]:
        first, last, _ = which.indices(len(self))
        return _told(self._blamed, first, last)


BLAME = Tool(
    "blame",
    "Blame latency",
    "Split the latency of each request into causes that add up to it exactly: in the queue (for "
    "want of KV blocks, slots, budget, behind the head), preempted, in a batch (prefill, decode, "
    "recompute), idle or unknown. With a request, its waits and the recorded reasons.",
    Blamed,
    _answer,
)
