"""Hostile, empty, foreign and real traces, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from stepscope.ingest.trace import Trace
from tests.app.timeline.profiles import kernel
from tests.app.web.in_browser.hands import Open, press
from tests.app.web.small_traces import HOSTILE, LINK, SCRIPT, conflict_trace
from tests.tiers import slow
from tests.traces import trace_of

pytestmark = pytest.mark.web


def test_names_from_a_trace_are_shown_as_text(visit: Open) -> None:
    opened = visit(
        conflict_trace(
            request=HOSTILE, push=SCRIPT, mix=LINK, counter=HOSTILE, reason=SCRIPT, trace=LINK,
            scenario=HOSTILE,
        )
    )  # fmt: skip

    page = opened.go("?finding=COR001.1")
    expect(page.locator("#about")).to_contain_text(f"{LINK} 7/8 took")
    expect(page.locator("#about")).to_contain_text(f"{SCRIPT} 31/32 held")
    expect(page.locator("#names")).to_contain_text(HOSTILE)
    expect(page.locator("#trace")).to_contain_text(HOSTILE)
    for tab in ("overview", "step", "table", "sql"):
        page.locator(f"#tab-{tab}").click()
        opened.settle()
    page.locator("#find").fill(HOSTILE[:8])
    expect(page.locator("#hits")).to_contain_text(HOSTILE)
    page.keyboard.press("Enter")
    opened.settle()
    page.mouse.move(700, 300)

    assert page.evaluate("() => window.hacked") is None
    assert page.locator("#page img, #page script, #page svg[onload]").count() == 0


@slow
def test_an_empty_trace_says_so(visit: Open) -> None:
    opened = visit(trace_of(name="empty.trace"))

    page = opened.go()
    for tab in ("overview", "step", "table", "sql", "findings"):
        page.locator(f"#tab-{tab}").click()
        opened.settle()
    press(opened, "w d n ] l j f G m p Escape")

    expect(page.locator("#nothing")).to_be_visible()


@slow
def test_bare_spans_of_a_profiler_are_shown(visit: Open, shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "hta_event_sync_trace.json.gz")
    opened = visit(trace)

    page = opened.go()
    expect(page.locator("#names .row.section", has_text="tracks")).to_be_visible()
    lane = page.locator("#names .row.lane").first
    lane.locator(".pin").dispatch_event("click")
    press(opened, "w w d s n")

    assert page.locator("#pinned .row").count() == 1


@slow
def test_names_of_kernels_leave_room_for_the_rest_of_the_bar_and_open_by_the_pointer(
    visit: Open,
) -> None:
    kernels = [kernel(f"a_kernel_whose_name_is_long_{n}", 100 * n, 90 - n) for n in range(9)]
    page = visit(trace_of(spans=kernels)).go()

    help_button, last = page.locator("#ask-help"), page.locator("#legend .chip.at-first").last
    expect(help_button).to_be_in_viewport(ratio=1)
    bar = page.locator("#bar").bounding_box()
    below = last.bounding_box()
    assert bar
    assert below
    assert below["y"] > bar["y"] + bar["height"] - 4
    page.locator("#legend").hover()
    last.click()
    expect(last).to_have_class("chip at-first off")


@slow
def test_python_is_collapsed_below_the_threads_and_a_click_expands_it(visit: Open) -> None:
    python = {"track": "CPU / thread 1", "category": "python_function", "name": "main", "dur_ns": 9}
    opened = visit(trace_of(spans=[python, {**python, "category": "cpu_op", "name": "aten::mm"}]))

    page = opened.go()
    lanes = page.locator("#names .row.lane")
    expect(lanes).to_have_count(1)
    page.locator("#names .row.section", has_text="Python").click()
    opened.settle()
    expect(lanes).to_have_count(2)
    page.reload()
    opened.settle()
    expect(lanes).to_have_count(2)


@pytest.mark.parametrize(
    ("name", "position"),
    [
        pytest.param("vllm_cpu_tiny_llama_preemptions", "of 133 ·", marks=slow),
        pytest.param("sglang_qwen3_8b_prefilldecode", "of 1 ·"),
        pytest.param("vllm_prefilldecode_mi300", "of 1 ·", marks=slow),
    ],
)
def test_the_engine_steps_of_a_real_profile_are_shown(
    visit: Open, shared_data: Path, name: str, position: str
) -> None:
    opened = visit(Trace.open(shared_data / "kineto" / f"{name}.json.gz"))

    page = opened.go("?step=1")

    expect(page.locator("#position")).to_contain_text(position)
    expect(page.locator("#names .row.section", has_text="steps")).to_be_visible()
    expect(page.locator("#findings, #drawer")).to_contain_text("TRC003")
