"""Rows that tell of a scheduler's state have one order, of whatever table and form they are."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.lasting import BatchRow
from stepscope.ingest.schema import OF_STATE
from stepscope.ingest.trace import Trace
from tests.ingest.recording.conftest import Script

KILLED = """
import os, sys
from stepscope.ingest.recorder import Recorder

rec = Recorder(sys.argv[1], producer="engine")
for row in range(500):
    rec.lifecycle(row, row, f"request {row}", "arrive")
    rec.decisions(row, row, "request", f"request {row}", "deferred")
os.kill(os.getpid(), 9)
"""


def seqs(path: Path, table: str) -> list[int]:
    """The places of a table's rows, as they lie in it."""
    return Trace.open(path).table(table).collect()["seq"].to_list()


def test_the_tables_that_tell_of_state_are_counted() -> None:
    assert [table.name for table in OF_STATE] == [
        "steps", "batch_rows", "lifecycle", "decisions", "allocations", "queue_order",
        "slot_tokens",
    ]  # fmt: skip


def test_rows_of_several_tables_have_the_order_in_which_they_were_told(rec: Recorder) -> None:
    rec.lifecycle(1, 10, "a", "arrive")
    rec.counters(1, 10, "engine", "waiting", None, 1.0)
    rec.allocations(1, 10, "kv-block", 4, "claim", "a")
    rec.lifecycle(1, 5, "a", "admit")
    rec.steps(1, 10, kind="prefill")

    rec.close()

    assert seqs(rec.path, "lifecycle") == [1, 3]
    assert seqs(rec.path, "allocations") == [2]
    assert seqs(rec.path, "steps") == [4]


def test_rows_of_two_functions_of_one_table_keep_their_order_in_it(rec: Recorder) -> None:
    narrow = rec.narrow("decisions", "ts_ns", "subject_kind", "subject", "verdict")
    for number in range(3):
        narrow(7, "request", f"narrow {number}", "deferred")
        rec.decisions(1, 7, "request", f"wide {number}", "deferred")

    rec.close()

    rows = Trace.open(rec.path).decisions.sort("seq").collect()
    assert rows["subject"].to_list() == [
        "narrow 0", "wide 0", "narrow 1", "wide 1", "narrow 2", "wide 2"
    ]  # fmt: skip


def test_a_row_in_two_has_its_place_from_when_it_was_begun(rec: Recorder) -> None:
    begin, complete = rec.in_two("steps", ("step", "ts_ns", "kind"), ("dur_ns",))
    opened = begin(1, 10, "decode")
    rec.lifecycle(1, 15, "a", "finish")
    complete(opened, 20)

    rec.close()

    assert seqs(rec.path, "steps") == [1]
    assert seqs(rec.path, "lifecycle") == [2]


def test_rows_that_are_told_in_one_call_have_one_place(rec: Recorder) -> None:
    put = rec.bulk("allocations", "ts_ns", "resource", "id", "op", "owner")
    put(5, "kv-block", [1, 2, 3], "claim", "a")
    put(6, "kv-block", [1, 2, 3], "release", "a")

    rec.close()

    assert seqs(rec.path, "allocations") == [1, 1, 1, 2, 2, 2]


def test_batches_that_go_on_have_a_place_each(rec: Recorder) -> None:
    batches = rec.batches()
    formed = batches.whole(1, 10, [BatchRow("a", "prefill", 8, 0, 0), BatchRow("b", "decode", 1)])
    batches.outputs(formed, 15)
    rec.lifecycle(1, 15, "a", "first-token")
    batches.again(2, 20)
    batches.formed(3, 30, left=["b"])

    rec.close()

    first, also_first, second, also_second, third = seqs(rec.path, "batch_rows")
    (between,) = seqs(rec.path, "lifecycle")
    assert first == also_first < between < second == also_second < third


def test_a_part_of_a_rank_counts_nothing_as_nobody_knows_its_place(tmp_path: Path) -> None:
    for part in ("", "front-end"):
        with Recorder(tmp_path / "run.trace", producer="engine", part=part) as rec:
            rec.lifecycle(1, 10, "a", "receive" if part else "arrive")

    rows = Trace.open(tmp_path / "run.trace").lifecycle.sort("event").collect()
    assert dict(zip(rows["event"], rows["seq"], strict=True)) == {"arrive": 1, "receive": None}


def test_a_row_that_cannot_be_recorded_leaves_the_order_of_the_others(rec: Recorder) -> None:
    rec.lifecycle(1, 10, "a", "arrive")
    rec.lifecycle(1, "soon", "b", "arrive")
    rec.lifecycle(1, 11, "c", "arrive")

    rec.close()

    first, second = seqs(rec.path, "lifecycle")
    assert first < second


def test_a_killed_process_loses_no_place(tmp_path: Path, script: Script) -> None:
    script(KILLED, tmp_path / "run.trace").communicate()

    trace = Trace.open(tmp_path / "run.trace")
    rows = trace.lifecycle.sort("seq").collect()
    assert rows["ts_ns"].to_list() == list(range(500))
    both = [*seqs(tmp_path / "run.trace", "lifecycle"), *seqs(tmp_path / "run.trace", "decisions")]
    assert len(set(both)) == 1000
