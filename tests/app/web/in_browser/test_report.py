"""A report that is opened from a disk, in a real browser: no request, no error, all of it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from stepscope.app.kept.flags import Flag, Flags
from stepscope.app.timeline.flags.flag_at import FlagsOnLanes
from stepscope.app.web.report.document import document
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.web.in_browser.conftest import PATIENCE_MS
from tests.app.web.small_traces import HOSTILE, LINK, SCRIPT, conflict_trace, loaded_of
from tests.conftest import ROOT
from tests.tiers import sampled, slow
from tests.traces import trace_of

pytestmark = pytest.mark.web
FAR_NS = 2**62

Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def sheet(chromium: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page for reports, and what was fetched and went wrong on it."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"uncaught {error}"))
    page.on("console", lambda said: wrong.append(f"{said.type} {said.text}"))
    page.on("request", lambda sent: wrong.append(sent.url) if leaves(sent.url) else None)
    yield page, wrong
    page.close()


@cache
def report_of(*traces: Trace) -> str:
    return document([loaded_of(each) for each in traces], lambda _what, _done, _total: None)


@pytest.fixture
def opened(sheet: tuple[Page, list[str]], tmp_path: Path) -> Iterator[Opened]:
    """Open the report of traces; at the end nothing was fetched and nothing went wrong."""
    page, wrong = sheet
    wrong.clear()

    def open_report(*traces: Trace, flags: Flags | None = None) -> Page:
        file = tmp_path / "report.html"
        if flags:
            (loaded,) = map(loaded_of, traces)
            loaded.flags = FlagsOnLanes(flags, loaded.timeline.lanes)
            made = document([loaded], lambda _what, _done, _total: None)
        else:
            made = report_of(*traces)
        file.write_text(made, encoding="utf-8")
        page.goto(file.as_uri())
        settle(page)
        return page

    yield open_report
    assert wrong == []


def leaves(url: str) -> bool:
    return not url.startswith(("data:", "blob:")) and "/report.html" not in url


def settle(page: Page) -> None:
    expect(page.locator("#page")).to_have_attribute("aria-busy", "false")


def painted(page: Page, y: float) -> list[list[int]]:
    """The colours of a line of the canvas, which is read once."""
    return page.evaluate(  # type: ignore[no-any-return]  # JSON
        """(y) => {
          const all = document.querySelector("#canvas");
          const { data } = all.getContext("2d").getImageData(0, y * devicePixelRatio, all.width, 1);
          return Array.from({ length: all.width }, (_, x) => [...data.slice(4 * x, 4 * x + 3)]);
        }""",
        y,
    )


def row_top(page: Page, name: str) -> tuple[float, float]:
    """Where the row of a lane is in the window, and how far down on the canvas."""
    page.locator("#part-timeline").scroll_into_view_if_needed()
    page.evaluate("() => document.querySelector('#part-timeline').scrollIntoView()")
    row = page.locator("#names .row", has_text=name).bounding_box()
    canvas = page.locator("#canvas").bounding_box()
    assert row
    assert canvas
    return row["y"], row["y"] - canvas["y"]


def test_a_click_on_a_waiting_bar_says_why_it_waits(opened: Opened) -> None:
    page = opened(Trace.open(ROOT / "sample_traces" / stories.CROWD))
    y, _ = row_top(page, stories.WAITER)
    canvas = page.locator("#canvas").bounding_box()
    assert canvas

    page.mouse.click(canvas["x"] + canvas["width"] / 5, y + 8)

    about = page.locator("#about")
    expect(about).to_contain_text(stories.WAITED)
    for fact in stories.WAITED_FOR:
        expect(about).to_contain_text(fact, ignore_case=True)


@slow
def test_n_goes_to_a_finding_and_shows_its_evidence_beside_it(opened: Opened) -> None:
    page = opened(conflict_trace())
    page.keyboard.press("n")
    settle(page)

    expect(page.locator("#about h2")).to_have_text("COR001.1")
    expect(page.locator("#about")).to_contain_text("evidence")
    expect(page.locator("#names .row.current")).to_contain_text("AIV1")


def test_a_finding_of_the_list_leads_to_the_timeline(opened: Opened) -> None:
    page = opened(conflict_trace())
    page.locator("#A-COR001\\.1 summary").click()
    page.locator("#A-COR001\\.1 .show").click()
    settle(page)

    expect(page.locator("#about h2")).to_have_text("COR001.1")
    expect(page.locator("#stage")).to_be_in_viewport()


def test_what_a_lane_shows_is_told_by_a_click(opened: Opened) -> None:
    page = opened(conflict_trace())
    top, _ = row_top(page, "engine")
    canvas = page.locator("#canvas").bounding_box()
    assert canvas
    page.mouse.click(canvas["x"] + 20, top + 10)

    expect(page.locator("#about")).to_contain_text("takes")
    expect(page.locator("#about")).to_contain_text("prefill")


def test_a_lane_is_painted_in_the_colours_of_its_states(opened: Opened) -> None:
    page = opened(conflict_trace())
    _, down = row_top(page, "engine")
    line = painted(page, down + 5)

    assert line[60] == [0x46, 0xC3, 0xFE]
    assert line[-20] == [0xF5, 0xB9, 0x71]


def test_zooming_and_the_whole_run_again_move_the_window(opened: Opened) -> None:
    page = opened(conflict_trace())
    wide = page.locator("#window").bounding_box()
    page.keyboard.press("w")
    page.keyboard.press("w")
    settle(page)
    near = page.locator("#window").bounding_box()
    page.keyboard.press("0")
    settle(page)

    assert wide
    assert near
    assert near["width"] < wide["width"] / 2
    assert page.locator("#window").bounding_box() == wide


@slow
def test_another_trace_is_chosen_and_where_they_diverge_is_bracketed(opened: Opened) -> None:
    samples = (
        ROOT / "sample_traces" / f"fcfs-preemption-{end}.trace" for end in ("before", "after")
    )
    page = opened(*map(Trace.open, samples))
    expect(page.locator(".choose.on")).to_contain_text("before")
    page.locator(".choose", has_text="after").click()
    expect(page.locator(".choose.on")).to_contain_text("after")
    settle(page)
    wide = page.locator("#window").bounding_box()
    page.locator("#diverge").click()
    settle(page)
    near = page.locator("#window").bounding_box()

    assert wide
    assert near
    assert near["width"] < wide["width"] / 2


@slow
def test_the_view_is_saved_as_a_picture(opened: Opened) -> None:
    page = opened(conflict_trace(trace="small"))
    with page.expect_download() as download:
        page.locator("#save").click()

    saved = Path(download.value.path())
    assert download.value.suggested_filename == "small.png"
    assert saved.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "trace",
    [
        conflict_trace(request=HOSTILE, push=SCRIPT, mix=LINK, counter=HOSTILE, reason=SCRIPT,
                       trace=LINK, scenario=HOSTILE),
        conflict_trace(request="\x1b[2J\u202e\u2066", push="</script><script>window.hacked=1",
                       mix="\x00", counter="]]>", reason="<!--", trace="{plates}"),
        conflict_trace(**dict.fromkeys(("request", "push", "counter", "trace"), "x" * 1_000_000)),
        trace_of(name="empty.trace"),
        trace_of(spans=[
            {"ts_ns": start, "dur_ns": length, "track": "one", "name": "k", "category": "kernel"}
            for start, length in ((-FAR_NS, 5), (0, FAR_NS), (FAR_NS, FAR_NS), (5, 0))
        ], counters=[{"ts_ns": at, "name": "c", "value": 1e308 * (1 - 2 * at)} for at in (0, 1)]),
    ],
    ids=["markup", "control", "long", "empty", "times"],
)  # fmt: skip
def test_a_hostile_trace_is_harmless(opened: Opened, trace: Trace) -> None:
    page = opened(trace)
    for key in "wwnfda0sN":
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    page.mouse.move(700, 500)
    for each in page.locator(".found summary").all():
        each.click()

    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main img, main script, svg[onload]").count() == 0
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("num_lanes", sampled([1_000, 100_000], [1_000]))
def test_a_great_many_lanes_are_no_more_than_a_report_can_hold(
    opened: Opened, num_lanes: int
) -> None:
    rows: list[dict[str, Any]] = [
        {"ts_ns": 10 * at, "dur_ns": 5, "track": f"track {at}", "name": "k", "category": "cpu_op"}
        for at in range(num_lanes)
    ]
    page = opened(trace_of(name="many", spans=rows))
    page.keyboard.press("w")
    settle(page)

    left_out = f"{num_lanes - 512:,} of {num_lanes:,} lanes are not in this report"
    expect(page.locator("main")).to_contain_text(left_out)


def test_flags_are_listed_and_gone_to_and_what_is_noted_is_never_markup(opened: Opened) -> None:
    flags = Flags(None)
    flags.put("early", Flag(50_000, SCRIPT, ("requests", "", "req-0")))
    flags.put("late", Flag(450_000, "two"))
    page = opened(conflict_trace(), flags=flags)

    expect(page.locator("#A-flags")).to_contain_text(SCRIPT)
    page.locator("#flag-marks a").last.click()
    expect(page.locator("#about")).to_contain_text("@late")
    page.keyboard.press("U")
    expect(page.locator("#about")).to_contain_text(SCRIPT)
    page.keyboard.press("u")
    expect(page.locator("#about")).to_contain_text("@late")
    assert page.evaluate("window.hacked") is None
