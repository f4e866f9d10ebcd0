"""A query on the page: completed, recalled, its rows gone to, its answer downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Locator, Page, expect

from stepscope.app.kept.queries import asked, asked_before
from tests.app.web.in_browser.conftest import Visit
from tests.app.web.in_browser.hands import SMALL, Open, address, view
from tests.app.web.small_traces import HOSTILE, SCRIPT, US, conflict_trace
from tests.tiers import slow

READ: dict[str, Callable[[Path], pl.DataFrame]] = {
    "csv": pl.read_csv, "parquet": pl.read_parquet, "json": pl.read_json,
}  # fmt: skip
pytestmark = pytest.mark.web


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of states of its own."""
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))


def line(page: Page) -> Locator:
    box = page.locator("#sql")
    box.fill("")
    return box


def words(page: Page) -> Locator:
    return page.locator("#suggested li")


def ask(opened: Visit, query: str) -> Page:
    page = opened.go("?tab=sql")
    line(page).fill(query)
    run(opened)
    return page


def run(opened: Visit) -> None:
    opened.page.keyboard.press("Control+Enter")
    expect(opened.page.locator("#pane .failure, #pane table")).to_be_visible()
    opened.settle()


@slow
def test_a_table_is_completed_by_tab_and_a_column_by_the_mouse(revisit: Open) -> None:
    page = revisit(SMALL).go("?tab=sql")
    line(page).press_sequentially("select 1 from st")
    expect(words(page).first).to_contain_text("steps")
    page.keyboard.press("Escape")
    expect(words(page)).to_have_count(0)
    page.locator("#sql").press_sequentially("e")
    expect(words(page).first).to_contain_text("steps")
    page.keyboard.press("Tab")
    expect(page.locator("#sql")).to_have_value("select 1 from steps")
    expect(words(page)).to_have_count(0)
    page.locator("#sql").press_sequentially(" where num_run")
    words(page).filter(has_text="num_running").click()
    expect(page.locator("#sql")).to_have_value("select 1 from steps where num_running")
    expect(page.locator("#sql")).to_be_focused()


def test_cells_of_an_answer_lead_to_the_step_the_request_and_the_time(revisit: Open) -> None:
    opened = revisit(SMALL)
    query = "select rank, step, request, ts_ns from batch_rows where step = 3 limit 1"
    page = opened.go("?tab=sql")
    line(page).press_sequentially(query)
    run(opened)
    assert asked_before() == [query]
    cells = page.locator("#pane tbody a")
    expect(cells).to_have_count(3)
    cells.nth(2).click()
    opened.settle()
    assert view(page)["at"] == 300 * US
    cells.nth(0).click()
    opened.settle()
    assert (address(page)["tab"], address(page)["step"]) == ("step", "3")
    page.go_back()
    opened.settle()
    cells.nth(1).click()
    opened.settle()
    assert (address(page)["tab"], address(page)["request"]) == ("request", "req-0")


def test_a_core_of_an_answer_selects_what_ran_there(revisit: Open) -> None:
    opened = revisit(SMALL)
    page = ask(opened, "select core, ts_ns from core_spans where task = 2 and core = 0")
    page.locator("#pane tbody a").first.click()
    opened.settle()
    expect(page.locator("#about")).to_contain_text("qk_pv")
    assert view(page)["selection"]["start"] == 210 * US


def test_an_answer_is_downloaded(revisit: Open, tmp_path: Path) -> None:
    query = "select step, kind from steps order by step"
    page = ask(revisit(SMALL), query)
    for form, read in READ.items():
        with page.expect_download() as download:
            page.locator(f"#export-{form}").click()
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)

        assert read(file).to_dicts() == SMALL.sql(query).to_dicts(), form
        assert file.name == f"small-trace-query.{form}"


def test_hostile_text_in_an_answer_is_text(revisit: Open) -> None:
    trace = conflict_trace(request=HOSTILE, push=SCRIPT)
    page = ask(revisit(trace), "select request from batch_rows where request like '<img%' limit 1")

    expect(page.locator("#pane tbody")).to_contain_text(HOSTILE)
    page = ask(revisit(trace), f"select '{HOSTILE}' as said")
    expect(page.locator("#asked")).to_contain_text(HOSTILE)
    assert page.evaluate("window.hacked") is None


@slow
def test_arrows_bring_back_what_was_asked_before(visit: Open) -> None:
    asked("select 1 as one")
    asked("select 2 as two")
    page = visit(SMALL).go("?tab=sql")
    line(page).press_sequentially("mine")
    seen = []
    for key in ("ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        seen.append(page.locator("#sql").input_value())

    assert seen == ["select 2 as two", "select 1 as one", "select 2 as two", "mine"]
