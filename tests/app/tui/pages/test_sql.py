"""The page of a query in the terminal: typed with completion, recalled, gone from, written."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from stepscope.app.kept.queries import asked, asked_before
from stepscope.app.tui.pages.sql import SqlPage
from stepscope.app.tui.screens.query import QueryScreen
from stepscope.app.tui.widgets.prose import Prose
from tests.app.tui.stage import (
    NARROW,
    RESULT,
    WIDE,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    state_of,
)
from tests.app.web.small_traces import SCRIPT
from tests.app.web.small_traces import conflict_trace as small_trace
from tests.tiers import slow


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of states and a folder to write into of its own."""
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


async def typed(pilot: Pilot[None], query: str) -> None:
    """Open the line and put a query into it as if it were typed."""
    await press(pilot, "8", "e")
    line = pilot.app.screen.query_one(Input)
    line.value, line.cursor_position = query, len(query)
    await settle(pilot)


async def ask(pilot: Pilot[None], query: str) -> SqlPage:
    await typed(pilot, query)
    await press(pilot, "enter")
    return app_of(pilot).query_one(SqlPage)


async def test_tab_completes_what_is_begun_and_goes_through_what_may_follow() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await typed(pilot, "select step from st")
        assert "steps" in screen_text(pilot)
        await press(pilot, "tab")
        line = pilot.app.screen.query_one(Input)
        assert line.value == "select step from steps"
        await typed_on(pilot, line, " where num_")
        first = line.value + ""
        await press(pilot, "tab")
        one = line.value
        await press(pilot, "tab")
        two = line.value
        await press(pilot, "shift+tab")
        assert line.value == one != two
        assert one.startswith(first)


async def typed_on(pilot: Pilot[None], line: Input, more: str) -> None:
    line.value += more
    line.cursor_position = len(line.value)
    await settle(pilot)


async def test_arrows_bring_back_what_was_asked_before_and_what_was_begun() -> None:
    asked("select 1")
    asked("select 2")
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await typed(pilot, "select mine")
        line = pilot.app.screen.query_one(Input)
        seen = []
        for key in ("up", "up", "up", "down", "down"):
            await press(pilot, key)
            seen.append(line.value)
    assert seen == ["select 2", "select 1", "select 1", "select 2", "select mine"]


async def test_a_query_is_run_and_enter_goes_to_what_its_row_names() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        page = await ask(pilot, "select step, ts_ns, kind from steps where step = 6")
        assert "1 row " in app_of(pilot).query_one("#sql-words", Prose).text
        assert "kind" in app_of(pilot).query_one("#sql-row", Prose).text
        await press(pilot, "enter")
        assert app_of(pilot).page == "timeline"
        assert state_of(pilot).cursor_ns == 500_000
        assert page.answer is not None
    assert asked_before() == ["select step, ts_ns, kind from steps where step = 6"]


async def test_a_row_leads_to_the_page_of_what_it_names() -> None:
    pages = {
        "select count(*) as n from steps": "sql",
        "select request from batch_rows where request = 'req-4' limit 1": "request",
        "select step from steps where step = 6": "step",
        "select 'COR001.1' as finding": "timeline",
        "select core, rank, ts_ns from core_spans where task = 66 and core = 5": "timeline",
    }
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        for query, page in pages.items():
            await ask(pilot, query)
            await press(pilot, "enter")
            assert app_of(pilot).page == page, query
            if "finding" in query:
                assert state_of(pilot).finding == 0
        assert state_of(pilot).finding is None
        assert state_of(pilot).span is not None


async def test_a_query_that_does_not_run_is_told_below_the_line_and_can_be_mended() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await ask(pilot, "select stp from steps")
        assert isinstance(pilot.app.screen, QueryScreen)
        assert "no column 'stp'" in screen_text(pilot)
        assert pilot.app.screen.query_one(Input).value == "select stp from steps"


async def test_the_rows_are_written_in_the_form_that_was_chosen() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await ask(pilot, "select step, kind from steps order by step")
        for _ in range(3):
            await press(pilot, "E", "t")
    here = {path.suffix: path for path in Path().iterdir()}
    assert set(here) == {".csv", ".parquet", ".json"}
    rows = pl.read_parquet(here[".parquet"])
    assert rows["step"].to_list() == list(range(1, 13))
    assert json.loads(here[".json"].read_text()) == rows.to_dicts()
    assert pl.read_csv(here[".csv"]).to_dicts() == rows.to_dicts()


@slow
async def test_text_of_the_trace_is_text_in_an_answer() -> None:
    async with opened(small_trace(request=SCRIPT + "[b]\x1b[2J"), None, NARROW) as pilot:
        await ask(pilot, "select request from batch_rows where request like '<b>%' limit 1")
        assert "<b>bold</b>" in screen_text(pilot)
        assert "[b]" in app_of(pilot).query_one("#sql-row", Prose).text
        assert "\x1b" not in screen_text(pilot)
        await press(pilot, "enter")
        assert app_of(pilot).page == "request"


async def test_where_columns_have_no_room_it_is_said_and_h_and_l_show_the_others() -> None:
    names = [f"column_{at}" for at in range(9)]
    query = "select " + ", ".join(f"{at} as {name}" for at, name in enumerate(names))
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        page = await ask(pilot, query)
        words = page.query_one("#sql-words", Prose)
        assert "columns 1 to 7 of 9, h l shows others" in words.text
        assert "column_8" not in screen_text(pilot).split("column_0", 2)[1].split("\n")[0]

        await press(pilot, "l", "l", "l", "l")
        assert "columns 3 to 9 of 9" in words.text
        await press(pilot, "h")
        assert "columns 2 to 8 of 9" in words.text
        assert page.table.rows.columns[0].title == "column_1"
        assert page.table.rows.cells(0)[0] == ("1", None)
        await pilot.resize_terminal(160, 48)
        await settle(pilot)
        await press(pilot, "h")
        assert "columns" not in words.text
