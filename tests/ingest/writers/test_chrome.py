"""A trace written as Chrome JSON."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest

from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.chrome import write_chrome
from tests.ingest.kineto_files import rows
from tests.ingest.real_files import profile
from tests.tiers import slow
from tests.traces import by_track, trace_of


def written(trace: Trace, folder: Path) -> dict[str, Any]:
    write_chrome(trace, folder / "out.json")
    document: dict[str, Any] = json.loads((folder / "out.json").read_bytes())
    return document


def again(trace: Trace, folder: Path) -> Trace:
    """The trace written and read again."""
    write_chrome(trace, folder / "out.json.gz")
    return Trace.open(folder / "out.json.gz")


def shown(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Slices and instants as (process, thread, name, ts, dur)."""
    names = {
        (event["name"], event["pid"], event.get("tid")): event["args"].get("name")
        for event in document["traceEvents"]
        if event["ph"] == "M"
    }
    return [
        (
            names["process_name", event["pid"], None],
            names["thread_name", event["pid"], event["tid"]],
            event["name"],
            event["ts"],
            event.get("dur"),
        )
        for event in document["traceEvents"]
        if event["ph"] in "XiB"
    ]


@slow
@pytest.mark.parametrize(
    "name",
    [
        "gloo_rank1",
        "vllm_cpu_tiny_llama_preemptions",
        "hta_nccl_data",
        "hta_sampled_rank-1",
    ],
)
def test_a_profile_survives_the_round_trip(tmp_path: Path, name: str) -> None:
    trace = Trace.open(profile(name))

    copy = again(trace, tmp_path)

    # Over gloo no call names the ranks of its group; the head of the file does, for all.
    in_head = cs.matches("expected_ranks" if name == "gloo_rank1" else "^$")
    clock, moved_clock = trace.manifest.clock, copy.manifest.clock
    on_clock = pl.col("^(ts_ns|gpu_ts_ns)$") + (moved_clock.epoch_ns - clock.epoch_ns)
    for table in ("flows", "counters", "steps", "collectives"):
        found = copy.table(table).with_columns(on_clock).collect()
        expected = trace.table(table).collect()
        assert found.drop(in_head).equals(expected.drop(in_head)), table
    spans = copy.spans.with_columns(on_clock).collect()
    assert by_track(spans).equals(by_track(trace.spans.collect()))
    assert copy.manifest.ranks == trace.manifest.ranks
    assert moved_clock.kind == clock.kind
    assert copy.manifest.producer == trace.manifest.producer


@slow
def test_the_same_trace_gives_the_same_bytes(sample_traces: Path, tmp_path: Path) -> None:
    trace = Trace.open(sample_traces / "torch_profiler_cpu.json.gz")

    for name in ("one.json.gz", "two.json.gz", "one.json", "two.json"):
        write_chrome(trace, tmp_path / name)

    for suffix in ("json", "json.gz"):
        one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
        assert one.read_bytes() == two.read_bytes()
    assert (
        gzip.decompress((tmp_path / "one.json.gz").read_bytes())
        == (tmp_path / "one.json").read_bytes()
    )


def test_an_engine_shows_its_steps_requests_and_core_groups(tmp_path: Path) -> None:
    trace = trace_of(
        clock=ClockInfo("virtual"),
        steps=[
            {"step": 1, "ts_ns": 2000, "dur_ns": 5000, "kind": "mixed", "num_prefill_tokens": 60,
             "num_decode_tokens": 2, "num_waiting": 3, "kv_blocks_free": 7},
            {"step": 2, "ts_ns": 8000, "dur_ns": 1500, "kind": "decode", "num_decode_reqs": 3,
             "num_decode_tokens": 3},
        ],
        batch_rows=[
            {"step": 1, "ts_ns": 2000, "request": "r10", "phase": "prefill", "num_tokens": 60},
            {"step": 1, "ts_ns": 2000, "request": "r9", "phase": "decode", "num_tokens": 1},
            {"step": 2, "ts_ns": 8000, "request": "r10", "phase": "prefill", "num_tokens": 8,
             "is_recompute": True},
        ],
        lifecycle=[
            {"ts_ns": 500, "request": "r10", "event": "arrive", "prompt_len": 60},
            {"ts_ns": 2000, "request": "r10", "event": "admit", "step": 1},
            {"ts_ns": 7000, "request": "r10", "event": "first-token", "step": 1},
            {"ts_ns": 7000, "request": "r10", "event": "preempt", "step": 1, "cause": "no block"},
            {"ts_ns": 8000, "request": "r10", "event": "resume", "step": 2},
        ],
        decisions=[{"ts_ns": 2000, "step": 1, "subject_kind": "request", "subject": "r11",
                    "verdict": "passed-over", "reason": "no KV block"}],
        tasks=[{"task": 4, "name": "expert", "shape": "MIX", "num_blocks": 1}],
        core_spans=[
            {"ts_ns": 3000, "task": 4, "block": 0, "shape": "MIX", "group": 1, "core": 3,
             "core_kind": "AIC", "slot": "pending", "dispatch_ns": 2500, "end_ns": 4000},
            {"ts_ns": 3000, "task": 5, "block": 2, "shape": "AIV", "group": 1, "core": 4,
             "core_kind": "AIV0", "slot": "running", "dispatch_ns": 3000},
        ],
        collectives=[{"ts_ns": 4000, "ordinal": 0, "op": "all-to-all", "group": "ep",
                      "dur_ns": 100}],
    )  # fmt: skip

    document = written(trace, tmp_path)

    assert sorted(shown(document), key=str) == sorted(
        [
            ("engine", "steps", "mixed[n_p=60 n_d=2]", 2.0, 5.0),
            ("engine", "steps", "decode[bs=3 tok=3]", 8.0, 1.5),
            ("engine", "decisions", "passed-over request r11", 2.0, None),
            ("requests", "r9", "decode 1", 2.0, 5.0),
            ("requests", "r10", "waiting", 0.5, 1.5),
            ("requests", "r10", "prefill 60", 2.0, 5.0),
            ("requests", "r10", "preempted", 7.0, 1.0),
            ("requests", "r10", "recompute 8", 8.0, 1.5),
            ("requests", "r10", "arrive", 0.5, None),
            ("requests", "r10", "admit", 2.0, None),
            ("requests", "r10", "first-token", 7.0, None),
            ("requests", "r10", "preempt", 7.0, None),
            ("requests", "r10", "resume", 8.0, None),
            ("core group 1", "core 3 AIC", "expert [0]", 3.0, 1.0),
            ("core group 1", "core 3 AIC", "held for expert [0]", 2.5, 0.5),
            ("core group 1", "core 4 AIV0", "task 5 [2]", 3.0, None),
            ("collectives", "ep", "all-to-all", 4.0, 0.1),
            ("waiting queue", "position 0", "r10", 0.5, 1.5),
            ("waiting queue", "position 0", "r10", 7.0, 1.0),
        ],
        key=str,
    )
    threads = [
        event["args"]["name"] for event in document["traceEvents"] if event["name"] == "thread_name"
    ]
    assert threads.index("r9") < threads.index("r10")
    preempted = next(event for event in document["traceEvents"] if event["name"] == "preempted")
    assert preempted["args"] == {"step": 1, "cause": "no block"}
    counters = [
        (event["name"], event["ts"], event["args"]["value"])
        for event in document["traceEvents"]
        if event["ph"] == "C"
    ]
    assert ("waiting", 2.0, 3.0) in counters
    assert ("KV blocks free", 2.0, 7.0) in counters


def test_steps_of_an_engine_are_found_again_by_their_tags(tmp_path: Path) -> None:
    steps = [
        {"step": 1, "ts_ns": 0, "dur_ns": 9, "kind": "prefill", "num_prefill_reqs": 2,
         "num_prefill_tokens": 64},
        {"step": 2, "ts_ns": 9, "dur_ns": 9, "kind": "decode", "num_decode_reqs": 2,
         "num_decode_tokens": 2},
    ]  # fmt: skip

    copy = again(trace_of(clock=ClockInfo("virtual"), steps=steps), tmp_path)

    columns = ("kind", "num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "dur_ns")
    assert rows(copy, "steps", *columns) == [("prefill", 2, 64, 0, 9), ("decode", 0, 0, 2, 9)]
    assert copy.manifest.clock == ClockInfo("virtual")


def test_spans_flows_and_counters_of_a_recorder_come_back(tmp_path: Path) -> None:
    trace = trace_of(
        spans=[
            {"ts_ns": -1, "track": "engine", "name": "schedule", "form": "slice", "dur_ns": 10},
            {"ts_ns": 4, "track": "engine", "name": "crossing", "form": "slice", "dur_ns": 10},
            {"ts_ns": 5, "track": "engine", "name": "mark", "form": "instant"},
            {"ts_ns": 6, "track": "gpu / stream 1", "name": "hung", "form": "unfinished"},
        ],
        flows=[
            {"ts_ns": 1, "flow": "7", "end": "start", "track": "engine", "name": "launch"},
            {"ts_ns": 6, "flow": "7", "end": "finish", "track": "gpu / stream 1"},
        ],
        counters=[
            {"ts_ns": 1, "name": "free", "value": 2.5, "track": "engine"},
            {"ts_ns": 2, "name": "free", "value": float("nan"), "track": "engine"},
            {"ts_ns": 3, "name": "alone", "value": 1e300},
        ],
    )

    copy = again(trace, tmp_path)

    assert rows(copy, "spans", "track", "name", "form", "ts_ns", "dur_ns") == [
        ("engine", "schedule", "slice", 0, 10),
        ("engine #2", "crossing", "slice", 5, 10),
        ("engine", "mark", "instant", 6, None),
        ("gpu / stream 1", "hung", "unfinished", 7, None),
    ]
    assert rows(copy, "flows", "flow", "end", "track", "name") == [
        ("7", "start", "engine", "launch"),
        ("7", "finish", "gpu / stream 1", "launch"),
    ]
    assert rows(copy, "counters", "ts_ns", "name", "value", "track") == [
        (2, "free", 2.5, "engine"),
        (4, "alone", 1e300, None),
    ]


def test_asynchronous_spans_come_back_to_their_tracks(tmp_path: Path) -> None:
    span = {"track": "requests / r7", "form": "async", "name": "request"}
    spans = [
        {**span, "ts_ns": 0, "dur_ns": 10, "args": '{"a":1}'},
        {**span, "ts_ns": 4, "dur_ns": 6, "category": "io"},
        {**span, "ts_ns": 7, "dur_ns": 9},
        {**span, "ts_ns": 20, "dur_ns": 0},
        {**span, "ts_ns": 20, "dur_ns": 3, "name": "around"},
    ]

    copy = again(trace_of(spans=spans), tmp_path)

    columns = ("track", "name", "category", "form", "ts_ns", "dur_ns", "args")
    assert rows(copy, "spans", *columns) == [
        ("requests / r7", "request", None, "async", 0, 10, '{"a":1}'),
        ("requests / r7", "request", "io", "async", 4, 6, None),
        ("requests / r7 #2", "request", None, "async", 7, 9, None),
        ("requests / r7", "around", None, "async", 20, 3, None),
        ("requests / r7", "request", None, "async", 20, 0, None),
    ]


def test_counters_keep_their_unit(tmp_path: Path) -> None:
    counter = {"name": "free", "track": "kv", "value": 2.0}
    counters = [{**counter, "unit": unit} for unit in ("blocks", "a]b", "", None)]

    copy = again(trace_of(counters=counters), tmp_path)

    assert rows(copy, "counters", "name", "unit") == [
        ("free", "blocks"), ("free", "a]b"), ("free", ""), ("free", None),
    ]  # fmt: skip


def test_ranks_keep_their_tracks_apart(tmp_path: Path) -> None:
    span = {"track": "engine / main", "name": "a", "form": "slice", "dur_ns": 10, "ts_ns": 0}

    copy = again(trace_of(ranks=(0, 1), spans=[span, {**span, "rank": 1}]), tmp_path)

    assert rows(copy, "spans", "track") == ["rank 0 engine / main", "rank 1 engine / main"]
