"""What is said, as neutral blocks: each front renders them in its own way, and escapes by itself.

Rendered by `app/tui/widgets/prose.py`, `app/web/components.py`, `app/present/plain_text.py`.
Text in a block is as recorded: it may hold markup, terminal control or anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a text stands out; a finding's severity is one of the tones."""

    TEXT = "text"
    MUTED = "muted"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class RulePage:
    """Leads to the page of a rule."""

    code: str


@dataclass(frozen=True, slots=True)
class AtStep:
    """Leads to a step in detail, of a rank where that is not the usual one."""

    step: int
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class AtChange:
    """Leads to a row that tells of a change, by its `seq`; `step` is the one that it names.

    `rank` is whose row it is, where that is not the rank that one stands at.
    """

    seq: int
    step: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class AtFinding:
    """Leads to a finding in the timeline, by its place among all."""

    index: int


@dataclass(frozen=True, slots=True)
class Follow:
    """Leads to what was decided about a request, by its place among those of the step."""

    index: int


@dataclass(frozen=True, slots=True)
class AtRequest:
    """Leads to the page of a request of a rank."""

    rank: int
    request: str


@dataclass(frozen=True, slots=True)
class AtSpan:
    """Leads to the span that a lane shows at a time, in ns from the first moment of the trace."""

    lane: int
    since_ns: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """Leads to a time, in ns from the first moment of the trace, in a lane where one is known."""

    since_ns: int
    lane: int | None = None


Target = RulePage | AtStep | AtChange | AtFinding | AtRequest | AtSpan | AtTime | Follow
"""Where something leads; a front leaves out what it has no place for."""


@dataclass(frozen=True, slots=True)
class Title:
    """What all of it is about."""

    text: str
    tone: Tone = Tone.TEXT


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of a part; `note` may be a trace's text and stays as it is."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text as wide as there is room."""

    text: str
    tone: Tone = Tone.TEXT


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and a value beside it, or one before and one after, in columns of equal width."""

    label: str
    values: tuple[str, ...]
    tone: Tone = Tone.TEXT
    to: Target | None = None
    is_selected: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """Lines of a list."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """A line of runs of text, each with its tone; it is cut where there is no more room."""

    parts: tuple[tuple[str, Tone], ...]
    to: Target | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A text that leads somewhere."""

    text: str
    to: Target


@dataclass(frozen=True, slots=True)
class Links:
    """Texts that lead somewhere, beside each other."""

    choices: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Swatch:
    """In a table: what stands for a state, by its glyph, its colour and the cue of our palette."""

    glyph: str
    colour: str
    cue: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under the names of their columns: numbers, texts and swatches, None where not known.

    Numbers stand to the right, and texts in the columns that `to_right` names; `num_more` rows were
    left out. `notes` says more of each row, where there is a place for it, and `leads` where its
    first text leads; plain text draws a line below the names where it `is_ruled`.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    title: str = ""
    to_right: tuple[str, ...] = ()
    num_more: int = 0
    notes: tuple[str, ...] = ()
    is_ruled: bool = True
    leads: tuple[Target | None, ...] = ()

    def stands_right(self) -> list[bool]:
        """Of each column, whether its cells end where the others do."""
        return [
            name in self.to_right or _are_numbers([row[at] for row in self.rows])
            for at, name in enumerate(self.columns)
        ]


def _are_numbers(values: list[object]) -> bool:
    return bool(values) and all(each is None or isinstance(each, int | float) for each in values)


Block = Title | Heading | Paragraph | Fact | Items | Runs | Links | Table
