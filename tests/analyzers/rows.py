"""Rows from which the tests of rules build their small traces."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
KINDS = {0: "AIC", 1: "AIV0", 2: "AIV1"}


def part(task: int, core: int, began: int, ended: int | None, **more: Any) -> Row:
    """A block on a core of group `core // 3`; by default an AIV block that ran as dispatched."""
    return {
        "step": 1, "task": task, "block": 0, "shape": "AIV", "group": core // 3, "core": core,
        "core_kind": KINDS[core % 3], "slot": "running", "ready_ns": began, "dispatch_ns": began,
        "ts_ns": began, "end_ns": ended,
    } | more  # fmt: skip


def mix(task: int, starts: dict[int, int], ended: int, dispatched: int, **more: Any) -> list[Row]:
    """A MIX block on the cores of `starts`; a part that starts after its dispatch was pending."""
    return [
        part(
            task, core, began, ended, shape="MIX", dispatch_ns=dispatched, ready_ns=dispatched,
            slot="running" if began == dispatched else "pending",
        ) | more
        for core, began in starts.items()
    ]  # fmt: skip


def task(number: int, name: str, num_blocks: int = 1, shape: str = "AIV", **more: Any) -> Row:
    """A task of the graph."""
    return {
        "task": number,
        "name": name,
        "shape": shape,
        "num_blocks": num_blocks,
        "step": 1,
    } | more


def event(request: str, what: str, ts_ns: int, **more: Any) -> Row:
    """A request's event."""
    return {"step": ts_ns, "request": request, "event": what, "ts_ns": ts_ns} | more


def life(request: str, arrived: int, admitted: int, finished: int, **arrive: Any) -> list[Row]:
    """A request that was served without interruption."""
    return [
        event(request, "arrive", arrived, **arrive),
        event(request, "admit", admitted),
        event(request, "finish", finished),
    ]


def decision(kind: str, subject: str, verdict: str, ts_ns: int, **more: Any) -> Row:
    """Something that was considered."""
    return {
        "step": ts_ns, "ts_ns": ts_ns, "subject_kind": kind, "subject": subject, "verdict": verdict,
    } | more  # fmt: skip
