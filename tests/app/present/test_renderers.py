"""Text of a trace is hostile: each of the three renderers shows it as text, and as nothing else."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from dash.development.base_component import Component
from hypothesis import given
from hypothesis import strategies as st
from textual.actions import parse

from stepscope.app.palette import STATES
from stepscope.app.present.blocks import (
    AtFinding,
    AtStep,
    Block,
    Fact,
    Follow,
    Heading,
    Items,
    Link,
    Links,
    Paragraph,
    RulePage,
    Runs,
    Swatch,
    Table,
    Title,
    Tone,
)  # fmt: skip
from stepscope.app.present.plain_text import lines
from stepscope.app.printable import plain
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import PANEL, TEXT, ink
from stepscope.app.tui.widgets.in_prose.target_action import action_of
from stepscope.app.tui.widgets.prose import lay_out
from stepscope.app.web.components import components
from stepscope.app.web.shades import shade

HOSTILE = [
    "<script>window.hacked=1</script>", "<img src=x onerror=alert(1)>", "[b]bold[/b]", "[/]",
    "[@click=app.quit]quit[/]", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\nb\r\nc", "\u202eabc",
    "\x9b2J", "\ud800", "javascript:alert(1)", "&lt;b&gt;", "${x}", "{{x}}", "'); app.quit('",
    "\u2028next", "\t",
]  # fmt: skip
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(), max_size=12)
TONES = st.sampled_from(Tone)
TARGETS = st.builds(RulePage, TEXTS) | st.sampled_from([AtStep(3), AtFinding(2), Follow(0)])
CELLS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
CUES = sorted({each.cue for each in STATES})
SWATCHES = st.builds(Swatch, TEXTS, st.just("#46C3FE"), st.sampled_from(CUES))
BLOCKS = st.one_of(
    st.builds(Title, TEXTS, TONES),
    st.builds(Heading, TEXTS, TEXTS),
    st.builds(Paragraph, TEXTS, TONES),
    st.builds(Fact, TEXTS, st.tuples(TEXTS) | st.tuples(TEXTS, TEXTS), TONES),
    st.builds(Items, st.tuples(TEXTS, TEXTS)),
    st.builds(Runs, st.tuples(st.tuples(TEXTS, TONES), st.tuples(TEXTS, TONES))),
    st.builds(Links, st.tuples(st.builds(Link, TEXTS, TARGETS))),
    st.builds(
        Table,
        st.tuples(TEXTS, TEXTS),
        st.tuples(st.tuples(CELLS | SWATCHES, CELLS)),
        TEXTS,
        st.tuples(TEXTS),
        st.integers(0, 3),
        st.tuples(TEXTS),
        st.booleans(),
    ),
)
COMPONENTS = {
    "H2", "H3", "P", "Ul", "Li", "Span", "Div", "A", "Dl", "Dt", "Dd", "Table", "Thead", "Tbody",
    "Tr", "Th", "Td", "Section",
}  # fmt: skip
CLASSES = {
    "", "note", "facts", "facts three", "changed", "reasons", "links", "number", "muted", *Tone,
    *(f"swatch {cue}" for cue in CUES),
}  # fmt: skip
STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def steers(text: str) -> bool:
    return any(unicodedata.category(char) in STEERING for char in text)


def in_terminal(blocks: Sequence[Block], width: int = 60) -> list[str]:
    """What a terminal is sent, line by line."""
    shown = []
    for pieces in lay_out(blocks, width):
        line, x = Line(width, ink(TEXT, PANEL)), 0
        for piece in pieces:
            x = line.put(x, piece.text, piece.style)
        shown.append(line.strip().text)
    return shown


def parts(component: Any) -> Iterator[Component]:
    if isinstance(component, Component):
        yield component
        yield from parts(getattr(component, "children", None))
    elif isinstance(component, list):
        for each in component:
            yield from parts(each)


def texts(component: Any) -> Iterator[str]:
    if isinstance(component, list):
        for each in component:
            yield from texts(each)
    elif isinstance(component, Component):
        yield from texts(getattr(component, "children", None))
    elif component is not None:
        yield str(component)


@given(st.lists(BLOCKS, max_size=4))
def test_plain_text_steers_no_terminal_and_breaks_no_line(blocks: list[Block]) -> None:
    assert not any(steers(line) for line in lines(blocks))


@given(st.lists(BLOCKS, max_size=4))
def test_a_terminal_is_sent_only_cells_of_text(blocks: list[Block]) -> None:
    assert not any(steers(line) for line in in_terminal(blocks))


@given(TARGETS)
def test_what_a_click_runs_is_one_action_with_what_it_leads_to_as_its_value(to: Any) -> None:
    _, name, values = parse(action_of(to))

    assert name in {"explain", "at_step", "jump", "follow"}
    assert values == tuple(getattr(to, field.name) for field in fields(to))


@given(st.lists(BLOCKS, max_size=4))
def test_the_page_has_only_our_components_text_as_text_and_addresses_of_its_own(
    blocks: list[Block],
) -> None:
    found = components(blocks)

    made = list(parts(found))
    assert {type(each).__name__ for each in made} <= COMPONENTS
    assert not any(steers(text) for text in texts(found))
    assert all(str(getattr(each, "href", "?")).startswith("?") for each in made)
    assert {getattr(each, "className", "") for each in made} <= CLASSES


@given(st.sampled_from(HOSTILE))
def test_all_three_say_what_was_recorded_with_what_steers_shown_as_a_dot(text: str) -> None:
    told = [Paragraph(text)]
    words = plain(text).split()

    assert "".join(lines(told)) == plain(text).rstrip()
    assert " ".join(in_terminal(told)).split() == words
    assert list(texts(components(told))) == [plain(text)]


TOTALS = Table(
    ("", "cause", "total"),
    (
        (Swatch("P", "#46C3FE", "solid"), "prefill", "3.04 ms"),
        (Swatch("D", "#F5B971", "ticks"), "decode", None),
    ),
    "where it went", to_right=("total",), num_more=1200, notes=("computing a prompt", "generating"),
)  # fmt: skip


def test_a_table_says_the_same_in_all_three_and_counts_what_was_left_out() -> None:
    printed, cells = lines([TOTALS]), in_terminal([TOTALS])
    page = list(texts(components([TOTALS])))

    assert printed[0] == "where it went"
    assert printed[3:] == ["P  prefill  3.04 ms", "D  decode         -", "and 1,200 more"]
    assert [line.rstrip() for line in cells[-3:]] == printed[3:]
    assert page == [
        "where it went", "", "cause", "total", "P", "prefill", "3.04 ms", "D", "decode", "—",
        "and 1,200 more",
    ]  # fmt: skip


def test_a_swatch_has_its_colour_in_the_terminal_and_on_the_page() -> None:
    first = next(line for line in lay_out([TOTALS], 60) if line and line[0].text == "P")
    spans = [each for each in parts(components([TOTALS])) if type(each).__name__ == "Span"]

    assert "#46c3fe" in str(first[0].style).lower()
    colours = [getattr(each, "style", None) for each in spans]
    assert colours == [{"--colour": shade("#46C3FE")}, {"--colour": shade("#F5B971")}]
