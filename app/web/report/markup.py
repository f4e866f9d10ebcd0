"""Blocks as markup of a page that stands by itself: what a trace says is only ever text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import assert_never

from stepscope.app.palette import STATES
from stepscope.app.present.blocks import (
    Block,
    Fact,
    Heading,
    Items,
    Links,
    Paragraph,
    Runs,
    Swatch,
    Table,
    Title,
    Tone,
)  # fmt: skip
from stepscope.app.printable import plain
from stepscope.app.web.shades import shade

LONGEST = 2_000
"""Letters of a text that a report shows; of what is longer it says how long it is."""


def text(said: object) -> str:
    """Text of a trace as text of a page: escaped, on one line, and cut where it has no end."""
    whole = str(said)
    if len(whole) > LONGEST:
        whole = f"{whole[:LONGEST]}… ({len(whole):,} letters)"
    return escape(plain(whole))


def tag(name: str, inner: str, kind: str = "") -> str:
    """An element around markup; `kind` is its class."""
    return (
        f'<{name} class="{escape(kind)}">{inner}</{name}>' if kind else f"<{name}>{inner}</{name}>"
    )


def markup(blocks: Iterable[Block]) -> str:
    """The blocks from top to bottom. A report has no other pages, so links lead nowhere."""
    return "\n".join(filter(None, _parts(blocks)))


def _parts(blocks: Iterable[Block]) -> Iterator[str]:
    for _, alike in groupby(blocks, key=lambda block: isinstance(block, Fact)):
        group = list(alike)
        facts = [block for block in group if isinstance(block, Fact)]
        yield from [_facts(facts)] if facts else map(_part, group)


def _part(block: Block) -> str:
    match block:
        case Title(said, tone):
            made = tag("h3", text(said), _class(tone))
        case Heading(said, note):
            made = tag("h4", text(f"{said} {note}".rstrip()))
        case Paragraph(said, tone):
            made = tag("p", text(said), _class(tone))
        case Fact():
            made = _facts([block])
        case Items(lines):
            made = tag("ul", "".join(tag("li", text(line)) for line in lines), "reasons")
        case Runs(parts):
            runs = "".join(tag("span", text(said), _class(tone)) for said, tone in parts)
            made = tag("p", runs)
        case Table():
            made = _table(block)
        case Links():
            made = ""
        case _:
            assert_never(block)
    return made


def _facts(facts: Sequence[Fact]) -> str:
    three = any(len(fact.values) > 1 for fact in facts)
    cells = "".join(tag("dt", text(fact.label)) + _values(fact) for fact in facts)
    return tag("dl", cells, "facts three" if three else "facts")


def _values(fact: Fact) -> str:
    first = fact.values[0]
    return "".join(
        tag("dd", text(value), "changed" if value != first else "") for value in fact.values
    )


def _table(table: Table) -> str:
    kinds = ["number" if right else "" for right in table.stands_right()]
    notes = table.notes or ("",) * len(table.rows)
    head = "".join(
        tag("th", text(name), kind) for name, kind in zip(table.columns, kinds, strict=True)
    )
    rows = [
        f'<tr title="{text(note)}">' + "".join(map(_cell, row, kinds)) + "</tr>"
        for row, note in zip(table.rows, notes, strict=True)
    ]
    named = tag("thead", tag("tr", head)) if any(table.columns) else ""
    shown = tag("div", tag("table", named + tag("tbody", "\n".join(rows))), "wide")
    title = tag("h4", text(table.title)) if table.title else ""
    more = tag("p", f"and {table.num_more:,} more", "muted") if table.num_more else ""
    return title + shown + more


def _cell(value: object, kind: str) -> str:
    if isinstance(value, Swatch):
        return tag("td", swatch(value), kind)
    if value is None:
        return tag("td", "—", kind)
    return tag("td", f"{value:,}" if isinstance(value, int) else text(value), kind)


def swatch(shown: Swatch) -> str:
    """What stands for a state, in its colour."""
    return tag("span", text(shown.glyph), f"swatch {shown.cue} {colour_class(shown.colour)}")


def colour_class(colour: str) -> str:
    """The class that has this colour of the palette: a policy lets no element have a style."""
    return f"c{colour.removeprefix('#').lower()}"


def colour_rules() -> str:
    """What the style sheet says of the colours of states and findings."""
    colours = dict.fromkeys(state.colour for state in STATES)
    return "\n".join(f".{colour_class(each)} {{ --colour: {shade(each)}; }}" for each in colours)


def _class(tone: Tone) -> str:
    return "" if tone is Tone.TEXT else str(tone)
