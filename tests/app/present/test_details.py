"""The details of what is selected: the terminal and the page say the same, word for word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from stepscope.app.present.about import identity
from stepscope.app.present.blocks import Block, Fact, Paragraph
from stepscope.app.present.details import selection_blocks
from stepscope.app.timeline import Composition, Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.tui.pages.overview_words import about as overview
from stepscope.app.tui.widgets.prose import Shown, lay_out
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.details import about
from stepscope.app.web.resolve import resolve
from tests.app.present.test_renderers import texts
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.looped import looped
from tests.traces import trace_of

OF_THE_PAGE = ("copy", "link")
DRAWN = ("·", "→")
"""What stands between words in one front, where the other has lines or columns."""


@pytest.fixture(scope="module")
def loaded() -> LoadedTrace:
    return loaded_of(conflict_trace())


def words(told: Iterable[str], *, without: tuple[str, ...]) -> Counter[str]:
    found = Counter(" ".join(told).casefold().split())
    is_text = {word for word in found if word not in without and set(word) != {"─"}}
    return Counter({word: found[word] for word in is_text})


def in_terminal(blocks: list[Shown] | list[Block]) -> Counter[str]:
    lines = lay_out(blocks, 10_000)
    return words((piece.text for line in lines for piece in line), without=DRAWN)


def on_page(loaded: LoadedTrace, address: str) -> Counter[str]:
    return words(texts(about(loaded, resolve(loaded, address))), without=(*DRAWN, *OF_THE_PAGE))


def test_both_fronts_say_the_same_of_a_finding(loaded: LoadedTrace) -> None:
    selected = Selection(finding=loaded.findings["COR001.1"])
    blocks = selection_blocks(selected, loaded.timeline, loaded.trace)

    assert in_terminal(blocks) == on_page(loaded, "?finding=COR001.1")


def test_both_fronts_say_the_same_of_a_span(loaded: LoadedTrace) -> None:
    span = loaded.timeline.at(0, loaded.origin + 250_000)
    blocks = selection_blocks(Selection(span=span), loaded.timeline, loaded.trace)

    assert in_terminal(blocks) == on_page(loaded, "?sel=0@250000")


def test_both_fronts_say_what_a_trace_is_as_the_command_does(loaded: LoadedTrace) -> None:
    told = words((text for fact in identity(loaded.trace) for text in fact), without=DRAWN)
    head = overview(loaded.trace, Composition.of(loaded.trace)).head

    assert told
    assert told <= in_terminal(list(head))
    assert told <= on_page(loaded, "")


def test_the_details_of_a_request_say_what_its_client_calls_it() -> None:
    rows = [
        {"ts_ns": 3, "request": "9f-1", "event": "receive", "external_id": "chat-17"},
        {"ts_ns": 700, "request": "9f-1", "event": "arrive"},
    ]
    trace = trace_of(lifecycle=rows)
    timeline = Timeline(trace)
    span = timeline.at(timeline.lanes[0].id, 5)

    told = selection_blocks(Selection(span=span), timeline, trace)

    assert Fact("client's id", ("chat-17",)) in told


@looped(
    ("batch", "said"),
    [
        ([], "running on request r"),
        ([{"step": 1, "ts_ns": 500, "row": 0, "request": "q"}], "in no batch on request r"),
    ],
    ids=["no batch is recorded", "others were in batches"],
)
def test_a_request_that_was_let_in_is_said_to_be_in_no_batch_only_where_batches_are_known(
    batch: list[dict[str, Any]], said: str
) -> None:
    life = [
        {"ts_ns": at, "request": "r", "event": event}
        for at, event in ((0, "arrive"), (100, "admit"), (300, "finish"))
    ]
    whole = [{**row, "phase": "decode", "num_tokens": 1} for row in batch]
    trace = trace_of(lifecycle=life, batch_rows=whole)
    timeline = Timeline(trace)
    (lane,) = (each.id for each in timeline.lanes if each.label == "r")

    blocks = selection_blocks(Selection(span=timeline.at(lane, 200)), timeline, trace)

    assert said in [block.text for block in blocks if isinstance(block, Paragraph)]
