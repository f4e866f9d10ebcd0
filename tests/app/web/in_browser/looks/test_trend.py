"""The page of `stepscope trend` in a real browser: drawn from a disk, without a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from stepscope.analyzers.many_runs.trend import trend
from stepscope.app.web.trend.figures_page import trend_page
from tests.app.web.in_browser.conftest import PATIENCE_MS
from tests.tiers import slow

pytestmark = pytest.mark.web
HOSTILE = "</script><script>owned = 1</script><img src=x onerror='owned = 1'><b>bold</b>"
METRICS = ("ttft_p99_ns", "preemptions")

Scheme = Literal["dark", "light"]
Opened = Callable[[Scheme], Page]


@pytest.fixture(scope="module")
def opened(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Open the page of 24 runs, slower from the 13th on; nothing is fetched or goes wrong."""
    random = np.random.default_rng(6)
    rows = [
        {
            "trace": f"{HOSTILE}-{place}", "producer": HOSTILE, "preemptions": place % 2,
            "ttft_p99_ns": float(random.normal(150e6 if place >= 12 else 120e6, 2e6)),
        }
        for place in range(24)
    ]  # fmt: skip
    file = tmp_path_factory.mktemp("trend") / "trend.html"
    file.write_text(trend_page(trend(rows, METRICS)), encoding="utf-8")
    wrong: list[str] = []
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: wrong.append(f"uncaught {error}"))
    page.on("console", lambda said: wrong.append(f"{said.type} {said.text}"))
    page.on("request", lambda sent: None if sent.url == file.as_uri()
            or sent.url.startswith("data:") else wrong.append(sent.url))  # fmt: skip

    def open_page(scheme: Scheme) -> Page:
        page.emulate_media(color_scheme=scheme)
        page.goto(file.as_uri())
        return page

    yield open_page
    page.close()
    assert wrong == []


@slow
def test_each_metric_is_drawn_and_a_change_point_is_named(opened: Opened) -> None:
    page = opened("dark")

    drawn = page.locator(".figure .main-svg .scatterlayer")
    expect(drawn).to_have_count(len(METRICS))
    expect(page.locator("#figure-0 .annotation-text")).to_contain_text("◆ +2")
    expect(page.locator("#figure-1 .annotation-text")).to_have_count(0)
    expect(page.locator("h1")).to_contain_text("1 change point")


def test_a_pointer_on_a_point_says_which_run_it_is_and_its_value(opened: Opened) -> None:
    page = opened("dark")

    point = page.locator("#figure-0 .points path").nth(12).bounding_box()
    assert point is not None
    page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)

    said = page.locator("#figure-0 .hoverlayer")
    expect(said).to_contain_text(" ms")
    expect(said).to_contain_text("</script><script>")


def test_text_of_a_trace_is_neither_script_nor_markup(opened: Opened) -> None:
    page = opened("dark")

    expect(page.locator("#figure-0 .main-svg").first).to_be_visible()
    assert page.evaluate("typeof owned") == "undefined"
    assert page.locator("img, b").count() == 0
    expect(page.locator("h2")).to_contain_text("<b>bold</b>")


def test_the_figures_are_light_or_dark_as_the_system_is(opened: Opened) -> None:
    schemes: tuple[Scheme, ...] = ("dark", "light")
    colours = {
        scheme: opened(scheme)
        .locator("#figure-0 .annotation-text")
        .evaluate("each => getComputedStyle(each).fill")
        for scheme in schemes
    }

    assert colours["dark"] == "rgb(230, 237, 243)"
    assert colours["light"] != colours["dark"]
