"""Words for where the debugger is, and for what was hit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.app.debug.commands.answer import Answer
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.site_source import in_short
from stepscope.app.debug.stops.hits import Here
from stepscope.app.debug.stops.stop import Hit
from stepscope.app.debug.stops.tables import Tables
from stepscope.app.present.blocks import Block, Items, Paragraph
from stepscope.app.present.where import RESOLUTION_NS, step_of
from stepscope.app.units import moment

Told = dict[str, list[dict[str, Any]]]
"""Rows by their tables."""
MOST_TRACED = 100
MOST_AT_ONCE = 8
BRIEF = {
    "lifecycle": ("event", "request", "cause"),
    "decisions": ("verdict", "subject", "reason"),
    "allocations": ("op", "resource", "id", "owner"),
    "steps": ("kind", "num_waiting", "num_running", "kv_blocks_free"),
    "batch_rows": ("request", "phase", "num_tokens"),
    "slot_tokens": ("slot", "num_tokens"),
    "findings": ("code", "severity", "request", "message"),
    "core_spans": ("task", "block", "shape", "core"),
    "core_waits": ("task", "block", "shape", "core"),
    "ready_order": ("queue", "index", "task"),
    "thread_phases": ("thread", "phase"),
}
"""Columns for which a table is read: those that a table of hits shows where none are named."""
LEFT_OUT = {
    "rank", "step", "ts_ns", "seq", "subject_kind", "prompt_len", "max_tokens", "deadline_ns",
    "site",
}  # fmt: skip
"""Columns that a line about a row leaves out: it says where it is, or they are of one event.

A site has a line of its own.
"""
MOST_COLUMNS = 8


def position_facts(debugger: Debugger) -> dict[str, Any]:
    """The position, as JSON has it."""
    position = debugger.position
    after_ns = position.ts_ns - debugger.bounds_ns[0]
    at = {"rank": debugger.rank, "step": position.step, "seq": position.seq}
    return {"position": {**at, "ts_ns": position.ts_ns, "after_ns": after_ns}}


def place_text(debugger: Debugger) -> str:
    """Where it is, in short: `rank 0 · step 86, 86 of 88 · 18.810 s`."""
    position, moments = debugger.position, debugger.moments
    place = None if position.step is None else moments.place_of(position.step)
    after = moment(position.ts_ns - debugger.bounds_ns[0], RESOLUTION_NS)
    rank = f"rank {debugger.rank} · " if len(debugger.ranks) > 1 else ""
    return f"{rank}{step_of(position.step, place, len(moments.steps))} · {after}"


def prompt_text(debugger: Debugger) -> str:
    """Where it is, as a prompt: `step 86> `, and of several ranks `rank 1 step 86> `."""
    rank = f"rank {debugger.rank} " if len(debugger.ranks) > 1 else ""
    step = debugger.position.step
    return f"{rank}{'start' if step is None else f'step {step}'}> "


def where(debugger: Debugger) -> Answer:
    """Where it is, and in a line what the engine held there."""
    state = debugger.session.state
    told = {
        "waiting": state.waiting, "running": state.running, "in batch": state.batch,
        "blocks": state.kv_blocks, "slots": state.slots,
    }  # fmt: skip
    known = [f"{len(held):,} {name}" for name, held in told.items() if held is not None]
    line = " · ".join([place_text(debugger), *known])
    counts = {name.replace(" ", "_"): None if h is None else len(h) for name, h in told.items()}
    return Answer((Paragraph(line),), {**position_facts(debugger), "counts": counts})


def row_text(row: Mapping[str, Any], table: str = "", *, brief: bool = True) -> str:
    """A row in a line: `event=preempt request=req-17`, without what is null.

    What the table is read for comes first.
    """
    first = [name for name in BRIEF.get(table, ()) if brief and name in row]
    rest = [name for name in row if name not in first and not (brief and name in LEFT_OUT)]
    shown = [f"{name}={row[name]}" for name in (*first, *rest) if row[name] is not None]
    return " ".join(shown[:MOST_COLUMNS] if brief else shown)


def change(debugger: Debugger) -> Answer:
    """What the change tells that it stands behind; nothing where it stands behind none."""
    seq = debugger.position.seq
    if seq is None:
        return Answer()
    told = _told_at(debugger.tables, debugger.rank, seq)
    return Answer(_lines(told), {"change": told})


def change_blocks(tables: Tables, rank: int, seq: int) -> tuple[Paragraph, ...]:
    """The rows that tell of a change, a line for each."""
    return _lines(_told_at(tables, rank, seq))


def _told_at(tables: Tables, rank: int, seq: int) -> Told:
    told = tables.told_at(rank, seq)
    return {table: rows.to_dicts() for table, rows in told.items() if len(rows)}


def _lines(told: Told) -> tuple[Paragraph, ...]:
    lines = [line for table, rows in told.items() for row in rows for line in row_lines(row, table)]
    shown = [*map(Paragraph, lines[:MOST_AT_ONCE])]
    if len(lines) > len(shown):
        shown.append(Paragraph(f"and {len(lines) - len(shown):,} more at once"))
    return tuple(shown)


def row_lines(row: Mapping[str, Any], table: str) -> list[str]:
    """A row of a table in a line, and below it in which functions of the policy it was decided."""
    site = row.get("site")
    told = [f"{table}: {row_text(row, table)}"]
    return [*told, f"  in {in_short(site)}"] if site else told


def hit_answer(debugger: Debugger, hit: Hit) -> Answer:
    """What was hit, and where that is."""
    stop = debugger.stops[hit.stop]
    row = stop.row(hit, debugger.tables)
    table = stop.sources[hit.source].table
    lines = (f"  {line}" for line in row_lines(row, table))
    return Answer(
        tuple(map(Paragraph, (f"stop {stop.number}, {stop.text}", *lines))),
        {"hit": {"stop": stop.number, "table": table, "row": dict(row)}},
    )


def traced(debugger: Debugger, first: Here) -> Answer:
    """What trace points say of the way from a place to where it is now."""
    low, high = sorted((first, debugger.here))
    hits = debugger.traced(low, high)
    lines = [_traced_line(debugger, hit) for hit in hits[:MOST_TRACED]]
    blocks: tuple[Block, ...] = (Items(tuple(lines)),) if lines else ()
    if len(hits) > len(lines):
        blocks = (*blocks, Paragraph(f"and {len(hits) - len(lines):,} more; `all` shows them"))
    return Answer(blocks, {"traced": lines} if lines else {})


def _traced_line(debugger: Debugger, hit: Hit) -> str:
    stop = debugger.stops[hit.stop]
    after = moment(hit.here.ts_ns - debugger.bounds_ns[0], RESOLUTION_NS)
    row, table = stop.row(hit, debugger.tables), stop.sources[hit.source].table
    text = row_text(row, table, brief=stop.columns is None)
    return f"trace {stop.number} at {after}: {text}"
