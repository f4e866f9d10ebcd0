"""Columns of one name in an answer are numbered."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.ingest.errors import QueryError
from stepscope.ingest.query import Bounds, run_sql
from tests.looped import looped

FRAMES = {
    "steps": pl.LazyFrame({"step": [1, 2], "ts_ns": [10, 20], "after": [2, 3]}),
    "few": pl.LazyFrame({"step": [1], "ts_ns": [70]}),
}
JOIN = "from steps a join steps b on b.step = a.after"


@looped(("query", "answer"), [
    (f"select a.ts_ns, b.ts_ns {JOIN}", {"ts_ns": 10, "ts_ns_2": 20}),
    (f"select a.step, a.ts_ns, b.step as c, b.ts_ns {JOIN}",
     {"step": 1, "ts_ns": 10, "c": 2, "ts_ns_2": 20}),
    (f"select a.*, b.ts_ns {JOIN}", {"step": 1, "ts_ns": 10, "after": 2, "ts_ns_2": 20}),
    (f"select b.ts_ns, a.* {JOIN}", {"ts_ns": 20, "step": 1, "ts_ns_2": 10, "after": 2}),
    (f"select a.*, b.* {JOIN}",
     {"step": 1, "ts_ns": 10, "after": 2, "step_2": 2, "ts_ns_2": 20, "after_2": 3}),
    (f"select * {JOIN}",
     {"step": 1, "ts_ns": 10, "after": 2, "step_2": 2, "ts_ns_2": 20, "after_2": 3}),
    ("select *, ts_ns from few", {"step": 1, "ts_ns": 70, "ts_ns_2": 70}),
    ("select ts_ns, ts_ns, ts_ns as ts_ns_2 from few",
     {"ts_ns": 70, "ts_ns_3": 70, "ts_ns_2": 70}),
    ("select step x, ts_ns as x from few", {"x": 1, "x_2": 70}),
    ("select max(ts_ns), min(ts_ns) from steps", {"ts_ns": 20, "ts_ns_2": 10}),
    ("select count(*), count(*) from steps", {"len": 2, "len_2": 2}),
    ("select x.ts_ns, x.ts_ns_2 from (select ts_ns, ts_ns from few) x",
     {"ts_ns": 70, "ts_ns_2": 70}),
    (f'select a.ts_ns, b.ts_ns as "ts_ns:b" {JOIN}', {"ts_ns": 10, "ts_ns:b": 20}),
])  # fmt: skip
def test_columns_of_one_name_are_numbered_in_their_order(
    query: str, answer: dict[str, int]
) -> None:
    assert list(run_sql(FRAMES, query).row(0, named=True).items()) == list(answer.items())
    assert run_sql(FRAMES, query, Bounds()).to_dicts() == [answer]


def test_a_process_of_its_own_numbers_them_too() -> None:
    answer = run_sql(FRAMES, f"select a.*, b.ts_ns {JOIN}", Bounds(memory_bytes=8 << 30))

    assert answer.columns == ["step", "ts_ns", "after", "ts_ns_2"]


def test_columns_whose_names_are_not_known_are_to_be_named() -> None:
    with pytest.raises(QueryError, match="AS"):
        run_sql(FRAMES, "select x.*, ts_ns from (select ts_ns from few) x")
