"""A cursor is good for the question that it came from, and for no other."""

from __future__ import annotations

import pytest

from stepscope.app.mcp.answering.cursor import first_of, mark_of
from stepscope.ingest.errors import ConfigError
from tests.looped import looped

MARK = mark_of("sql", "select 1", "file")


def test_without_a_cursor_it_is_the_first_page() -> None:
    assert first_of("", MARK, 0) == 0


def test_a_cursor_says_where_its_page_begins() -> None:
    assert first_of(f"50-{MARK}", MARK, 51) == 50


@looped(
    "cursor",
    [f"-5-{MARK}", f"50-{mark_of('sql', 'select 2', 'file')}", f"99-{MARK}", "50", "\0",
     "\u0661-" + MARK,      f"{10**30}-{MARK}", f"1e1-{MARK}"],
)  # fmt: skip
def test_any_other_is_refused(cursor: str) -> None:
    with pytest.raises(ConfigError, match="the cursor is of another question"):
        first_of(cursor, MARK, 51)
