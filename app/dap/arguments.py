"""What requests of the Debug Adapter Protocol are given: of each, what we look at."""

from __future__ import annotations

from msgspec import Struct


class Nothing(Struct):
    """Arguments of a request that needs none."""


class Client(Struct, rename="camel"):
    """From what a client counts lines and columns: from 1 unless it says that it does not."""

    lines_start_at1: bool = True
    columns_start_at1: bool = True


class Launch(Struct, rename="camel"):
    """Which trace to open, and the rank to begin with."""

    trace: str | None = None
    rank: int | None = None


class OfThread(Struct, rename="camel"):
    """A rank, and how far to move it."""

    thread_id: int
    granularity: str = "statement"


class Stack(Struct, rename="camel"):
    """Whose frames, and which of them."""

    thread_id: int
    start_frame: int = 0
    levels: int = 0


class OfFrame(Struct, rename="camel"):
    """A frame of a stack."""

    frame_id: int


class Page(Struct, rename="camel"):
    """Which part of which variables; `filter` asks for those with a name or a place alone."""

    variables_reference: int
    filter: str = ""
    start: int = 0
    count: int = 0


class Source(Struct, rename="camel", frozen=True):
    """A file, or what we made ourselves."""

    name: str = ""
    path: str = ""
    source_reference: int = 0


class Breakpoint(Struct, rename="camel"):
    """A line of a source, and what has to be so there."""

    line: int
    condition: str | None = None


class SourceBreakpoints(Struct, rename="camel"):
    """All stops in a source."""

    source: Source
    breakpoints: list[Breakpoint] = []


class Named(Struct, rename="camel"):
    """A stop as the prompt's `break` takes it, or a table with a condition."""

    name: str
    condition: str | None = None


class FunctionBreakpoints(Struct):
    """All stops that have a name."""

    breakpoints: list[Named]


class Data(Struct, rename="camel"):
    """Something that may be watched: words, or a variable below another."""

    name: str
    variables_reference: int = 0


class Watched(Struct, rename="camel"):
    """What is watched, as `watch` takes it."""

    data_id: str


class DataBreakpoints(Struct):
    """All that is watched."""

    breakpoints: list[Watched]


class Filters(Struct):
    """Severities of findings to stop at."""

    filters: list[str]


class Expression(Struct, rename="camel"):
    """A command, SQL or the name of a request, and where from it was asked."""

    expression: str
    frame_id: int | None = None
    context: str = "repl"


class Typed(Struct):
    """What was typed so far; `column` counts from 1."""

    text: str
    column: int


class SourceOf(Struct, rename="camel"):
    """A source by its number, which `source` may repeat."""

    source_reference: int = 0
    source: Source = Source()


class Line(Struct, rename="camel"):
    """A line of a source."""

    source: Source
    line: int


class Target(Struct, rename="camel"):
    """Where to go, as `gotoTargets` told."""

    thread_id: int
    target_id: int
