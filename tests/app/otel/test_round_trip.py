"""What is written as OTLP is read again with every request, phase, time and outcome."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.app.otel.phases import request_phases
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.readers.otlp.own import LEFT_OUT
from stepscope.ingest.schema import LIFECYCLE_EVENTS
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace
from tests.app.otel.written import Phase, phases_in, written
from tests.conftest import ROOT
from tests.ingest.kineto_files import rows as rows_of
from tests.ingest.log_files import report_of
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SAMPLES = ("fcfs-preemption-before", "fcfs-preemption-after", "vllm_crowd", "vllm_prefixes")
Row = dict[str, Any]

WITHIN = st.integers(1 - FAR_NS, FAR_NS - 1)
TIMES = st.one_of(st.integers(0, 50), st.integers(0, 10**12), WITHIN)
TEXTS = st.text(max_size=8)
NUMBERS = st.integers(0, 2**63 - 1)
TOLD: dict[str, st.SearchStrategy[Any]] = {
    "step": NUMBERS, "cause": TEXTS, "by_request": TEXTS, "queue_index": st.integers(0, 2**31 - 1),
    "prompt_len": NUMBERS, "max_tokens": NUMBERS, "num_generated": NUMBERS,
    "priority": st.integers(-(2**31), 2**31 - 1), "deadline_ns": st.integers(-(2**63), 2**63 - 1),
    "external_id": TEXTS, "lora": TEXTS, "alike": TEXTS, "num_alike": NUMBERS,
    "ignore_eos": st.booleans(), "seq": NUMBERS,
}  # fmt: skip
EVENTS = st.builds(
    lambda known, more: known | more,
    st.fixed_dictionaries(
        {
            "rank": st.integers(0, 3),
            "request": st.sampled_from(["a", "b", "req-7", "", "ü\n\x1b[31m"]),
            "event": st.sampled_from(LIFECYCLE_EVENTS),
            "ts_ns": TIMES,
        }
    ),
    st.fixed_dictionaries({}, optional=TOLD),
)
CLOCKS = st.builds(ClockInfo, st.sampled_from(["wall", "virtual", "profiler"]),
                   st.sampled_from([0, 1, 1_700_000_000_000_000_000, 2**62, -5]))  # fmt: skip


def phases_of(trace: Trace) -> list[Phase]:
    found = request_phases(trace).select("rank", "request", "phase", "from_ns", "to_ns")
    return sorted(found.rows(), key=repr)


def lifecycle_of(trace: Trace) -> pl.DataFrame:
    """Rows by request and time; those of one moment in their order."""
    order = ("rank", "request", "ts_ns")
    return trace.lifecycle.sort(order, maintain_order=True).collect()


def assert_the_same(trace: Trace, read: Trace) -> None:
    assert phases_in(read) == phases_of(trace)
    assert lifecycle_of(read).equals(lifecycle_of(trace))
    assert read.manifest.clock == trace.manifest.clock


@slow
@looped("name", SAMPLES)
def test_every_phase_and_event_of_a_sample_is_read_again(name: str, tmp_path: Path) -> None:
    trace = Trace.open(ROOT / "sample_traces" / f"{name}.trace")

    read = Trace.open(written(trace, tmp_path))

    assert len(phases_of(trace)) > 20
    assert_the_same(trace, read)
    assert read.manifest.producer == trace.manifest.producer
    assert read.manifest.tables["lifecycle"] == trace.manifest.tables["lifecycle"]
    assert read.manifest.closed == trace.manifest.closed


@slow
@settings(max_examples=12)  # each is many requests, and several scans of Polars
@given(st.lists(EVENTS, min_size=1, max_size=60), CLOCKS)
def test_a_round_trip_keeps_every_phase_of_any_lifecycle(rows: list[Row], clock: ClockInfo) -> None:
    trace = trace_of(lifecycle=rows, clock=clock, producer="made up")

    with tempfile.TemporaryDirectory() as folder:
        file = written(trace, Path(folder))
        assert_the_same(trace, Trace.open(file))
        first = file.read_bytes()
        assert written(trace, Path(folder)).read_bytes() == first  # the same trace, the same bytes


def test_rows_without_a_request_or_a_time_that_there_is_are_left_out(tmp_path: Path) -> None:
    absurd = [{"request": None, "event": "arrive", "ts_ns": 5},
           {"request": "r", "event": "arrive", "ts_ns": 2**63 - 1},
           {"request": "r", "event": "arrive", "ts_ns": None}]  # fmt: skip
    trace = trace_of(lifecycle=[*absurd, {"request": "r", "event": "arrive", "ts_ns": 5}])

    read = Trace.open(written(trace, tmp_path))

    assert rows_of(read, "lifecycle", "request", "ts_ns", "event") == [("r", 5, "arrive")]
    assert read.manifest.tables["lifecycle"] == "partial"


def test_an_id_that_is_used_again_is_two_requests(tmp_path: Path) -> None:
    turn = [(0, "arrive"), (1, "admit"), (2, "first-token"), (4, "finish")]
    rows = [{"request": "r", "event": event, "ts_ns": later + at}
            for later in (0, 100) for at, event in turn]  # fmt: skip
    trace = trace_of(lifecycle=rows)

    read = Trace.open(written(trace, tmp_path))

    assert_the_same(trace, read)
    assert rows_of(read, "spans", "name").count("llm_request") == 2


def test_spans_that_were_let_go_on_the_way_leave_less_than_all(tmp_path: Path) -> None:
    trace = Trace.open(ROOT / "sample_traces" / "vllm_crowd.trace")
    file = written(trace, tmp_path)
    (line,) = file.read_text().splitlines()
    told = json.loads(line)
    (scoped,) = told["resourceSpans"][0]["scopeSpans"]
    scoped["spans"] = [each for each in scoped["spans"] if each["traceId"][0] in "02468ace"]
    file.write_text(json.dumps(told))

    read = Trace.open(file)

    assert 0 < read.num_rows("lifecycle") < trace.num_rows("lifecycle")
    assert read.manifest.tables["lifecycle"] == "partial"


def test_where_events_were_let_go_latencies_tell_what_they_can(tmp_path: Path) -> None:
    turn = ((1, "arrive"), (2, "admit"), (3, "first-token"), (6, "finish"))
    rows = [{"request": "r", "event": event, "ts_ns": at * 10**9} for at, event in turn]
    file = written(trace_of(lifecycle=rows, clock=ClockInfo("virtual")), tmp_path)
    told = json.loads(file.read_text())
    for span in told["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span.pop("events", None)
    file.write_text(json.dumps(told))

    read = Trace.open(file)

    assert rows_of(read, "lifecycle", "event", "ts_ns") == [
        (row["event"], row["ts_ns"]) for row in rows
    ]
    assert read.manifest.tables["lifecycle"] != "complete"


def test_beside_spans_of_others_times_are_those_of_the_file(tmp_path: Path) -> None:
    rows = [{"request": "r", "event": "arrive", "ts_ns": 7}]
    file = written(trace_of(lifecycle=rows, clock=ClockInfo("virtual")), tmp_path)
    other = {"name": "route", "startTimeUnixNano": "1700000000000000000",
             "endTimeUnixNano": "1700000000000000005"}  # fmt: skip
    with file.open("a") as out:
        out.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [other]}]}]}))

    read = Trace.open(file)

    assert read.manifest.clock == ClockInfo("wall")
    assert rows_of(read, "lifecycle", "ts_ns") == [86_400 * 10**9]


@looped("other", [
    {"name": "jump"}, {"timeUnixNano": "soon"}, {"timeUnixNano": "0"}, {"name": None},
])  # fmt: skip
def test_an_event_that_is_none_of_a_lifecycle_is_counted(tmp_path: Path, other: Row) -> None:
    rows = [
        {"request": "r", "event": event, "ts_ns": at}
        for at, event in enumerate(("arrive", "admit"))
    ]
    file = written(trace_of(lifecycle=rows, clock=ClockInfo("virtual")), tmp_path)
    told = json.loads(file.read_text())
    told["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["events"][1] |= other
    file.write_text(json.dumps(told))

    read = Trace.open(file)

    assert rows_of(read, "lifecycle", "event") == ["arrive"]
    assert report_of(read).skipped[LEFT_OUT] == 1
