"""Opening: slow work in threads, progress on the screen, failures in one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepscope.analyzers.check import run
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.tui.pages import loading as opening
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace
from tests.app.tui.stage import RESULT, app_of, conflict_trace, opened, press, screen_text, settle
from tests.tiers import slow


@slow
async def test_without_a_result_the_rules_run_and_their_findings_appear() -> None:
    async with opened(conflict_trace(), None) as pilot:
        result = app_of(pilot).result
        assert result == run.check(conflict_trace())
        assert "✖ COR001" in screen_text(pilot)


@slow
async def test_progress_is_told_while_a_trace_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    real = opening.read_models

    def read(trace: Trace, progress: Callable[[str], None]) -> opening.Models:
        def tell(text: str) -> None:
            told.append(text)
            progress(text)

        return real(trace, tell)

    monkeypatch.setattr(opening, "read_models", read)
    async with opened(conflict_trace(), RESULT):
        assert told[0] == "laying out lanes"
        assert len(told) == len(set(told)) > 2


async def test_a_rule_that_fails_is_said_in_one_line_and_the_trace_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StepscopeError("rule COR001 failed: [b]boom[/]", todo="leave it out")

    monkeypatch.setattr(opening, "check", fail)
    async with opened(conflict_trace(), None) as pilot:
        assert app_of(pilot).page == "overview"
        for page in ("1", "2", "3"):
            await press(pilot, page)
            assert "rule COR001 failed: [b]boom[/];" in screen_text(pilot)
            assert "The rules are running" not in screen_text(pilot)


async def test_a_trace_that_cannot_be_drawn_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(opening, "read_models", fail)
    async with opened(conflict_trace(), None) as pilot:
        assert "cannot lay out the trace: ZeroDivisionError: a bug of ours" in screen_text(pilot)
        assert "report this as a bug" in screen_text(pilot)


async def test_keys_before_the_trace_is_there_do_nothing() -> None:
    app = StepscopeApp(conflict_trace(), RESULT)
    async with app.run_test() as pilot:
        for key in ("n", "slash", "colon", "2", "right_square_bracket", "escape"):
            await pilot.press(key)
        await settle(pilot)
        assert app.is_running
