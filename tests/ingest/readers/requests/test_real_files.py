"""Request lists and workloads, real and written: what is read is what other readers count."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.readers.requests.collect import HASHES
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.requests.lists import ARRIVAL
from tests.ingest.written_files import ORIGINS, from_origin


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_csv_says_what_the_csv_module_reads(tmp_path: Path, origin: str) -> None:
    file = from_origin(origin, tmp_path, "data/requests/azure_conv.csv")
    with file.open(newline="") as opened:
        told = list(csv.DictReader(opened))

    lifecycle = Trace.open(file).lifecycle.collect()

    assert lifecycle["prompt_len"].to_list() == [int(row["ContextTokens"]) for row in told]
    assert lifecycle["max_tokens"].to_list() == [int(row["GeneratedTokens"]) for row in told]
    times = lifecycle["ts_ns"].cast(pl.Datetime("ns")).dt.to_string("%Y-%m-%d %H:%M:%S.%9f")
    assert times.to_list() == [f"{row['TIMESTAMP']}00" for row in told]


@pytest.mark.parametrize("origin", ORIGINS)
def test_json_lines_say_what_the_json_module_reads(tmp_path: Path, origin: str) -> None:
    file = from_origin(origin, tmp_path, "data/requests/mooncake_conversation_trace.jsonl")
    told = [json.loads(line) for line in file.read_text().splitlines()]

    trace = Trace.open(file)

    names = ("timestamp", "input_length", "output_length")
    found = [
        (ts_ns / 1e6, prompt, output)
        for ts_ns, prompt, output in rows(trace, "lifecycle", *ARRIVAL[2:])
    ]
    assert found == [tuple(row[name] for name in names) for row in told]
    assert report_of(trace).skipped == {HASHES: sum(len(row["hash_ids"]) for row in told)}


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("llmservingsim_workload.jsonl", ("arrival_time_ns", "input_toks", "output_toks")),
        ("aibrix_5s_workload.jsonl", ("timestamp", "Prompt Length", "Output Length")),
    ],
)
def test_a_workload_is_counted_whole_by_the_json_module(
    tmp_path: Path, origin: str, name: str, columns: tuple[str, ...]
) -> None:
    file = from_origin(origin, tmp_path, f"foreign/{name}")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    told = [{**line, **each} for line in lines for each in line.get("requests", [{}])]

    trace = Trace.open(file)

    unit = 1 if columns[0].endswith("_ns") else 1_000_000
    assert rows(trace, "lifecycle", *ARRIVAL[2:]) == [
        (row[columns[0]] * unit, row[columns[1]], row[columns[2]]) for row in told
    ]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_measurement_is_counted_whole_by_the_json_module(tmp_path: Path, origin: str) -> None:
    file = from_origin(origin, tmp_path, "foreign/llmservingsim_vllm_requests.jsonl")
    told = [json.loads(line) for line in file.read_text().splitlines()]
    times = {"queued_ts": "arrive", "scheduled_ts": "admit", "first_token_ts": "first-token",
             "last_token_ts": "finish"}  # fmt: skip

    trace = Trace.open(file)

    assert Counter(rows(trace, "lifecycle", "request", "event", "ts_ns")) == Counter(
        (row["request_id"], event, round(row[time] * 1e9))
        for row in told for time, event in times.items()
    )  # fmt: skip
    assert report_of(trace).read == {"requests": len(told)}
