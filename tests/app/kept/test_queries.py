"""The queries that were asked last."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.kept.queries import LONGEST, MOST, asked, asked_before
from stepscope.app.queries.asked_query import answer
from stepscope.ingest.errors import QueryError
from tests.app.web.small_traces import conflict_trace


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of states of its own."""
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_latest_query_comes_first_and_each_once() -> None:
    for query in ("select 1", "select 2", " select 1\n"):
        asked(query)

    assert asked_before() == ["select 1", "select 2"]


def test_only_so_many_and_no_blank_and_no_novel_are_kept() -> None:
    for number in range(MOST + 5):
        asked(f"select {number}")
    asked("  ")
    asked("x" * (LONGEST + 1))

    assert len(asked_before()) == MOST
    assert asked_before()[0] == f"select {MOST + 4}"


def test_nobody_else_may_read_them(state: Path) -> None:
    asked("select 1")

    assert (state / "queries.json").stat().st_mode & 0o077 == 0


def test_a_query_that_fails_is_kept_as_it_is_what_one_mends() -> None:
    with pytest.raises(QueryError):
        answer(conflict_trace(), "select nothing from steps")

    assert asked_before() == ["select nothing from steps"]


def test_what_is_asked_of_a_page_for_others_is_not_kept() -> None:
    answer(conflict_trace(), "select 1", keeps=False)

    assert asked_before() == []
