"""What a tool is: what it is called and takes, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from stepscope.app.mcp.answering.uncut import Answer

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTraces

MOST_ROWS = 500
TraceName = Annotated[
    str,
    msgspec.Meta(
        description="The trace: a name as the tool traces lists it, such as runs/before.trace.",
        min_length=1,
        max_length=4_096,
    ),
]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Rank = Annotated[
    Number | None, msgspec.Meta(description="The rank; by default the lowest that has steps.")
]


Where = str | Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
"""A place as it is written; a step may come as the number that it is."""


def text(description: str, most: int = 400) -> Any:
    """What a text among the arguments may be."""
    return msgspec.Meta(description=description, max_length=most)


class Arguments(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What every tool takes: which page of its answer is wanted, and how long it may be."""

    cursor: Annotated[
        str,
        msgspec.Meta(
            description="What `next` of the page before says; empty for the first page.",
            max_length=40,
        ),
    ] = ""
    limit: Annotated[
        int,
        msgspec.Meta(
            description="The most rows of a page; a page may have fewer, as it is never longer "
            "than 25,000 tokens.",
            ge=1,
            le=MOST_ROWS,
        ),
    ] = 50


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: `answers` is given what is open, and arguments of the type `takes`.

    It raises StepscopeError, as a command does, for what it cannot answer. What it imports it
    imports when it answers: a client waits for the list of tools, and for nothing else.
    """

    name: str
    title: str
    description: str
    takes: type[Arguments]
    answers: Callable[[HeldTraces, Any], Answer]
