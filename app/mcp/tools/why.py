"""Why somebody waits: the chain to the root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from stepscope.app.mcp.answering.uncut import Answer, NotRecorded
from stepscope.app.mcp.tools.tool import Arguments, Number, Rank, Tool, TraceName, Where, text

if TYPE_CHECKING:
    from stepscope.app.debug.why.chain import Chain
    from stepscope.app.mcp.desk.held_traces import HeldTrace, HeldTraces

NOT_RECORDED = "not recorded"
OF_OTHERS = ("task ", "core ", "rank ")


class Asked(Arguments, frozen=True):
    """Who waits, and where that is asked."""

    trace: TraceName
    who: Annotated[
        str, text("A request by its id, or a task, a core or a rank, as in task 17.", 4_096)
    ]
    at: Annotated[
        Where,
        msgspec.Meta(description="Where: a step as 86, a time as 8.66s, 40%, start or end; empty "
                     "for where it waited last."),
    ] = ""  # fmt: skip
    not_in_step: Annotated[
        Number | None, msgspec.Meta(description="Ask why it was not in the batch of this step.")
    ] = None
    rank: Rank = None


def _answer(held: HeldTraces, asked: Asked) -> Answer:
    from stepscope.app.mcp.desk.recorded_by import lacks, names_requests
    from stepscope.ingest.errors import ConfigError

    if asked.at != "" and asked.not_in_step is not None:
        raise ConfigError("at and not_in_step are two places", todo="give one of them")
    opened = held.trace(asked.trace)
    if not asked.who.startswith(OF_OTHERS) and not names_requests(opened):
        told = lacks("requests, and why any of them waits: the trace names none", "lifecycle",
                     "decisions")  # fmt: skip
        return Answer({"trace": opened.name}, not_recorded=(told,))
    chain = _chain(opened, asked)
    ends = [NotRecorded("where the chain goes on from there", "its last line says what would tell")]
    return Answer(
        {"trace": opened.name, "subject": str(chain.subject), "root": chain.as_dict()["root"],
         "at": chain.as_dict()["at"]},
        list(chain.lines()),
        "the dominant cause, then a line for each link, with the row that proves it",
        tuple(ends if chain.root.ends == NOT_RECORDED else ()),
    )  # fmt: skip


def _chain(opened: HeldTrace, asked: Asked) -> Chain:
    from stepscope.app.debug.debugger.why_anywhere import rank_that_has, why_anywhere
    from stepscope.app.debug.why import why_not
    from stepscope.app.debug.why.last_wait import last_wait
    from stepscope.app.mcp.desk.position_asked import standing_at

    debugger = standing_at(opened, "start", asked.rank)
    session = debugger.session
    who = opened.named(asked.who)
    if asked.not_in_step is not None:
        return why_not(session, who, asked.not_in_step)
    own = debugger.session_of(rank_that_has(session, who) if asked.rank is None else asked.rank)
    where = debugger.position_of(str(asked.at)) if asked.at != "" else last_wait(own, who)
    return why_anywhere(session, who, where, debugger.session_of)


WHY = Tool(
    "why",
    "Why it waits",
    "Follow a wait from who waits to its root: who waits for how much of what, who holds it at "
    "that position, and which row proves it. The root is a policy, a holder that runs until some "
    "time, another rank, a leak, silence, a wait cycle, or that it is not recorded.",
    Asked,
    _answer,
)
