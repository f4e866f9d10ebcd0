"""What the engine held at a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from stepscope.app.mcp.answering.uncut import Answer, FrameRows, NotRecorded
from stepscope.app.mcp.tools.tool import Arguments, Rank, Tool, TraceName, Where, text

if TYPE_CHECKING:
    import polars as pl

    from stepscope.app.debug.facets.look import Facet
    from stepscope.app.mcp.desk.held_traces import HeldTrace, HeldTraces

FEW = 3


class Asked(Arguments, frozen=True):
    """Where the state is asked for, and of what."""

    trace: TraceName
    at: Annotated[
        Where,
        msgspec.Meta(
            description="Where: a step as 86, a time since the trace began as 8.66s, 40%, a "
            "change by its seq as #1234, start or end. At a step it is behind all that was decided "
            "for its batch."
        ),
    ]
    side: Annotated[
        str,
        text("One side in full, as waiting, running, batch, blocks or cores; empty for all in "
             "short.", 40),
    ] = ""  # fmt: skip
    rank: Rank = None


def _answer(held: HeldTraces, asked: Asked) -> Answer:
    from stepscope.analyzers.views.partial import partial
    from stepscope.app.debug.commands.where_it_is import position_facts
    from stepscope.app.debug.facets import FACETS
    from stepscope.app.debug.facets.look import Look
    from stepscope.app.mcp.desk.position_asked import standing_at
    from stepscope.ingest.errors import ConfigError
    from stepscope.ingest.query import near

    sides = {facet.name: facet for facet in FACETS}
    if asked.side and asked.side not in sides:
        raise ConfigError(f"no side of the state is called {asked.side}",
                          todo=near(asked.side, sides))  # fmt: skip
    opened = held.trace(asked.trace)
    debugger = standing_at(opened, str(asked.at), asked.rank)
    look = Look.of(debugger)
    facts = {"trace": opened.name, **position_facts(debugger)}
    if asked.side:
        side = sides[asked.side]
        rows = opened.last(("state", look.position, side.name), lambda: side.at(look))
        if rows is None:
            return Answer(facts, not_recorded=(_lacking(opened, side),))
        return Answer(facts | {"side": asked.side}, FrameRows(rows), side.meaning)
    told = [(facet, facet.at(look)) for facet in FACETS]
    return Answer(
        facts,
        [_in_short(facet, rows) for facet, rows in told if rows is not None],
        f"sides of the state, each with its number and its first {FEW}; `side` has all of one",
        tuple(_lacking(opened, facet) for facet, rows in told if rows is None),
        notes=(
            *partial(opened.trace),
            "an empty side is empty: what the trace does not tell is listed as not recorded",
        ),
    )


def _in_short(facet: Facet, rows: pl.DataFrame) -> dict[str, Any]:
    first = [
        {name: value for name, value in row.items() if value is not None}
        for row in rows.head(FEW).to_dicts()
    ]
    return {"side": facet.name, "is": facet.meaning, "num": len(rows), "first": first}


def _lacking(opened: HeldTrace, facet: Facet) -> NotRecorded:
    from stepscope.app.mcp.desk.recorded_by import lacks

    missing = [table for table in facet.needs if table not in opened.tables]
    told = f"{facet.name}: {facet.meaning}"
    if missing:
        return lacks(f"{told}; there is no row of {' and '.join(missing)}", *missing)
    return lacks(f"{told}; the rows of {' and '.join(facet.needs)} do not tell", *facet.needs)


STATE = Tool(
    "state",
    "State at a step",
    "Say what the engine held at a step or a time: the waiting queue in its order, who runs, the "
    "batch, KV blocks and their owners, slots, budget, cores. Each side with its number and its "
    "first few, or one in full. A side that is not recorded is said to be so, and is not empty.",
    Asked,
    _answer,
)
