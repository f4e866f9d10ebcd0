"""Rows read around a place are those that a plain filter of the table finds, wherever one jumps."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.app.debug.held import near_rows
from stepscope.app.debug.held.near_rows import Column, NearRows
from stepscope.ingest.trace import Trace
from tests.tiers import slow

SAMPLES = Path(__file__).parents[4] / "sample_traces"
TABLES = ("steps", "batch_rows", "decisions", "allocations")
AWAY = (-(1 << 63), -1, 10**9, (1 << 63) - 1)


@pytest.fixture
def trace() -> Trace:
    return Trace.open(SAMPLES / "fcfs-preemption-before.trace")


@slow
@pytest.mark.parametrize("column", ["step", "seq"])
def test_the_rows_of_each_value_are_those_of_the_table_in_any_order_of_asking(
    trace: Trace, column: Column, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_rows, "MOST_AROUND", {"step": 3, "seq": 5})
    near = NearRows(trace, 0)
    tables = [name for name in TABLES if column in trace.table(name).collect_schema()]
    plain = {name: trace.table(name).filter(pl.col("rank") == 0).collect() for name in tables}
    values = plain["batch_rows"][column].unique().sort().to_list()[:60]
    asked = [*values[:20], *reversed(values), *values[::7], *AWAY, *values[:3]]

    for value in asked:
        for name, rows in zip(tables, near.at(column, value, tables), strict=True):
            assert_frame_equal(rows, plain[name].filter(pl.col(column) == value))


def test_neighbours_of_what_was_read_are_not_read_again(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = NearRows(trace, 0)
    near.at("step", 20, TABLES)
    monkeypatch.delattr(Trace, "table")

    assert [rows.height for rows in near.at("step", 21, ["steps"])] == [1]


def test_where_one_was_before_is_not_read_again(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_rows, "MOST_AROUND", {"step": 1, "seq": 1})
    near = NearRows(trace, 0)
    for step in (5, 20, 40):
        near.at("step", step, TABLES)
    monkeypatch.delattr(Trace, "table")

    steps = [near.at("step", step, ["steps"])[0]["step"].to_list() for step in (5, 40, 20)]
    assert steps == [[5], [40], [20]]


def test_a_place_that_is_unknown_has_no_rows_and_all_columns(trace: Trace) -> None:
    (rows,) = NearRows(trace, 0).at("seq", None, ["batch_rows"])

    assert rows.is_empty()
    assert "request" in rows.columns
