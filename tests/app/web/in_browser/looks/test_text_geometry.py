"""On every tab, in narrow and in wide windows, no text lies over another or is cut unsaid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from stepscope.app.web import panes
from tests.app.web.in_browser.hands import Open, sample
from tests.app.web.in_browser.looks.geometry import grounds_at, muddled
from tests.tiers import sampled

pytestmark = pytest.mark.web

SAMPLES = ("fcfs-preemption-before.trace", "vllm_crowd.trace", "torch_profiler_cpu.json.gz")
SIZES = ((1000, 700), (1280, 800), (2560, 1440))
Case = tuple[str, int, int, int]
QUICK: list[Case] = [(SAMPLES[0], *size, 1) for size in (SIZES[0], SIZES[-1])]
CASES: list[Case] = [*QUICK, *((name, *size, 2) for name in SAMPLES for size in SIZES)]
"""A sample, the size of the window, and on how many grounds each tab is looked at."""


def each_tab(
    visit: Open, page: Page, name: str, width: int, height: int, num_grounds: int
) -> Iterator[str]:
    """Each tab in turn, on a dark ground, on a light one or on both, as the page stands there."""
    page.set_viewport_size({"width": width, "height": height})
    opened = visit(sample(name))
    opened.go("?step=3")
    for number, tab in enumerate(panes.PANES):
        page.locator(f"#tab-{tab.name}").click()
        for theme in grounds_at(number, num_grounds):
            page.emulate_media(color_scheme=theme)
            opened.settle()
            page.mouse.move(0, 0)
            yield f"{tab.name}, {theme}"


@pytest.mark.parametrize("case", sampled(CASES, QUICK), ids=str)
def test_no_text_lies_over_another_or_is_cut_without_an_ellipsis(
    case: Case, visit: Open, sized: Page
) -> None:
    wrong = {tab: muddled(sized) for tab in each_tab(visit, sized, *case)}

    assert len(wrong) == case[-1] * len(panes.PANES)
    assert wrong == {tab: [] for tab in wrong}


def test_text_that_lies_over_another_or_is_cut_is_seen(window: Page) -> None:
    window.set_content(
        "<p style='position:absolute;top:0'>under it</p><p style='position:absolute;top:0'>over</p>"
        "<p style='position:absolute;top:60px;width:9px;overflow:hidden;'>cut</p>"
        "<button style='position:absolute;top:99px;width:20px;padding:0'>wider than it is</button>"
    )

    assert muddled(window) == [
        "cut: cut", "out of its box: wider than it is", "over each other: under it | over",
    ]  # fmt: skip
