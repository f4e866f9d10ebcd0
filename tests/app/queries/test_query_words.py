"""What may follow in a query that is being typed."""

from __future__ import annotations

import random

import pytest

from stepscope.app.queries.query_words import names_of, query_completions
from stepscope.ingest.derive.holding_intervals import INTERVALS
from stepscope.ingest.schema import TABLES
from tests.app.web.small_traces import conflict_trace
from tests.traces import trace_of

SMALL = conflict_trace()
NAMES = names_of(SMALL)
EVERY = names_of(trace_of())


def offered_words(before: str, after: str = "") -> list[str]:
    return [each.word for each in query_completions(NAMES, before, after)]


def test_a_trace_offers_the_tables_that_it_has_rows_of_and_what_is_made_of_them() -> None:
    assert {"steps", "batch_rows", "turns", "core_spans"} <= set(NAMES)
    assert not {"spans", "allocations", "holds", "occupancy"} & set(NAMES)


def test_a_trace_without_rows_offers_all_that_a_query_may_name() -> None:
    assert set(EVERY) == {*(table.name for table in (*TABLES, *INTERVALS)), "findings"}


@pytest.mark.parametrize("table", EVERY)
def test_every_table_and_column_that_is_offered_is_one_that_sql_accepts(table: str) -> None:
    offered = query_completions(EVERY, "select * from ")
    columns = query_completions(EVERY, "select x.", f" from {table} as x")

    assert table in {each.word for each in offered}
    assert {each.word for each in columns} == set(EVERY[table])
    for each in columns:
        trace_of().sql(f"select x.{each.word} from {table} as x")  # noqa: S608 - names of ours
        query = f"select {each.word} from {table} where {each.word} is null"  # noqa: S608 - the same
        trace_of().sql(query)


def test_whatever_is_begun_anywhere_in_a_query_is_completed_to_what_sql_accepts() -> None:
    chosen = random.Random(7)
    for _ in range(150):
        table = chosen.choice([*NAMES])
        column = chosen.choice([*NAMES[table]])
        words = ["select", column, "from", table, "where", column, "is", "not", "null"]
        at = chosen.choice([1, 3, 5])
        word, query = words[at], " ".join(words)
        cut = len(" ".join(words[: at + 1]))
        begun = chosen.randrange(len(word))
        before, after = query[: cut - len(word) + begun], query[cut:]
        offered = query_completions(NAMES, before, after)
        assert word in [each.word for each in offered]
        for each in offered[:8]:
            typed = before[: len(before) - each.replaces] + each.word + after
            if each.word not in NAMES:  # a table in place of a column is asked for a name it lacks
                SMALL.sql(typed)


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        ("select ki", " from steps", "kind"),
        ("select s.ki", " from steps s", "kind"),
        ("select KI", " from steps", "kind"),
        ("select kind from st", "", "steps"),
        ("select 1 from steps join batch", "", "batch_rows"),
    ],
)
def test_what_is_begun_is_completed_by_where_it_stands(before: str, after: str, first: str) -> None:
    assert offered_words(before, after)[0] == first


@pytest.mark.parametrize(
    "before",
    ["select * from steps where kind = 'st", "select 1 -- fro st", "select 1 /* st", 'select "st',
     "select nobody.st"],
)  # fmt: skip
def test_within_a_text_a_comment_or_what_is_no_table_nothing_is_offered(before: str) -> None:
    assert offered_words(before) == []


def test_a_comment_or_a_text_that_has_ended_holds_nothing_up() -> None:
    assert offered_words("select 'a', /* b */ ki", " from steps")[0] == "kind"
