"""A debugger of a trace, standing where a question says."""

from __future__ import annotations

from stepscope.app.debug.debugger import Debugger
from stepscope.app.mcp.desk.held_traces import HeldTrace
from stepscope.ingest.errors import ConfigError


def standing_at(opened: HeldTrace, at: str, rank: int | None) -> Debugger:
    """The debugger of a trace at a place, as goto takes it, of a rank.

    By default it is the lowest rank that has steps. Raises ConfigError for a place or a rank that
    the trace does not have.
    """
    debugger = opened.debugger
    wanted = opened.first_rank if rank is None else rank
    if wanted is not None:
        debugger.switch(wanted)
    if "@" in at:
        raise ConfigError("places have no names here", todo="write it like 86, 8.66s or 40%")
    debugger.goto(at)
    return debugger
