"""What there is to ask about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from stepscope.app.mcp.answering.uncut import Answer
from stepscope.app.mcp.tools.tool import Arguments, Tool, text

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTraces


class Which(Arguments, frozen=True):
    """Which traces are listed."""

    containing: Annotated[
        str, text("Only names that contain this, in whatever case; empty for all.")
    ] = ""


def _answer(held: HeldTraces, asked: Which) -> Answer:
    from stepscope.app.mcp.desk.traces_below import MOST_LOOKED_AT, traces_below

    below = traces_below(held.folders, asked.containing)
    left_out = []
    if below.num_others:
        left_out.append(f"{below.num_others:,} files that no reader takes")
    if below.is_cut:
        left_out.append(
            f"whatever comes behind the first {MOST_LOOKED_AT:,} files: name a part of the names "
            "with `containing`"
        )
    return Answer(
        {"folders": list(held.folders.by_name)},
        below.found,
        "traces, by name",
        notes=("a folder that holds one file for each rank is a trace as well: name the folder",),
        left_out=tuple(left_out),
    )


TRACES = Tool(
    "traces",
    "List traces",
    "List the traces that can be asked about: recordings, profiles and logs below the folders that "
    "were named when the server was started. Every other tool takes one of these names.",
    Which,
    _answer,
)
