"""What each of two runs knew where they diverge: its state, replayed, and what it had decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analyzers.diff.compare import Divergence
from stepscope.app.debug import Session, State
from stepscope.app.present.facts import decision
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

MAX_IDS, MAX_DECISIONS = 6, 6
WITHIN = {"placement", "task decisions", "accesses", "collectives"}
"""Stages within a step, at a time of their own."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """A run's state where it diverges from another, its row of `steps`, and decisions in words."""

    ts_ns: int
    state: State
    step: Mapping[str, Any]
    decisions: tuple[str, ...]
    kernel: str | None = None


def knowledge(
    trace: Trace, divergence: Divergence, row: Mapping[str, Any] | None
) -> Knowledge | None:
    """What a run knew when it did `row`, the first thing that the other did not do.

    None where the run has no such step.
    """
    session = Session(trace, divergence.rank)
    try:
        session.goto(step=divergence.step)
    except ConfigError:
        return None
    formed_ns = session.position.ts_ns
    if row is not None and divergence.stage in WITHIN:
        at = row.get("dispatch_ns")
        session.goto(ts_ns=int(row["ts_ns"] if at is None else at) - 1)
    return Knowledge(
        session.position.ts_ns,
        session.state,
        _step(trace, divergence),
        tuple(_decided(trace, divergence, row, max(formed_ns, session.position.ts_ns + 1))),
        _kernel(trace, divergence, row),
    )


def facts_of(known: Knowledge | None) -> dict[str, str]:
    """The state in a few words each, by name; what the trace does not tell is left out."""
    if known is None:
        return {"step": "it has no such step"}
    state, step = known.state, known.step
    return {
        **_listed("waiting", state.waiting),
        **_listed("running", state.running),
        **_listed("batch", None if state.batch is None else [each.request for each in state.batch]),
        **_number("token budget", step.get("token_budget")),
        **_number("reserved for decodes", step.get("reserved_tokens") or None),
        **_number("KV blocks free", step.get("kv_blocks_free")),
        **_number("slots held", None if state.slots is None else len(state.slots)),
        **_cores(state),
        **({} if known.kernel is None else {"task": known.kernel}),
    }


def _step(trace: Trace, divergence: Divergence) -> Mapping[str, Any]:
    here = (pl.col("rank") == divergence.rank) & (pl.col("step") == divergence.step)
    rows = trace.steps.filter(here).head(1).collect()
    return rows.row(0, named=True) if len(rows) else {}


def _kernel(trace: Trace, divergence: Divergence, row: Mapping[str, Any] | None) -> str | None:
    """What the row's task is called, where it is about one."""
    if row is None or "task" not in row:
        return None
    own = (pl.col("rank") == divergence.rank) & pl.col("task").eq_missing(pl.lit(row["task"]))
    names = trace.tasks.filter(own).select("name").head(1).collect()["name"]
    return f"{row['task']} is {names[0]}" if len(names) else None


def _decided(
    trace: Trace, divergence: Divergence, row: Mapping[str, Any] | None, until_ns: int
) -> Iterator[str]:
    """The step's decisions on buckets and on what the row is about, up to then, the last last."""
    subject = None if row is None else row.get("request", row.get("subject", row.get("task")))
    here = (pl.col("rank") == divergence.rank) & (pl.col("step") == divergence.step)
    about = (pl.col("subject_kind") == "bucket") | (pl.col("subject") == pl.lit(str(subject)))
    rows = trace.decisions.filter(here, about, pl.col("ts_ns") <= until_ns)
    last = rows.sort("ts_ns", maintain_order=True).tail(MAX_DECISIONS).collect()
    for each in last.iter_rows(named=True):
        yield f"{each['subject_kind']} {each['subject']} {decision(each)}"


def _listed(name: str, ids: Any) -> dict[str, str]:
    if ids is None:
        return {}
    more = " …" if len(ids) > MAX_IDS else ""
    return {name: f"{len(ids):,}  {' '.join(ids[:MAX_IDS])}{more}".rstrip()}


def _number(name: str, number: int | None) -> dict[str, str]:
    return {} if number is None else {name: f"{number:,}"}


def _cores(state: State) -> dict[str, str]:
    if state.cores is None:
        return {}
    busy = [core for core, slots in sorted(state.cores.items()) if slots.state == "running"]
    held = sum(slots.pending is not None for slots in state.cores.values())
    text = f"{len(busy)} of {len(state.cores)} run a block, {held} hold one more"
    return {"cores": text}
