"""Many rows in one call: columns of whatever kind, and nothing of a call that does not fit."""

from __future__ import annotations

import shutil
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepscope.ingest.columns import Type
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import bulk
from stepscope.ingest.recording.compaction import compact_segment
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

DECISION = ("step", "ts_ns", "subject_kind", "subject", "verdict", "needed")


def decisions(trace: Path, *columns: str) -> list[tuple[Any, ...]]:
    return Trace.open(trace).decisions.select(columns).collect().rows()


@pytest.mark.parametrize(
    "needed",
    [
        [1, None, 3], (1, None, 3), {1: "", None: "", 3: ""}.keys(),
    ],
)  # fmt: skip
def test_sequences_hold_a_value_for_each_row_and_anything_else_one_for_all(
    rec: Recorder, needed: Any
) -> None:
    put = rec.bulk("decisions", *DECISION)
    put(7, 100, "request", ["a", "b", "c"], "passed-over", needed)
    put(8, [200, 201], "request", ("a", 41), "chosen", None)

    rec.close()

    assert decisions(rec.path, *DECISION) == [
        (7, 100, "request", "a", "passed-over", 1),
        (7, 100, "request", "b", "passed-over", None),
        (7, 100, "request", "c", "passed-over", 3),
        (8, 200, "request", "a", "chosen", None),
        (8, 201, "request", "41", "chosen", None),
    ]


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2, 3]), np.array([1, 2, 3], np.int32), np.array([1, 2, 3], np.uint8),
        np.arange(1, 7)[::2] // 2 + 1, array("q", [1, 2, 3]), array("h", [1, 2, 3]),
        memoryview(array("q", [0, 1, 2, 3]))[1:], range(1, 4), np.array([[1], [2], [3]])[:, 0],
    ],
)  # fmt: skip
def test_a_buffer_of_whatever_numbers_is_taken(rec: Recorder, values: Any) -> None:
    put = rec.bulk("batch_rows", "step", "ts_ns", "request", "phase", "num_tokens", "slot")
    put(values, 0, "a", "decode", values, values)

    rec.close()

    rows = Trace.open(rec.path).batch_rows.select("step", "num_tokens", "slot").collect().rows()
    assert rows == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]


def test_every_column_of_every_table_can_be_told_in_bulk(rec: Recorder) -> None:
    values = {Type.I64: 7, Type.I32: 8, Type.F64: 1.5, Type.STR: "text", Type.BOOL: True}
    for table in TABLES:
        columns = table.given
        put = rec.bulk(table.name, *(column.name for column in columns))
        put(*([values[column.type]] * 2 for column in columns))

    rec.close()

    trace = Trace.open(rec.path)
    for table in TABLES:
        wanted = {column.name: values[column.type] for column in table.given} | {"rank": 0}
        rows = trace.table(table.name).drop("seq", strict=False).collect()
        assert rows.to_dicts() == [wanted, wanted]


@pytest.mark.parametrize(
    "bad",
    [
        {"needed": ["one", "two"]}, {"needed": [1]}, {"needed": np.array([1.5, 2.5])},
        {"needed": 1 << 70}, {"needed": object()}, {"subject": [b"a", "b"]},
        {"subject": [None, "b"]}, {"step": np.array([[1, 2]])}, {"verdict": None, "ts_ns": "soon"},
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_records_nothing_and_is_counted_whole(
    rec: Recorder, bad: dict[str, Any]
) -> None:
    put = rec.bulk("decisions", *DECISION)
    good = {"step": [1, 2], "ts_ns": 0, "subject_kind": "request", "subject": ["a", "b"],
            "verdict": "chosen", "needed": [1, 2]}  # fmt: skip
    put(*good.values())
    put(*(good | bad).values())
    put(*good.values())

    rec.close()

    assert decisions(rec.path, "needed") == [(1,), (2,), (1,), (2,)]
    assert sum(rec.dropped.values()) in (1, 2)
    assert rec.failed is None


def test_too_few_or_too_many_columns_are_counted_and_no_rows_are_none(rec: Recorder) -> None:
    put = rec.bulk("counters", "ts_ns", "name", "value")
    put([1, 2], "waiting")
    put([1, 2], "waiting", 1.0, 5)
    put([], "waiting", [])

    rec.close()

    assert rec.dropped == {"counters": 4}


def test_what_is_bound_wrongly_is_said_where_it_is_bound(rec: Recorder) -> None:
    with pytest.raises(ConfigError, match="there is no column 'mood'"):
        rec.bulk("counters", "ts_ns", "name", "value", "mood")
    with pytest.raises(ConfigError, match="value must be recorded"):
        rec.bulk("counters", "ts_ns", "name")
    with pytest.raises(ConfigError, match="'name' is named twice"):
        rec.bulk("counters", "ts_ns", "name", "value", "name")


@pytest.mark.usefixtures("small_segments", "no_compactor")
def test_calls_of_all_sizes_keep_their_order_over_many_segments(
    rec: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST_ROWS", 500)
    put = rec.bulk("counters", "ts_ns", "name", "value")
    end = 0
    for num_rows in (1, 3, 700, 0, 2_000, 1, 90, 90, 90, 90, 499, 500, 501):
        rows = range(end, end + num_rows)
        put(list(rows), [f"counter {row}" for row in rows], np.array(rows, float))
        end += num_rows
    killed = Path(shutil.copytree(rec.path, tmp_path / "killed.trace"))
    full = sorted(killed.glob("journal.rank=0/counters-*.seg"))
    assert len(full) > 5

    for file in full[:3]:
        compact_segment(file)
    rec.close()

    for trace in (killed, rec.path):
        found = Trace.open(trace).counters.collect()
        assert found["ts_ns"].to_list() == list(range(end))
        assert found["name"].to_list() == [f"counter {row}" for row in range(end)]
        assert found["value"].to_list() == [float(row) for row in range(end)]


def test_a_torn_call_is_discarded_and_all_before_it_are_there(
    rec: Recorder, tmp_path: Path
) -> None:
    put = rec.bulk("counters", "ts_ns", "name", "value")
    for start in range(0, 90, 9):
        put(range(start, start + 9), "waiting", 1.0)
    trace = Path(shutil.copytree(rec.path, tmp_path / "killed.trace"))
    file = trace / "journal.rank=0" / "counters-000000.seg"
    raw = file.read_bytes().rstrip(b"\0")
    size = len(raw) // 4 * 4

    for cut in (1, 9, 30, 99):
        file.write_bytes(raw[: size - cut].ljust(256 << 10, b"\0"))
        found = Trace.open(trace).counters.collect()["ts_ns"].to_list()
        assert found == list(range(len(found)))
        assert len(found) % 9 == 0
        assert 70 < len(found) < 90
    assert (Trace.open(trace).manifest.recovered or {})["0"]["discarded_bytes"] > 0
