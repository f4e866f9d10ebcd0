"""What other programs' files say, counted by the standard library alone."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stepscope.ingest.errors import UnknownFormat
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.xplane.files import fields_of
from tests.ingest.written_files import NUM_RECORDS, ORIGINS, WRITTEN, from_origin

FOLDER = ROOT.parent / "shared" / "foreign"
PROSE = {"README.md", "MANIFEST.tsv"}
OF_A_PART = re.compile(r"times of arrival on another clock|no table has a column|prompts of which")
"""Skipped of records that were read."""


def num_in_lines(file: Path) -> int:
    return sum(map(bool, file.read_text().splitlines()))


def num_in_events(file: Path) -> int:
    return len(json.loads(file.read_text())["traceEvents"])


def num_in_rocprofv3(file: Path) -> int:
    (said,) = json.loads(gzip.decompress(file.read_bytes()))["rocprofiler-sdk-tool"]
    return sum(map(len, said["buffer_records"].values()))


def num_in_nsys(file: Path) -> int:
    uri = f"file:{file}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as opened:
        tables = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        found = [opened.execute(" ".join(("SELECT * FROM", table))) for (table,) in tables]
        timed = [
            each for each in found if {"start", "timestamp"} & {c[0] for c in each.description}
        ]
        return sum(len(each.fetchall()) for each in timed)


def num_in_xplane(file: Path) -> int:
    planes = [list(fields_of(plane)) for key, plane in fields_of(file.read_bytes()) if key == 1]
    lines = [list(fields_of(line)) for plane in planes for key, line in plane if key == 3]
    return sum(key == 4 for line in lines for key, _ in line)


def num_in_otlp(file: Path) -> int:
    scopes = [each["scopeSpans"] for each in json.loads(file.read_text())["resourceSpans"]]
    return sum(len(scope["spans"]) for each in scopes for scope in each)


COUNTS: dict[str, Callable[[Path], int]] = {
    "*.jsonl": num_in_lines,
    "*.log": num_in_lines,
    "*.csv": num_in_lines,
    "*.msgpack": lambda file: file.read_bytes().count(b"counter_id"),
    "merged_tp.json": num_in_events,
    "xprof_trace_viewer.json": num_in_events,
    "trt_metrics.json": lambda file: len(json.loads(file.read_text())),
    "otlp.json": num_in_otlp,
    "rocprofv3_*.json.gz": num_in_rocprofv3,
    "nsys_*.sqlite": num_in_nsys,
    "*.xplane.pb": num_in_xplane,
}


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.glob("*")) or ["absent"])
def test_every_record_is_read_or_counted_or_the_file_is_refused(foreign: Path, name: str) -> None:
    file = foreign / name
    if name in PROSE:
        with pytest.raises(UnknownFormat, match="the file's format is not known"):
            Trace.open(file)
        return
    (num_records,) = {count(file) for like, count in COUNTS.items() if file.match(like)}

    trace = Trace.open(file)

    report = report_of(trace)
    skipped = {what: num for what, num in report.skipped.items() if not OF_A_PART.search(what)}
    assert sum(report.read.values()) + sum(skipped.values()) == num_records
    assert sum(map(trace.num_rows, trace.manifest.tables)) > 0


@pytest.fixture(scope="module")
def foreign() -> Path:
    if not FOLDER.is_dir():
        pytest.skip("the folder of what people also have, ../shared/foreign, is absent")
    return FOLDER


@pytest.mark.parametrize("origin", ORIGINS)
def test_counters_of_a_vllm_log_are_the_numbers_of_its_lines(tmp_path: Path, origin: str) -> None:
    file = from_origin(origin, tmp_path, "foreign/vllm_dgx_spark.log")
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


@pytest.mark.parametrize("origin", ORIGINS)
def test_steps_of_an_sglang_log_are_its_batches(tmp_path: Path, origin: str) -> None:
    file = from_origin(origin, tmp_path, "foreign/sglang_int4_dgx_spark.log")
    said = Counter[tuple[str, int, int]]()
    for line in file.read_text().splitlines():
        if prefill := re.search(r"Prefill batch, #new-seq: (\d+), #new-token: (\d+)", line):
            said["prefill", int(prefill[1]), int(prefill[2])] += 1
        elif decode := re.search(r"Decode batch, #running-req: (\d+)", line):
            said["decode" if int(decode[1]) else "idle", 0, 0] += 1

    trace = Trace.open(file)

    columns = ("kind", "num_prefill_reqs", "num_prefill_tokens")
    assert Counter(rows(trace, "steps", *columns)) == said
    assert trace.num_rows("steps") == {"written": NUM_RECORDS, "real": 113}[origin]


@pytest.mark.parametrize("origin", ORIGINS)
def test_iterations_of_tensorrt_llm_are_those_of_its_json(tmp_path: Path, origin: str) -> None:
    file = from_origin(origin, tmp_path, "foreign/trt_metrics.json")
    told = json.loads(file.read_text())
    columns = ("num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "dur_ns")

    trace = Trace.open(file)

    batches = [(each["inflightBatchingStats"], each["iterLatencyMS"]) for each in told]
    assert rows(trace, "steps", *columns) == [
        (said["numContextRequests"], said["numCtxTokens"], said["numGenRequests"], round(ms * 1e6))
        for said, ms in batches
    ]


def test_iterations_of_a_log_of_tensorrt_llm_are_read(foreign: Path) -> None:
    columns = ("num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "dur_ns")

    log = Trace.open(foreign / "trt_new.log")

    assert rows(log, "steps", *columns) == [(1, 4, 0, 4_080_000), (0, 0, 1, 5_080_000)]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_record_of_a_written_file_is_read_or_counted(tmp_path: Path, name: str) -> None:
    file = from_origin("written", tmp_path, f"foreign/{name}")
    text = file.read_text()
    num_records = len(json.loads(text)) if name.endswith(".json") else num_in_lines(file)
    num_records = text.count("Prompt Length") or num_records  # several requests in a line

    trace = Trace.open(file)

    report = report_of(trace)
    skipped = {what: num for what, num in report.skipped.items() if not OF_A_PART.search(what)}
    assert sum(report.read.values()) + sum(skipped.values()) == num_records
    assert sum(map(trace.num_rows, trace.manifest.tables)) > 0


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
