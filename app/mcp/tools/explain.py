"""What a rule, a table or the whole schema means: our own pages, not data of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from stepscope.app.mcp.answering.uncut import Answer
from stepscope.app.mcp.tools.tool import Arguments, Tool, text

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTraces


class Explained(Arguments, frozen=True):
    """What is explained."""

    name: Annotated[
        str,
        text("A rule by its code, as STV001; a table by its name, as batch_rows; empty for a list "
             "of both."),
    ] = ""  # fmt: skip


def _answer(_held: HeldTraces, asked: Explained) -> Answer:
    from stepscope.app.mcp.desk.own_pages import listed, page

    name = asked.name.strip()
    if not name:
        told = "rules and tables: explain has a page of each"
        return Answer({}, listed(), told, is_ours=True)
    return Answer({"page_of": name}, page(name).splitlines(), "lines of the page", is_ours=True)


EXPLAIN = Tool(
    "explain",
    "Explain a rule or a table",
    "Give the page of a rule (what it finds, why it hurts, an example, how to fix it), or of a "
    "table (every column, its type, unit and meaning, for queries); without a name, list both.",
    Explained,
    _answer,
)
