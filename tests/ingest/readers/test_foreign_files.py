"""What other programs' files say, counted by the standard library alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of


@pytest.fixture(scope="module")
def foreign() -> Path:
    folder = ROOT.parent / "shared" / "foreign"
    if not folder.is_dir():
        pytest.skip("the folder of what people also have, ../shared/foreign, is absent")
    return folder


def test_counters_of_a_vllm_log_are_the_numbers_of_its_lines(foreign: Path) -> None:
    file = foreign / "vllm_dgx_spark.log"
    lines = file.read_text().splitlines()
    said = Counter[tuple[str, float]]()
    for line in lines:
        found = re.search(r"(?:Avg prompt throughput: .*|SpecDecoding metrics: .*)", line)
        pairs = re.findall(r"([A-Z][\w -]*): (-?[\d.]+)", found[0] if found else "")
        said.update((name, float(value.rstrip("."))) for name, value in pairs)

    trace = Trace.open(file)

    told = Counter(
        (name, value)
        for name, value in rows(trace, "counters", "name", "value")
        if not re.search(r" \d+$", name)
    )
    assert told == said
    first = next(line for line in lines if "Avg prompt throughput" in line)
    month, day, *clock = map(int, re.findall(r"\d\d", first.partition("INFO ")[2])[:5])
    moment = datetime(2000, month, day, *clock, tzinfo=UTC)  # type: ignore[misc,arg-type]  # three numbers
    assert min(rows(trace, "counters", "ts_ns")) == int(moment.timestamp()) * 10**9


def test_steps_of_an_sglang_log_are_its_batches(foreign: Path) -> None:
    file = foreign / "sglang_int4_dgx_spark.log"
    said = Counter[tuple[str, int, int]]()
    for line in file.read_text().splitlines():
        if prefill := re.search(r"Prefill batch, #new-seq: (\d+), #new-token: (\d+)", line):
            said["prefill", int(prefill[1]), int(prefill[2])] += 1
        elif decode := re.search(r"Decode batch, #running-req: (\d+)", line):
            said["decode" if int(decode[1]) else "idle", 0, 0] += 1

    trace = Trace.open(file)

    columns = ("kind", "num_prefill_reqs", "num_prefill_tokens")
    assert Counter(rows(trace, "steps", *columns)) == said
    assert trace.num_rows("steps") == 113


def test_iterations_of_tensorrt_llm_are_those_of_its_json_and_its_log(foreign: Path) -> None:
    told = json.loads((foreign / "trt_metrics.json").read_text())
    columns = ("num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "dur_ns")

    trace = Trace.open(foreign / "trt_metrics.json")
    log = Trace.open(foreign / "trt_new.log")

    batches = [(each["inflightBatchingStats"], each["iterLatencyMS"]) for each in told]
    assert rows(trace, "steps", *columns) == [
        (said["numContextRequests"], said["numCtxTokens"], said["numGenRequests"], round(ms * 1e6))
        for said, ms in batches
    ]
    assert rows(log, "steps", *columns) == [(1, 4, 0, 4_080_000), (0, 0, 1, 5_080_000)]


def test_events_of_a_trace_viewer_s_file_are_each_read_or_counted(foreign: Path) -> None:
    file = foreign / "xprof_trace_viewer.json"
    events = json.loads(file.read_text())["traceEvents"]

    trace = Trace.open(file)

    report = report_of(trace)
    read = Counter(report.read)
    read["E"] += report.skipped["end without begin"]
    assert read == Counter(event["ph"] for event in events)
    slices = [event for event in events if event["ph"] == "X"]
    assert {(event["name"], 1000 * event["ts"], 1000 * event["dur"]) for event in slices} <= set(
        rows(trace, "spans", "name", "ts_ns", "dur_ns")
    )
