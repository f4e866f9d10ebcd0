"""On every tab, in narrow and in wide windows, no text lies over another or is cut unsaid.

The quick test has axe-core look at the same tabs, as most of its time is to open them.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from stepscope.app.web import panes
from tests.app.web.in_browser.hands import Open
from tests.app.web.in_browser.looks.geometry import AXE, NO_AXE, Size, each_tab, faults, muddled
from tests.tiers import slow

pytestmark = pytest.mark.web

SAMPLES = ("fcfs-preemption-before.trace", "vllm_crowd.trace", "torch_profiler_cpu.json.gz")
SIZES = ((1000, 700), (1280, 800), (2560, 1440))


@slow
def test_every_tab_is_legible_at_two_sizes_and_axe_finds_nothing(visit: Open, sized: Page) -> None:
    """Around the drawer the page is the same on every tab: axe looks at it on the first."""
    sizes, is_there = (SIZES[0], SIZES[-1]), AXE.exists()
    cut: dict[str, list[str]] = {}
    found: dict[str, list[str]] = {}
    for place in each_tab(visit, sized, SAMPLES[0], sizes, 1):
        cut[place] = muddled(sized)
        tab = place.split(",")[0]
        if is_there and tab not in found:
            if not found:
                sized.evaluate(AXE.read_text("utf-8"))
            found[tab] = faults(sized, "#drawer" if found else "html")

    assert len(cut) == len(sizes) * len(panes.PANES)
    assert cut == {place: [] for place in cut}
    if not is_there:
        pytest.skip(f"text is legible, and {NO_AXE}")
    assert found == {tab.name: [] for tab in panes.PANES}


@slow
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", SAMPLES)
def test_no_text_lies_over_another_or_is_cut_without_an_ellipsis(
    name: str, size: Size, visit: Open, sized: Page
) -> None:
    wrong = {tab: muddled(sized) for tab in each_tab(visit, sized, name, (size,), 2)}

    assert len(wrong) == 2 * len(panes.PANES)
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
