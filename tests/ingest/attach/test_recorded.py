"""What an adapter tells, as the tables that come of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.attach.recorded import RecordedScheduler
from stepscope.ingest.attach.scheduler_recording import BlockChange, Counts, Gave, LeftOut
from stepscope.ingest.columns import Type
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.lasting import BatchRow
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace


@pytest.fixture
def told(tmp_path: Path) -> Iterator[RecordedScheduler]:
    scheduler = RecordedScheduler(
        Recorder(tmp_path / "t.trace", producer="test", now_ns=count().__next__)
    )
    yield scheduler
    scheduler.close()


def read(told: RecordedScheduler, table: str) -> pl.DataFrame:
    told.close()
    return Trace.open(told.recorder.path).table(table).collect()


def prefill(request: str, tokens: int) -> BatchRow:
    return BatchRow(request, "prefill", tokens, 0, 0, tokens, is_final_chunk=True)


def test_a_step_runs_from_when_it_was_formed_until_its_outputs_were_taken(
    told: RecordedScheduler,
) -> None:
    step = told.formed(100, [prefill("a", 5)], Counts("prefill"))
    told.ended(step, 130)

    row = read(told, "steps").row(0, named=True)
    assert (row["step"], row["formed_ns"], row["ts_ns"], row["dur_ns"]) == (1, 100, 100, 30)


def test_a_step_that_was_formed_ahead_begins_when_the_one_before_it_ends(
    told: RecordedScheduler,
) -> None:
    first = told.formed(100, [prefill("a", 5)], Counts("prefill"))
    second = told.formed_again(110, Counts("decode"))
    told.ended(first, 130)
    told.ended(second, 150)

    rows = read(told, "steps").sort("step").select("formed_ns", "ts_ns", "dur_ns").rows()
    assert rows == [(100, 100, 30), (110, 130, 20)]


OF_TYPES = {Type.I64: 7, Type.I32: 7, Type.F64: 0.5, Type.STR: "x", Type.BOOL: True}
TOLD_BY_ALL = ("rank", "seq", "step", "ts_ns", "request", "event")
MORE = [each for each in BY_NAME["lifecycle"].columns if each.name not in TOLD_BY_ALL]


def test_an_event_may_have_any_column_alone_and_all_of_them(told: RecordedScheduler) -> None:
    values = {column.name: OF_TYPES[column.type] for column in MORE}
    for number, (name, value) in enumerate(values.items()):
        told.event("arrive", f"r{number}", 10 + number, **{name: value})
    told.event("arrive", "last", 99, **values)

    rows = read(told, "lifecycle").sort("ts_ns").select("request", *values).rows(named=True)
    for number, (name, value) in enumerate(values.items()):
        nothing = dict.fromkeys(values)
        assert rows[number] == {"request": f"r{number}", **nothing, name: value}
    assert rows[-1] == {"request": "last", **values}


def test_steps_of_a_pipelines_stages_begin_when_they_were_formed(tmp_path: Path) -> None:
    told = RecordedScheduler(Recorder(tmp_path / "t", producer="test"), overlaps=True)
    first = told.formed(100, [prefill("a", 5)], Counts("prefill"))
    second = told.formed(110, [prefill("b", 5)], Counts("prefill"))
    told.ended(first, 130)
    told.ended(second, 150)

    assert read(told, "steps").sort("step")["ts_ns"].to_list() == [100, 110]


def test_a_batch_told_as_the_one_before_has_each_request_one_token_on(
    told: RecordedScheduler,
) -> None:
    told.ended(told.formed(100, [prefill("a", 5), prefill("b", 7)], Counts("prefill")), 120)
    told.ended(told.formed_again(130, Counts("decode")), 140)
    told.ended(told.formed_from(150, {"a"}, [prefill("c", 3)], Counts("mixed")), 160)

    rows = read(told, "batch_rows").sort("step", "row")
    seen = rows.select("step", "request", "phase", "num_tokens", "num_computed").rows()
    assert seen == [
        (1, "a", "prefill", 5, 0), (1, "b", "prefill", 7, 0),
        (2, "a", "decode", 1, 5), (2, "b", "decode", 1, 7),
        (3, "b", "decode", 1, 8), (3, "c", "prefill", 3, 0),
    ]  # fmt: skip


def test_outputs_are_those_of_rows_with_a_position_but_of_whom_gave_none(
    told: RecordedScheduler,
) -> None:
    chunk = BatchRow("c", "prefill", 4, 0, None, 9, is_final_chunk=False)
    told.ended(told.formed(100, [prefill("a", 5), prefill("b", 7), chunk], Counts("prefill")), 120)
    told.ended(told.formed_from(130, (), [prefill("c", 5)], Counts("mixed")), 140, without={"b"})

    outputs = read(told, "outputs").sort("source_step", "request")
    assert outputs.select("request", "position", "source_step", "ts_ns").rows() == [
        ("a", 0, 1, 120), ("b", 0, 1, 120), ("a", 1, 2, 140), ("c", 0, 2, 140),
    ]  # fmt: skip


def test_several_outputs_of_a_row_follow_each_other(told: RecordedScheduler) -> None:
    row = BatchRow("a", "decode", 4, 9, 2, 7, num_draft=3)
    told.ended_drafts(told.formed_drafts(100, [row], Counts("decode")), 120, [Gave("a", 2, 3, 2)])

    assert read(told, "outputs")["position"].to_list() == [2, 3, 4]


def test_how_many_drafts_were_accepted_is_told_when_the_step_ended(told: RecordedScheduler) -> None:
    rows = [BatchRow(name, "decode", 4, 9, 2, 7, num_draft=3) for name in "ab"]
    told.ended_drafts(told.formed_drafts(100, rows, Counts("decode")), 120, [Gave("a", 2, 3, 2)])

    seen = read(told, "batch_rows").sort("row").select("request", "num_draft", "num_accepted")
    assert seen.rows() == [("a", 3, 2), ("b", 3, None)]


def test_kv_blocks_change_hands_in_the_order_in_which_they_are_told(
    told: RecordedScheduler,
) -> None:
    told.blocks(9, [BlockChange("release", [3, 4], "a", 0), BlockChange("claim", [4], "b", 0)])

    rows = read(told, "allocations").select("op", "id", "owner").rows()
    assert rows == [("release", 3, "a"), ("release", 4, "a"), ("claim", 4, "b")]


def test_who_was_left_out_is_deferred_for_what_blocks_it(told: RecordedScheduler) -> None:
    told.left_out(9, [LeftOut("a", "kv-block", "too few KV blocks", 4, 1)])

    row = read(told, "decisions").row(0, named=True)
    assert (row["subject"], row["verdict"], row["resource"]) == ("a", "deferred", "kv-block")
    assert (row["needed"], row["available"]) == (4, 1)


def test_a_step_under_way_when_the_engine_goes_is_told_without_an_end(
    told: RecordedScheduler,
) -> None:
    told.formed(100, [prefill("a", 5)], Counts("prefill"))

    assert read(told, "steps").select("ts_ns", "dur_ns").rows() == [(100, None)]


def test_an_adapter_that_failed_says_so_in_the_trace(told: RecordedScheduler) -> None:
    told.failed(AttributeError("no such queue"))

    (name,) = read(told, "spans")["name"].to_list()
    assert name == "the adapter stopped: AttributeError: no such queue"
