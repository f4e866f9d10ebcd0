"""Finding things by what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from stepscope.app.mcp.answering.uncut import Answer
from stepscope.app.mcp.tools.tool import Arguments, Tool, TraceName

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTraces

MOST_HITS = 1_000
SEARCHED = {
    "requests": ("lifecycle", "batch_rows"),
    "steps": ("steps",),
    "cores and groups": ("core_spans",),
    "tasks": ("tasks",),
    "spans, such as kernels and functions": ("spans",),
}
"""What is looked for, and the tables that name it."""


class Sought(Arguments, frozen=True):
    """What is looked for."""

    trace: TraceName
    name: Annotated[
        str,
        msgspec.Meta(
            description="Part of a name, in whatever case: a request, a client's id, a kernel, a "
            "task; or step 86, core 3, group 2.",
            min_length=1,
            max_length=400,
        ),
    ]


def _answer(held: HeldTraces, asked: Sought) -> Answer:
    from stepscope.app.mcp.desk.recorded_by import lacks

    opened = held.trace(asked.trace)
    timeline = opened.timeline
    hits = timeline.find(opened.named(asked.name), MOST_HITS + 1)
    began = opened.trace.start_ns()
    rows = [
        {
            "kind": hit.kind,
            "name": hit.label,
            "lane": None if hit.lane is None else timeline.lanes[hit.lane].label,
            "after_ns": hit.ts_ns - began,
            "lasts_ns": hit.end_ns - hit.ts_ns,
            "occurs": hit.count,
        }
        for hit in hits[:MOST_HITS]
    ]
    return Answer(
        {"trace": opened.name},
        rows,
        "things of such a name, the closest first: when the first of them began, how long it "
        "lasted, and how often the name occurs",
        tuple(
            lacks(what, *tables)
            for what, tables in SEARCHED.items()
            if opened.tables.isdisjoint(tables)
        ),
        left_out=(
            (f"more than {MOST_HITS:,} things have such a name: ask for more of it",)
            if len(hits) > MOST_HITS
            else ()
        ),
    )


FIND = Tool(
    "find",
    "Find by name",
    "Find requests, steps, cores, core groups, tasks and spans (kernels, functions) by what they "
    "are called: where each lies, when the first began, how long it lasted, how often the name "
    "occurs. What the trace cannot name is listed as not recorded.",
    Sought,
    _answer,
)
