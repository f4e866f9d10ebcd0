"""Flows of Chrome JSON: of version 1, events of their own; of version 2, fields of slices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.manifest import ReadReport
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import open_bytes, open_events, rows, slice_
from tests.tiers import slow

ENDS = ("flow", "end", "ts_ns", "track", "name", "category")
THREAD = "process 1 / thread 1"


def report(trace: Trace) -> ReadReport:
    assert trace.manifest.report is not None
    return trace.manifest.report


def test_a_slice_may_begin_pass_on_and_end_a_flow(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        slice_("enqueue", 1, 2, cat="queue", bind_id="0x7", flow_out=True),
        slice_("forward", 5, 2, tid=2, cat="queue", bind_id="0x7", flow_in=True, flow_out=True),
        slice_("run", 9, 2, tid=3, cat="queue", bind_id="0x7", flow_in=True),
    )

    assert rows(trace, "flows", *ENDS) == [
        ("0x7", "start", 1_000, THREAD, "enqueue", "queue"),
        ("0x7", "step", 5_000, "process 1 / thread 2", "forward", "queue"),
        ("0x7", "finish", 9_000, "process 1 / thread 3", "run", "queue"),
    ]
    assert rows(trace, "spans", "name") == ["enqueue", "forward", "run"]
    assert report(trace).read == {
        "X": 3, "bind_id with flow_in": 1, "bind_id with flow_in and flow_out": 1,
        "bind_id with flow_out": 1,
    }  # fmt: skip


@slow
@pytest.mark.parametrize("yes", ["true", "1"])
@pytest.mark.parametrize("no", ["false", "0", "null"])
@pytest.mark.parametrize("flow", ["7", '"7"'])
def test_whether_a_flow_begins_there_is_told_by_words_or_numbers(
    tmp_path: Path, yes: str, no: str, flow: str
) -> None:
    said = f'"bind_id":{flow},"flow_out":{yes},"flow_in":{no}'
    event = f'{{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,{said}}}'

    trace = open_bytes(tmp_path, f"[{event}]".encode())

    assert rows(trace, "flows", "flow", "end") == [("7", "start")]


def test_what_begins_or_is_asynchronous_may_begin_a_flow(tmp_path: Path) -> None:
    there: dict[str, Any] = {"pid": 1, "tid": 1, "bind_id": 3, "flow_out": True}
    trace = open_events(
        tmp_path,
        {**there, "ph": "B", "name": "begun", "ts": 1},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 2},
        {**there, "ph": "b", "name": "async", "cat": "c", "id": 9, "ts": 4},
    )

    assert rows(trace, "flows", "ts_ns", "name") == [(1_000, "begun"), (4_000, "async")]


def test_a_slice_that_does_not_say_which_end_it_is_is_counted(tmp_path: Path) -> None:
    trace = open_events(tmp_path, slice_("a", 1, 2, bind_id=3), slice_("b", 4, 2, flow_out=True))

    assert not trace.has("flows")
    assert report(trace).skipped == {"bind_id without flow_in or flow_out": 1}
    assert report(trace).read == {"X": 2}


def test_a_flow_of_a_slice_that_is_skipped_is_skipped_too(tmp_path: Path) -> None:
    trace = open_events(tmp_path, slice_("a", 1, 2), {**slice_("b", 1, 2), "ts": None, "bind_id": 3,
                                                      "flow_in": True})  # fmt: skip

    assert report(trace).skipped == {"no ts": 2}
