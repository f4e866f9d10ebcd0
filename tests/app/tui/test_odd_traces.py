"""Traces and terminals that are not what one expects: clear words, no crash, no tricks."""

from __future__ import annotations

from functools import cache

import pytest
from rich.cells import cell_len

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.tui.pages import PAGES
from stepscope.ingest.trace import Trace
from tests.app.tui.stage import (
    NARROW,
    RESULT,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_lines,
    screen_text,
    state_of,
)
from tests.tiers import sampled, slow
from tests.traces import trace_of

NAMES = (
    "[red]x[/]", "[@click=app.quit]go[/]", "\x1b[31mred", "line\nbreak", "tab\tand\0nul",
    "日本語の名前はとても長い", "e\u0301\u0302\u0303 combining", "👩‍👩‍👧 family",
    "\u202eright to left",
    "%s{}{{x}}", "a" * 300, "",
)  # fmt: skip
CLEAN = CheckResult("trace", (), {}, {"COR001": 0}, ("core_spans",))
MORE_KEYS = {"timeline": ["j", "j", "l", "l", "f", "f"], "step": ["right_square_bracket", "j"]}
VISITS = {
    tab.name: [str(number), *MORE_KEYS.get(tab.name, [])] for number, tab in enumerate(PAGES, 1)
}
"""What is pressed on each page, whichever there are."""


@cache
def hostile_trace() -> Trace:
    """Every text of it is hostile, in every table that is drawn."""
    each = list(enumerate(NAMES))
    return trace_of(
        name="[bold]evil[/]\x1b[2J.trace",
        scenario="[red]",
        variant="\x1b[31m",
        steps=[
            {"step": k, "ts_ns": 1_000 * k, "dur_ns": 900, "kind": "mixed", "executed_path": name}
            for k, name in each
        ],
        batch_rows=[
            {"step": k, "ts_ns": 1_000 * k, "request": name, "phase": "decode", "num_tokens": 1}
            for k, _ in each
            for name in NAMES
        ],
        lifecycle=[
            {"step": 0, "ts_ns": 0, "request": name, "event": "arrive", "queue_index": k}
            for k, name in each
        ],
        decisions=[
            {
                "step": 0, "ts_ns": 0, "subject_kind": "request", "subject": name,
                "verdict": "passed-over", "reason": name, "resource": name, "holder": name,
            }
            for name in NAMES
        ],
        allocations=[
            {"step": 0, "ts_ns": 0, "resource": "slot", "id": k, "op": "claim", "owner": name}
            for k, name in each
        ],
        tasks=[
            {"ts_ns": 0, "task": k, "name": name, "shape": "AIC", "num_blocks": 1}
            for k, name in each
        ],
        core_spans=[
            {
                "step": k, "ts_ns": 1_000 * k, "end_ns": 1_000 * k + 900, "task": k, "block": 0,
                "shape": "AIC", "group": 0, "core": 0, "core_kind": "AIC",
            }
            for k, _ in each
        ],
        spans=[
            {
                "ts_ns": 1_000 * k, "dur_ns": 900, "track": name, "name": name, "category": name,
                "form": "slice", "args": '{"[b]": "\\u001b[31m"}',
            }
            for k, name in each
        ],
        counters=[
            {"ts_ns": 1_000 * k, "name": name, "unit": name, "value": float(k)} for k, name in each
        ],
    )  # fmt: skip


def hostile_findings() -> CheckResult:
    found = tuple(
        Finding(
            name, name, Severity.ERROR, name, name, request=name, ts_ns=0, evidence={name: name}
        )
        for name in NAMES
    )
    return CheckResult("[b]", found, {}, {"COR001": 0}, ("core_spans",))


async def test_hostile_names_are_shown_as_the_text_that_they_are() -> None:
    async with opened(hostile_trace(), hostile_findings(), NARROW) as pilot:
        for keys in (*VISITS.values(), ["n", "n"]):
            await press(pilot, *keys)
            text = screen_text(pilot)
            assert not [char for char in text if char != "\n" and not char.isprintable()]
            assert {cell_len(line) for line in screen_lines(pilot)} == {NARROW[0]}
        assert pilot.app.is_running
        await press(pilot, "1")
        assert "[bold]evil[/]·[2J.trace" in screen_text(pilot)


@slow
async def test_markup_in_a_name_is_not_obeyed() -> None:
    async with opened(hostile_trace(), hostile_findings()) as pilot:
        await press(pilot, "3", "j")
        assert "[@click=app.quit]go[/]" in screen_text(pilot)


async def test_an_empty_trace_says_that_it_is_empty() -> None:
    said = {
        "overview": "has no rows",
        "timeline": "no steps, requests, cores",
        "findings": "Nothing was read",
        "step": "no steps",
    }
    async with opened(trace_of(name="empty.trace"), None) as pilot:
        for page, keys in VISITS.items():
            await press(pilot, *keys)
            assert said.get(page, "") in screen_text(pilot)
        await press(pilot, "n", "right_square_bracket", "m", "m", "p", "z", "G", "slash", "x")
        assert pilot.app.is_running


@slow
async def test_what_no_rule_could_judge_is_not_said_to_be_clean() -> None:
    spans = [{"track": "main", "name": "work", "form": "slice", "dur_ns": 5}]
    async with opened(trace_of(spans=spans), None) as pilot:
        assert "○ no rule could judge what ran." in screen_text(pilot)
        assert "○ no rule could judge" in screen_lines(pilot)[0]
        await press(pilot, "3")
        assert "No rule could judge what ran: 2 of " in screen_text(pilot)
        assert "nothing found" not in screen_text(pilot)


@slow
async def test_a_trace_of_spans_alone_is_drawn_by_its_tracks() -> None:
    spans = [
        {
            "ts_ns": 1_700_000_000_000_000_000 + 1_500 * k, "dur_ns": 1_400, "name": f"aten::op{k}",
            "track": "python / thread 1", "category": "cpu_op", "form": "slice",
        }
        for k in range(20)
    ]  # fmt: skip
    async with opened(trace_of(spans=spans), CLEAN) as pilot:
        await press(pilot, "2", "w", "w", "w", "l")
        assert "aten::op0" in screen_text(pilot)
        assert "python" in screen_text(pilot)
        assert screen_lines(pilot)[0].rstrip().endswith("0.000 ms   ✔ nothing found")
        await press(pilot, "4")
        assert "no steps" in screen_text(pilot)
        assert "before the first step" not in screen_text(pilot)


@slow
async def test_a_terminal_that_is_too_small_is_told_so() -> None:
    async with opened(conflict_trace(), RESULT, (40, 24)) as pilot:
        for size in ((40, 24), (80, 9)):
            await pilot.resize_terminal(*size)
            for keys in VISITS.values():
                await press(pilot, *keys)
            text = " ".join(screen_text(pilot).split())
            assert "needs a terminal of 50 x 12 at least" in text, size
        await pilot.resize_terminal(*NARROW)
        await press(pilot, "n")
        assert "COR001" in screen_text(pilot), "it comes back when there is room"


@slow
@pytest.mark.parametrize("size", sampled([(50, 12), (240, 60)], [(50, 12)]), ids=str)
async def test_every_size_from_the_least_on_shows_every_page(size: tuple[int, int]) -> None:
    async with opened(conflict_trace(), RESULT, size) as pilot:
        said = {"overview": "tokens", "timeline": "steps", "findings": "COR001", "step": "BATCH"}
        for page, keys in VISITS.items():
            await press(pilot, *keys)
            assert said.get(page, "") in screen_text(pilot)
        await press(pilot, "n")
        assert any(line.startswith("▌") for line in screen_lines(pilot))
        assert state_of(pilot).finding == 0
        assert app_of(pilot).page == "timeline"


@slow
async def test_real_profiles_open(shared_data: object) -> None:
    path = f"{shared_data}/kineto/vllm_cpu_tiny_llama_preemptions.json.gz"
    async with opened(Trace.open(path), CLEAN) as pilot:
        assert "133 STEPS" in screen_text(pilot)
        await press(pilot, "2", "w", "w", "w", "w")
        assert "P 3" in screen_text(pilot)
