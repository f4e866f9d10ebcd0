"""The details of what is selected: the terminal and the page say the same, word for word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from stepscope.app.present.about import identity
from stepscope.app.present.blocks import Block
from stepscope.app.timeline import Composition
from stepscope.app.timeline.navigator import Selection
from stepscope.app.tui.pages.describe import describe
from stepscope.app.tui.pages.overview_words import about as overview
from stepscope.app.tui.widgets.prose import Shown, lay_out
from stepscope.app.web.panes.details import about
from stepscope.app.web.resolve import resolve
from stepscope.app.web.scene import Scene
from tests.app.present.test_renderers import texts
from tests.app.web.scenes import conflict_trace, scene_of

OF_THE_PAGE = ("copy", "link")
DRAWN = ("·",)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return scene_of(conflict_trace())


def words(told: Iterable[str], *, without: tuple[str, ...]) -> Counter[str]:
    found = Counter(" ".join(told).casefold().split())
    return Counter({word: number for word, number in found.items() if word not in without})


def in_terminal(blocks: list[Shown] | list[Block]) -> Counter[str]:
    lines = lay_out(blocks, 10_000)
    return words((piece.text for line in lines for piece in line), without=DRAWN)


def on_page(scene: Scene, address: str) -> Counter[str]:
    return words(texts(about(scene, resolve(scene, address))), without=(*DRAWN, *OF_THE_PAGE))


def test_both_fronts_say_the_same_of_a_finding(scene: Scene) -> None:
    selected = Selection(finding=scene.findings["COR001.1"])
    blocks = describe(selected, scene.timeline, scene.trace)

    assert in_terminal(blocks) == on_page(scene, "?finding=COR001.1")


def test_both_fronts_say_the_same_of_a_span(scene: Scene) -> None:
    span = scene.timeline.at(0, scene.origin + 250_000)
    blocks = describe(Selection(span=span), scene.timeline, scene.trace)

    assert in_terminal(blocks) == on_page(scene, "?sel=0@250000")


def test_both_fronts_say_what_a_trace_is_as_the_command_does(scene: Scene) -> None:
    told = words((text for fact in identity(scene.trace) for text in fact), without=DRAWN)
    head = overview(scene.trace, Composition.of(scene.trace)).head

    assert told
    assert told <= in_terminal(list(head))
    assert told <= on_page(scene, "")
