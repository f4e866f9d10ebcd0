"""Holds what a trace says of each step against what the scheduler held, as its witness wrote it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl

from stepscope.app.debug.session import Session
from stepscope.ingest.trace import Trace

Row = dict[str, Any]
Owners = dict[int, set[str]]
MOST_TOLD = 5


class Step(NamedTuple):
    """A step of the trace that ran something, and the witness's line of it."""

    number: int
    formed_ns: int
    line: Row


def steps_of(session: Session, lines: Sequence[Row]) -> list[Step]:
    """Pair steps in the order in which their batches were formed; those without a batch are not."""
    formed = [line for line in lines if line.get("after", "schedule") == "schedule"]
    ran = [line for line in formed if line["batch"]]
    rows = session.trace.batch_rows.filter(pl.col("rank") == session.rank)
    with_rows = set(rows.select("step").unique().collect()["step"])
    moments = zip(session.moments.steps, session.moments.step_ns.tolist(), strict=True)
    told = [(step, at) for step, at in moments if step in with_rows]
    return [Step(*each, line) for each, line in zip(told, ran, strict=False)]


def missing(session: Session, lines: Sequence[Row]) -> int:
    """How many steps that the scheduler formed, and that ran something, the trace does not have."""
    formed = [line for line in lines if line.get("after", "schedule") == "schedule"]
    return sum(bool(line["batch"]) for line in formed) - len(steps_of(session, lines))


def differences(trace: Trace, lines: Sequence[Row], rank: int = 0) -> list[str]:
    """What the trace says otherwise than the scheduler: queues in order, batch, blocks, owners."""
    session = Session(trace, rank)
    owners = _Owners(trace, rank)
    found: list[str] = []
    for step in steps_of(session, lines):
        session.goto(step=step.number)
        held, true = _held(session, owners.at(step.formed_ns)), _true(step.line)
        found += [
            f"step {step.number}: {name}: the trace says {held[name]}, the scheduler {true[name]}"
            for name in true
            if held[name] != true[name]
        ]
        if len(found) > MOST_TOLD:
            break
    return found


def unexplained(trace: Trace, lines: Sequence[Row], rank: int = 0) -> list[str]:
    """Requests that wait, or run and are not in the batch, of which the trace gives no reason."""
    session = Session(trace, rank)
    found: list[str] = []
    for step in steps_of(session, lines):
        session.goto(step=step.number)
        found += [
            f"step {step.number}: {left.request}"
            for left in session.left_out()
            if left.reason is None and left.resource is None
        ]
        if len(found) > MOST_TOLD:
            break
    return found


def settings(trace: Trace) -> Row:
    """What the engine was set to, in one table."""
    told: Row = {}
    for group in trace.manifest.config.values():
        told |= group if isinstance(group, dict) else {}
    return told


def _held(session: Session, owners: Owners) -> Row:
    state = session.state
    return {
        "waiting": list(state.waiting or ()),
        "running": list(state.running or ()),
        "batch": {entry.request: entry.num_tokens for entry in state.batch or ()},
        "blocks": set(state.kv_blocks or ()),
        "owners": owners,
        "shown owners": {
            block: owner
            for block, owner in (state.kv_blocks or {}).items()
            if owner not in owners.get(block, ())
        },
    }


def _true(line: Row) -> Row:
    owners: Owners = defaultdict(set)
    for request, table in line["blocks"].items():
        for block in (block for group in table for block in group if block):
            owners[block].add(request)
    return {
        "waiting": line["waiting"],
        "running": line["running"],
        "batch": line["batch"],
        "blocks": set(owners),
        "owners": dict(owners),
        "shown owners": {},
    }


class _Owners:
    """Everyone who holds each block, added up from the rows alone, in the order of time."""

    def __init__(self, trace: Trace, rank: int) -> None:
        of_rank = (pl.col("rank") == rank) & (pl.col("resource") == "kv-block")
        rows = trace.allocations.filter(of_rank).sort("ts_ns", maintain_order=True)
        self._rows: Iterator[Row] = iter(rows.collect().rows(named=True))
        self._next = next(self._rows, None)
        self._owners: Owners = {}

    def at(self, ts_ns: int) -> Owners:
        """The owners by then; asked of ever later times."""
        while self._next is not None and self._next["ts_ns"] <= ts_ns:
            self._apply(self._next)
            self._next = next(self._rows, None)
        return {block: set(owners) for block, owners in self._owners.items() if owners}

    def _apply(self, row: Row) -> None:
        owners = self._owners.setdefault(row["id"], set())
        if row["op"] == "claim":
            owners.clear()
        if row["op"] in ("claim", "share"):
            owners.add(row["owner"])
        elif row["op"] in ("release", "let-go"):
            owners.discard(row["owner"])
