"""What a trace is, what it holds and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from stepscope.app.mcp.answering.uncut import Answer
from stepscope.app.mcp.tools.tool import Arguments, Tool, TraceName

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTrace, HeldTraces


class Opened(Arguments, frozen=True):
    """Which trace, and which part of what is told of it."""

    trace: TraceName
    part: Annotated[
        Literal["tables", "config"],
        msgspec.Meta(
            description="tables: each table with its rows and times. config: every setting of the "
            "run, by its name."
        ),
    ] = "tables"


def _answer(held: HeldTraces, asked: Opened) -> Answer:
    from stepscope.app.mcp.desk.recorded_by import lacks, lacks_table
    from stepscope.ingest.schema import TABLES

    opened = held.trace(asked.trace)
    facts = {"trace": opened.name, **_facts(opened)}
    if asked.part == "config":
        settings = [
            {"setting": name, "value": value} for name, value in _flat(opened.trace.manifest.config)
        ]
        lacking = () if settings else (lacks("the configuration of the run", "lifecycle"),)
        return Answer(facts, settings, "settings of the run", lacking)
    absent = tuple(lacks_table(table.name) for table in TABLES if table.name not in opened.tables)
    return Answer(facts, _tables(opened), "tables that have rows", absent)


def _facts(opened: HeldTrace) -> dict[str, Any]:
    from stepscope.analyzers.check.coverage import coverage
    from stepscope.analyzers.views.partial import partial
    from stepscope.app.present.about import identity
    from stepscope.ingest.display import notes, steps_by_kind

    trace = opened.trace
    report = trace.manifest.report
    return {
        "about": dict(identity(trace)),
        "clock": trace.manifest.clock.kind,
        "steps_by_kind": steps_by_kind(trace.steps),
        "rules": coverage(trace).share,
        "read": None if report is None else {
            "read": report.read, "skipped": report.skipped, "repaired": report.repaired,
            "inferred": report.inferred,
        },
        "to_know_first": [*notes(trace.manifest), *partial(trace)],
    }  # fmt: skip


def _tables(opened: HeldTrace) -> list[dict[str, Any]]:
    from stepscope.ingest.display import table_rows
    from stepscope.ingest.summary import extents

    trace = opened.trace
    times = extents(trace)
    began = min((first for first, _ in times.values()), default=0)
    return [
        {
            "table": name,
            "rows": rows,
            "state": state or "complete",
            "from_ns": None if name not in times else times[name][0] - began,
            "to_ns": None if name not in times else times[name][1] - began,
        }
        for name, rows, state in table_rows(trace.manifest, trace.rows_by_table())
    ]


def _flat(config: Any, above: str = "") -> list[tuple[str, Any]]:
    """Settings by their whole names, `parallel.size`, in order."""
    found = []
    for name, value in config.items():
        whole = f"{above}.{name}" if above else str(name)
        found += _flat(value, whole) if isinstance(value, dict) and value else [(whole, value)]
    return found


OPEN = Tool(
    "open",
    "Open a trace",
    "Say what a trace is and holds: who recorded it, on which clock, of how many ranks, its steps "
    "by kind, each table with its rows, what was skipped, repaired or inferred as it was read, and "
    "which tables are not recorded. Times count from the first row.",
    Opened,
    _answer,
)
