"""What may follow in a query that is being typed."""

from __future__ import annotations

import random

from stepscope.app.queries.query_words import names_of, query_completions
from stepscope.ingest.derive.holding_intervals import INTERVALS
from stepscope.ingest.schema import TABLES
from tests.app.web.small_traces import conflict_trace
from tests.tiers import slow
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


def test_every_table_and_column_that_is_offered_is_one_that_sql_accepts() -> None:
    empty = trace_of()
    offered = {each.word for each in query_completions(EVERY, "select * from ")}
    columns = {
        table: {each.word for each in query_completions(EVERY, "select x.", f" from {table} as x")}
        for table in EVERY
    }

    assert set(EVERY) <= offered
    assert columns == {table: set(names) for table, names in EVERY.items()}
    for table, names in columns.items():
        by_alias = ", ".join(f"x.{name}" for name in names)
        empty.sql(f"select {by_alias} from {table} as x")  # noqa: S608 - names of ours
        for name in names:
            empty.sql(f"select {name} from {table} where {name} is null")  # noqa: S608 - the same


@slow
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


def test_what_is_begun_is_completed_by_where_it_stands() -> None:
    first = {
        ("select ki", " from steps"): "kind",
        ("select s.ki", " from steps s"): "kind",
        ("select KI", " from steps"): "kind",
        ("select kind from st", ""): "steps",
        ("select 1 from steps join batch", ""): "batch_rows",
    }

    assert {typed: offered_words(*typed)[0] for typed in first} == first


def test_within_a_text_a_comment_or_what_is_no_table_nothing_is_offered() -> None:
    begun = ("select * from steps where kind = 'st", "select 1 -- fro st", "select 1 /* st",
             'select "st', "select nobody.st")  # fmt: skip

    assert {before: words for before in begun if (words := offered_words(before))} == {}


def test_a_comment_or_a_text_that_has_ended_holds_nothing_up() -> None:
    assert offered_words("select 'a', /* b */ ki", " from steps")[0] == "kind"
