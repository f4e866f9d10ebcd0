"""Blocks as markup: what a trace says is only ever text, and is all there."""

from __future__ import annotations

from html.parser import HTMLParser

from stepscope.app.palette import STATES
from stepscope.app.present.blocks import (
    AtStep,
    Block,
    Fact,
    Heading,
    Items,
    Link,
    Links,
    Paragraph,
    Runs,
    Swatch,
    Table,
    Title,
    Tone,
)  # fmt: skip
from stepscope.app.web.report.markup import LONGEST, colour_class, colour_rules, markup, text
from stepscope.app.web.shades import shade

HOSTILE = '"><script>alert(1)</script>\x1b[31m\u202e'


class Seen(HTMLParser):
    """The elements of markup and the text in them."""

    def __init__(self, given: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.said = ""
        self.feed(given)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.said += data


def every_block(said: str) -> list[Block]:
    return [
        Title(said, Tone.ERROR), Heading(said, said), Paragraph(said), Fact(said, (said, said)),
        Items((said,)), Runs(((said, Tone.MUTED),)), Links((Link(said, AtStep(1)),)),
        Table((said, "b"), ((said, 1), (None, 2)), said, num_more=3, notes=(said, "")),
    ]  # fmt: skip


def test_text_of_a_trace_is_no_markup_in_any_block() -> None:
    seen = Seen(markup(every_block(HOSTILE)))

    assert seen.tags <= {"h3", "h4", "p", "dl", "dt", "dd", "ul", "li", "span", "div", "table",
                         "thead", "tbody", "tr", "th", "td"}  # fmt: skip
    assert seen.attributes == {"class", "title"}
    assert seen.said.count('"><script>alert(1)</script>·[31m·') == 12


def test_a_text_without_an_end_is_cut_and_says_how_long_it_is() -> None:
    said = text("x" * 1_000_000)

    assert len(said) < LONGEST + 40
    assert said.endswith("… (1,000,000 letters)")


def test_a_value_that_is_not_known_is_a_dash_and_a_number_has_its_thousands() -> None:
    seen = Seen(markup([Table(("a", "b"), ((None, 1234567),))]))

    assert seen.said == "ab—1,234,567"


def test_every_colour_of_a_state_has_its_rule() -> None:
    rules = colour_rules()

    for state in STATES:
        assert f".{colour_class(state.colour)} {{ --colour: {shade(state.colour)}; }}" in rules
    cell = markup([Table(("",), ((Swatch("P", STATES[2].colour, "solid"),),))])
    assert colour_class(STATES[2].colour) in cell
