"""The page of a mark's sums in the terminal: rows, what they pick, and the file that it writes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.timeline.flows.outlines import outlines
from stepscope.app.tui.pages.area import AreaPage, written_beside
from stepscope.app.tui.widgets.prose import Prose
from tests.app.tui.stage import WIDE, app_of, conflict_trace, opened, press, state_of, text_of
from tests.tiers import slow

RESULT = check(conflict_trace())


async def test_without_a_mark_the_page_says_how_to_make_one_and_v_sums_what_is_in_view() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "7")
        words = app_of(pilot).query_one("#area-words", Prose)
        assert "shift and drag" in words.text
        assert text_of(app_of(pilot).query_one(AreaPage).table).split() == []

        await press(pilot, "2", "w", "w", "7", "v")
        view = state_of(pilot)
        in_view = words.text
        assert view.mark == (view.viewport.t0, view.viewport.t1)
        assert "of the lanes' time" in in_view
        await press(pilot, "2", "0", "v", "7")
        assert state_of(pilot).mark == view.timeline.bounds
        assert words.text != in_view


async def test_a_mark_is_summed_written_to_a_file_and_a_row_goes_to_its_spans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "2", "j", "j", "l", "m", "l", "m", "7")
        page = app_of(pilot).query_one(AreaPage)
        said = app_of(pilot).query_one("#area-words", Prose).text
        assert "on 6 lanes" in said
        assert "a span counts by its part inside" in said
        seen = []
        for _ in range(4):
            seen.append(page.table.rows.columns[0].title)
            await press(pilot, "t")
        assert seen == ["name", "state", "lane", "lane"]
        assert text_of(page.table).splitlines()[0].split() == [
            "name", "spans", "sum", "mean", "p50", "p90", "p99", "longest"
        ]  # fmt: skip

        await press(pilot, "E", "E")
        view = state_of(pilot)
        assert view.mark is not None
        lanes = [lane.id for lane in view.timeline.lanes if lane.section == "core groups"]
        sums = view.timeline.area(*view.mark, lanes)

        await press(pilot, "t", "j", "enter")
        assert app_of(pilot).page == "timeline"
        assert view.pick is not None
        assert view.pick.by == "state"
        picked = [each for each in outlines(view.selection, view.timeline) if each.why == "picked"]
        assert picked
        assert view.span is not None
        assert picked[0].lane == view.span.lane
        await press(pilot, "escape")
        assert state_of(pilot).pick is None
        assert view.mark is not None
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["conflict-trace-area-by-name-2.csv", "conflict-trace-area-by-name.csv"]
    with (tmp_path / files[1]).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["name"]: int(row["ns"]) for row in rows} == dict(
        sums.by_name.select("name", "ns").iter_rows()
    )


@slow
async def test_a_folder_that_cannot_be_written_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "2", "j", "j", "l", "m", "l", "m", "7", "E")
        told = [note.message for note in app_of(pilot)._notifications]
    assert any("was not written: No such file or directory" in each for each in told)


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    first = written_beside(tmp_path / "sums.csv", "one")
    second = written_beside(tmp_path / "sums.csv", "two")

    assert (first.read_text(), second.name, second.read_text()) == ("one", "sums-2.csv", "two")


@slow
async def test_what_led_to_a_span_is_marked_and_a_path_is_told() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "2", "j", "j", "l", "l", "x")
        details = app_of(pilot).query_one("#details", Prose).text
        assert "PATH TO IT" in details
        assert state_of(pilot).selection.with_path
