"""What a recorder takes down: tables, columns, nulls, bad rows, spans, threads."""

from __future__ import annotations

import sys
import threading
from itertools import count
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stepscope.ingest.columns import Type
from stepscope.ingest.errors import ConfigError, RecordingError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.schema import BY_NAME, TABLES
from stepscope.ingest.trace import Trace
from tests.tiers import slow


def test_every_table_has_a_method_and_keeps_every_column(rec: Recorder) -> None:
    values = {Type.I64: 7, Type.I32: 8, Type.F64: 1.5, Type.STR: "text", Type.BOOL: True}
    for table in TABLES:
        row = {column.name: values[column.type] for column in table.given}
        getattr(rec, table.name)(**row)

    rec.close()

    trace = Trace.open(rec.path)
    for table in TABLES:
        wanted = {column.name: values[column.type] for column in table.given} | {"rank": 0}
        assert trace.table(table.name).drop("seq", strict=False).collect().to_dicts() == [wanted]


def test_arguments_stand_in_the_order_of_the_schema(rec: Recorder) -> None:
    rec.counters(3, 17, "engine", "waiting", "requests", 2.5)

    rec.close()

    found = Trace.open(rec.path).counters.drop("rank").collect().row(0)
    assert found == (3, 17, "engine", "waiting", "requests", 2.5)


def test_what_is_omitted_or_none_is_null(rec: Recorder) -> None:
    rec.lifecycle(ts_ns=0, request="a", event="admit", queue_index=None, cause=None)

    rec.close()

    row = Trace.open(rec.path).lifecycle.collect().row(0, named=True)
    given = {"rank": 0, "ts_ns": 0, "request": "a", "event": "admit", "seq": 1}
    assert row == dict.fromkeys(BY_NAME["lifecycle"].names) | given


def test_zero_false_and_the_empty_string_are_not_null(rec: Recorder) -> None:
    rec.batch_rows(0, 0, 0, "", "decode", 0, 0, is_recompute=False)

    rec.close()

    row = Trace.open(rec.path).batch_rows.collect().row(0, named=True)
    assert (row["request"], row["slot"], row["is_recompute"]) == ("", 0, False)


def test_a_narrow_function_records_its_columns_in_its_order(rec: Recorder) -> None:
    record = rec.narrow("lifecycle", "request", "ts_ns", "event")
    record("a", 5, "arrive")
    record(request="b", ts_ns=6, event="arrive")
    rec.lifecycle(ts_ns=7, request="c", event="arrive", queue_index=2)

    rec.close()

    rows = Trace.open(rec.path).lifecycle.sort("ts_ns").collect()
    assert rows["request"].to_list() == ["a", "b", "c"]
    assert rows["queue_index"].to_list() == [None, None, 2]


@pytest.mark.parametrize(
    ("table", "columns", "why"),
    [
        ("stepz", ["ts_ns"], "there is no table 'stepz'"),
        ("steps", ["step", "ts_ns", "kind", "mood"], "there is no column 'mood'"),
        ("steps", ["step", "ts_ns"], "kind must be recorded"),
    ],
)
def test_a_narrow_function_of_what_is_not_there_is_refused(
    rec: Recorder, table: str, columns: list[str], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        rec.narrow(table, *columns)


def test_a_request_may_be_called_by_its_number(rec: Recorder) -> None:
    rec.lifecycle(ts_ns=0, request=41, event="arrive")

    rec.close()

    assert Trace.open(rec.path).lifecycle.collect()["request"].to_list() == ["41"]


def test_a_missing_required_argument_is_a_type_error_at_the_call(rec: Recorder) -> None:
    with pytest.raises(TypeError, match=r"steps\(\) needs kind"):
        rec.steps(step=1, ts_ns=2)


@pytest.mark.parametrize(
    "bad",
    [
        {"ts_ns": "soon"},
        {"ts_ns": 1 << 70},
        {"ts_ns": None},
        {"num_running": 1 << 40},
        {"kind": None},
        {"kind": ["decode"]},
        {"tag": object()},
        {"ts_ns": np.array([2, 3])},
    ],
)
def test_a_bad_value_costs_its_row_and_is_counted(rec: Recorder, bad: dict[str, object]) -> None:
    rec.steps(step=1, ts_ns=1, kind="decode")
    rec.steps(**{"step": 2, "ts_ns": 2, "kind": "decode", **bad})
    rec.steps(step=3, ts_ns=3, kind="decode")

    rec.close()

    trace = Trace.open(rec.path)
    assert trace.steps.collect()["step"].to_list() == [1, 3]
    assert trace.manifest.dropped == rec.dropped == {"steps": 1}
    assert trace.manifest.tables == {"steps": "partial"}
    assert rec.failed is None


class Speechless(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ZeroDivisionError


class Unspeakable(int):
    """A value of an engine that cannot be written."""

    def __str__(self) -> str:
        raise Speechless


def test_a_value_that_cannot_be_written_costs_its_row_and_never_raises(rec: Recorder) -> None:
    rec.steps(step=1, ts_ns=1, kind="decode", tag=Unspeakable(7))
    rec.bulk("steps", "step", "ts_ns", "kind", "tag")(1, 1, "decode", Unspeakable(7))

    rec.close()

    assert rec.dropped == {"steps": 2}


def test_a_span_takes_its_times_from_the_clock(tmp_path: Path) -> None:
    ticks = count(100, 25)
    with (
        Recorder(tmp_path / "run.trace", producer="test", now_ns=lambda: next(ticks)) as rec,
        rec.span("schedule", track="loop", category="cpu", step=4),
    ):
        pass

    row = Trace.open(rec.path).spans.collect().row(0, named=True)
    assert (row["ts_ns"], row["dur_ns"], row["form"]) == (100, 25, "slice")
    assert (row["name"], row["track"], row["category"], row["step"]) == (
        "schedule", "loop", "cpu", 4,
    )  # fmt: skip


def test_a_row_after_the_close_is_dropped_and_counted(rec: Recorder) -> None:
    rec.close()

    rec.steps(step=1, ts_ns=1, kind="decode")

    assert rec.dropped == {"steps": 1}


@slow
@pytest.mark.usefixtures("small_segments", "no_compactor")
def test_rows_stay_in_order_over_many_segments(rec: Recorder) -> None:
    for step in range(5_000):
        rec.steps(step=step, ts_ns=7, kind="decode", tag=f"tag {step}")

    rec.close()

    steps = Trace.open(rec.path).steps.select("step", "tag").collect()
    assert steps["step"].to_list() == list(range(5_000))
    assert steps["tag"].to_list() == [f"tag {step}" for step in range(5_000)]


@pytest.mark.usefixtures("small_segments", "no_compactor")
def test_a_string_longer_than_a_segment_is_kept(rec: Recorder) -> None:
    for length in (0, 3, 7_000, 9_000, 100_000):
        rec.spans(ts_ns=0, track="t", name="n", args="x" * length)

    rec.close()

    lengths = Trace.open(rec.path).spans.select(pl.col("args").str.len_bytes()).collect()
    assert lengths["args"].to_list() == [0, 3, 7_000, 9_000, 100_000]


@pytest.mark.usefixtures("small_segments", "no_compactor")
def test_several_threads_record_at_once(rec: Recorder) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def record(thread: int) -> None:
        for value in range(3_000):
            rec.counters(ts_ns=value, name=f"thread {thread}", value=float(value))

    threads = [threading.Thread(target=record, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    rec.close()

    rows = Trace.open(rec.path).counters.collect()
    for number in range(4):
        own = rows.filter(pl.col("name") == f"thread {number}")
        assert own["ts_ns"].to_list() == list(range(3_000))
    assert rec.dropped == {}


def test_a_configuration_that_became_unwritable_is_told_and_costs_no_row(tmp_path: Path) -> None:
    config: dict[str, object] = {"layers": [1]}
    rec = Recorder(tmp_path / "run.trace", producer="test", config={"model": config})
    rec.counters(ts_ns=1, name="n", value=2.0)
    config["layers"] = {(1, 2): 3}

    rec.close()

    trace = Trace.open(rec.path)
    assert trace.counters.collect()["value"].to_list() == [2.0]
    assert not trace.manifest.closed
    assert str(rec.failed).startswith("the manifest cannot be written: keys must be")


def test_a_configuration_that_holds_itself_is_refused_in_one_line(tmp_path: Path) -> None:
    around: list[object] = []
    around.append(around)

    with pytest.raises(RecordingError, match="cannot be recorded into: Circular reference"):
        Recorder(tmp_path / "run.trace", producer="test", config={"around": around})
