"""Both fronts move about a timeline alike: the same keys lead to the same range, rows and marks.

The terminal is driven by its pilot, the page in a headless Chromium.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Page

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.app.timeline.flows.outlines import outlines
from stepscope.app.timeline.keymap import KEYMAP
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.actions import textual
from stepscope.app.web.loaded import LoadedTrace
from tests.app.tui import stage
from tests.app.web.in_browser.hands import Open
from tests.tiers import sampled

pytestmark = pytest.mark.web
State = dict[str, Any]
WALKS = {
    "zoom": "w w w s s s s",
    "zoom as far as it goes": "G w w w w w w w w w w w w w w w w w w w w",
    "pan beyond both ends": "w w d d a G d a g a",
    "the whole and the ends": "w w G g d 0",
    "findings around the end": "n n n N w s",
    "steps": "] ] w w w ] ] ] ] [ [",
    "a step after a finding": "n Escape ] ] [",
    "spans": "j l l l h w w w w l l l l l l",
    "a span, centred and fitted": "j l l f f",
    "lanes": "j j l j k n j j",
    "a marked range": "j l m l l m f f Escape Escape",
    "lanes of a mark": "j l m l m M l M j M M Escape",
    "what is in view, marked": "w w d v M a v 0 v Escape",
    "arrows and a path": "j l l } { x } Escape x",
    "colours": "o j l o l o",
    "pinned lanes": "j j p j j p k k p",
    "what is collapsed": "j j Z j k Z z j z",
    "what a jump expands": "j z g n Z n",
    "every key once": "w d d a s G g 0 n n N Escape ] ] [ j l l h f k j m l m M v } { x Escape o p "
    "j Z z",
}
QUICK = "every key once"
LOOK = """async () => {
  const { flush } = await import("/assets/address.js");
  const { state, rows } = await import("/assets/stage.js");
  flush();
  while (document.getElementById("page")?.getAttribute("aria-busy") !== "false")
    await new Promise(requestAnimationFrame);
  return {
    ...state(), rows: rows().map(({ kind, group, lanes }) => [kind, group, lanes]),
  };
}"""
"""What is looked at once a key is done; what it notes is put down without a delay of 150 ms."""


@cache
def result() -> CheckResult:
    return check(stage.conflict_trace())


def told(navigator: Navigator) -> State:
    """What is looked at in the terminal, as the page tells of it."""
    first = navigator.timeline.bounds[0]
    span, mark = navigator.span, navigator.mark
    return {
        "range": (navigator.viewport.t0 - first, navigator.viewport.t1 - first),
        "cursor": (navigator.lane, navigator.cursor_ns - first),
        "span": span and (span.start_ns - first, span.end_ns - first, span.label),
        "finding": navigator.finding,
        "mark": mark and [mark[0] - first, mark[1] - first],
        "begun": None if navigator.mark_from is None else navigator.mark_from - first,
        "pins": navigator.pins.copy(),
        "lanes": [*navigator.marked_lanes],
        "colours": navigator.timeline.colours,
        "outlines": [
            [each.lane, each.start_ns - first, each.end_ns - first, each.why]
            for each in outlines(navigator.selection, navigator.timeline)
        ],
        "rows": [
            (row.kind, row.group if row.kind != "section" else row.section,
             [lane.id for lane in row.lanes])
            for row in navigator.rows
            if row.section != "pinned"
        ],
    }  # fmt: skip


async def in_terminal(keys: list[str]) -> list[State]:
    async with stage.opened(stage.conflict_trace(), result(), stage.WIDE) as pilot:
        await stage.press(pilot, "2")
        states = []
        for key in keys:
            await stage.press(pilot, textual(key))
            states.append(told(stage.state_of(pilot)))
        return states


def on_page(opened: Any, keys: list[str]) -> list[State]:
    page: Page = opened.go("?tab=flags")
    page.mouse.move(0, 0)  # beside the timeline: keys zoom at the cursor
    named = list(LoadedTrace(stage.conflict_trace(), result()).findings)
    states = []
    for key in keys:
        page.keyboard.press(key)
        shown = page.evaluate(LOOK)
        span = shown["selection"]
        states.append(
            {
                "range": (shown["t0"], shown["t1"]),
                "cursor": (shown["lane"], shown["at"]),
                "span": span and (span["start"], span["end"], span["label"]),
                "finding": named.index(shown["finding"]) if shown["finding"] else None,
                "mark": shown["mark"],
                "begun": shown["begun"],
                "pins": shown["pin"],
                "lanes": shown["lanes"],
                "colours": shown["colours"],
                "outlines": shown["outlines"],
                "rows": [tuple(row) for row in shown["rows"]],
            }
        )
    return states


def differences(keys: list[str], one: list[State], other: list[State]) -> list[str]:
    return [
        f"{key} (key {at}): {name} is {a[name]} in the terminal, {b[name]} on the page"
        for at, (key, a, b) in enumerate(zip(keys, one, other, strict=True), 1)
        for name in a
        if not is_same(a[name], b[name])
    ]


def is_same(one: object, other: object) -> bool:
    """Equal; ends of ranges up to a ns, as a browser's numbers are floats."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other) == 2:
        return all(a == b or (a and b and abs(a - b) <= 1) for a, b in zip(one, other, strict=True))
    return one == other


@pytest.mark.parametrize("name", sampled(WALKS, [QUICK]))
def test_the_same_keys_lead_to_the_same_place_in_the_terminal_and_on_the_page(
    revisit: Open,
    name: str,
) -> None:
    keys = WALKS[name].split()
    with ThreadPoolExecutor(1) as aside:  # this thread has the browser's loop
        terminal = aside.submit(asyncio.run, in_terminal(keys))
        page = on_page(revisit(stage.conflict_trace()), keys)

    assert differences(keys, terminal.result(), page) == []


def test_the_quick_walk_presses_every_key_that_moves() -> None:
    pressed = {*WALKS[QUICK].split()}

    assert {each.action for each in KEYMAP if not pressed.intersection(each.keys)} == {
        "search",
        "help",
        "picture",
        "light",
        "rules",
    }
