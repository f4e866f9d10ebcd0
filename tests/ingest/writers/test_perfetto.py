"""A trace written as Perfetto's protobuf."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.ingest.errors import WriteError
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.perfetto import write_perfetto
from tests.ingest.perfetto_files import UNFINISHED, Shown, content, shown_by
from tests.tiers import slow
from tests.traces import trace_of


def written(trace: Trace, folder: Path) -> Shown:
    write_perfetto(trace, folder / "out.pftrace")
    return shown_by(folder / "out.pftrace")


def test_tracks_nest_as_their_names_do(tmp_path: Path) -> None:
    block = {"ts_ns": 30, "task": 5, "block": 0, "shape": "AIC", "group": 1, "core": 3,
             "core_kind": "AIC", "slot": "pending", "dispatch_ns": 25, "end_ns": 40}  # fmt: skip

    before = {**block, "ts_ns": 20, "task": 4, "dispatch_ns": 20, "end_ns": 28}

    shown = written(trace_of(core_spans=[before, block]), tmp_path)

    core = "core group 1 / core 3 AIC"
    assert sorted(shown.slices) == [
        ("rank 0", core, "held for task 5 [0]", "held core", 28, 2),
        ("rank 0", core, "task 4 [0]", "task block", 20, 8),
        ("rank 0", core, "task 5 [0]", "task block", 30, 10),
        ("rank 0", f"{core} / pending", "task 5 [0]", "pending block", 25, 3),
    ]
    names = [each.name or each.process.process_name for each in shown.descriptors.values()]
    assert names == ["rank 0", "core group 1", "core 3 AIC", "pending"]


def test_every_rank_is_a_process(tmp_path: Path) -> None:
    span = {"track": "engine / main", "name": "a", "form": "slice", "dur_ns": 10, "ts_ns": 0}

    shown = written(trace_of(ranks=(0, 7), spans=[span, {**span, "rank": 7}]), tmp_path)

    assert {(row[0], row[1]) for row in shown.slices} == {
        ("rank 0", "engine / main"), ("rank 7", "engine / main"),
    }  # fmt: skip
    assert sorted(each.process.pid for each in shown.descriptors.values()) == [0, 0, 0, 0, 1, 8]


def test_slices_touch_nest_cross_and_stay_open(tmp_path: Path) -> None:
    def span(name: str, ts_ns: int, dur_ns: int | None, form: str = "slice") -> dict[str, Any]:
        return {"track": "t", "name": name, "ts_ns": ts_ns, "dur_ns": dur_ns, "form": form}

    spans = [
        span("empty", 10, 0), span("outer", 0, 10), span("inner", 5, 5), span("next", 10, 4),
        span("crossing", 2, 9), span("mark", 10, None, "instant"),
        span("hung", 3, None, "unfinished"),
    ]  # fmt: skip

    shown = written(trace_of(spans=spans), tmp_path)

    durations = {each["name"]: each["dur_ns"] for each in spans} | {"mark": 0, "hung": UNFINISHED}
    assert {(row[2], row[4], row[5]) for row in shown.slices} == {
        (each["name"], each["ts_ns"], durations[each["name"]]) for each in spans
    }


def test_arguments_keep_every_value_that_json_has(tmp_path: Path) -> None:
    args = {
        "text": 'é "quoted"', "int": -5, "large": 1 << 70, "float": 1.5, "true": True, "null": None,
        "empty": {}, "none": [], "list": [1, {"a": [None]}], "object": {"b": "c"}, "": "no name",
    }  # fmt: skip
    span = {"track": "t", "name": "a", "form": "slice", "dur_ns": 1, "args": json.dumps(args)}

    shown = written(trace_of(spans=[span, {**span, "ts_ns": 5, "args": "[1]"}]), tmp_path)

    assert shown.annotations == [args, {"args": "[1]"}]


def test_steps_correlations_and_forms_go_with_their_spans(tmp_path: Path) -> None:
    span = {"track": "t", "name": "a", "form": "async", "dur_ns": 1, "step": 7, "correlation": 12}

    shown = written(trace_of(spans=[span]), tmp_path)

    assert shown.annotations == [{"stepscope.step": 7, "stepscope.form": "async"}]
    packets = content(tmp_path / "out.pftrace").packet
    assert 12 in [packet.track_event.correlation_id for packet in packets]


def test_counters_keep_their_unit_place_and_every_value(tmp_path: Path) -> None:
    counters = [
        {"ts_ns": 1, "name": "free", "unit": "blocks", "value": 2.5, "track": "engine / kv"},
        {"ts_ns": 2, "name": "free", "value": 1e300, "track": "engine / kv"},
        {"ts_ns": 3, "name": "alone", "unit": "", "value": -math.inf},
    ]

    shown = written(trace_of(counters=counters), tmp_path)

    assert shown.counters == [
        ("rank 0", "engine / kv / free", "blocks", 1, 2.5),
        ("rank 0", "engine / kv / free", None, 2, 1e300),
        ("rank 0", "alone", "", 3, -math.inf),
    ]


def test_arrows_touch_the_innermost_slice(tmp_path: Path) -> None:
    span = {"track": "cpu", "form": "slice"}
    spans = [
        {**span, "name": "outer", "ts_ns": 0, "dur_ns": 10},
        {**span, "name": "inner", "ts_ns": 2, "dur_ns": 2},
        {**span, "name": "kernel", "track": "gpu", "ts_ns": 5, "dur_ns": 2},
    ]
    flow = {"flow": "0x1f", "name": "launch"}
    flows = [
        {**flow, "end": "start", "track": "cpu", "ts_ns": 4},
        {**flow, "end": "finish", "track": "gpu", "ts_ns": 5},
        {**flow, "flow": "b", "end": "start", "track": "cpu", "ts_ns": 6},
        {**flow, "flow": "b", "end": "finish", "track": "gpu", "ts_ns": 20},
    ]

    shown = written(trace_of(spans=spans, flows=flows), tmp_path)

    assert sorted(shown.arrows.values()) == [["inner", "kernel"], ["outer", "launch"]]


def test_times_before_zero_are_counted_from_the_first(tmp_path: Path) -> None:
    span = {"track": "t", "name": "a", "form": "slice", "dur_ns": 3, "ts_ns": -7}

    shown = written(trace_of(clock=ClockInfo("virtual", 5), spans=[span]), tmp_path)

    assert shown.slices == [("rank 0", "t", "a", None, 0, 3)]
    assert shown.metadata["stepscope"] == {
        "producer": "test", "producer_version": "", "clock": "virtual", "epoch_ns": -2,
    }  # fmt: skip


def test_times_of_a_wall_clock_are_written_as_they_are(tmp_path: Path) -> None:
    ts_ns = 1_760_000_000_123_456_789
    span = {"track": "t", "name": "a", "form": "slice", "dur_ns": 1, "ts_ns": ts_ns}

    assert written(trace_of(spans=[span]), tmp_path).slices[0][4] == ts_ns


@slow
@pytest.mark.parametrize("name", ["torch_profiler_cpu.json.gz", "torch_executor_cpu.json.gz"])
def test_a_profile_is_written_whole(sample_traces: Path, tmp_path: Path, name: str) -> None:
    trace = Trace.open(sample_traces / name)

    shown = written(trace, tmp_path)

    dur_ns = pl.col("dur_ns").fill_null(pl.when(pl.col("form") == "instant").then(0).otherwise(-1))
    spans = trace.spans.select(
        pl.lit("rank 0"), "track", "name", "category", "ts_ns", dur_ns
    ).collect()
    assert Counter(shown.slices) == Counter(spans.rows())
    told = [
        json.dumps({key: value for key, value in each.items() if not key.startswith("stepscope.")})
        for each in shown.annotations
    ]
    args = [json.dumps(json.loads(text or "{}")) for text in trace.spans.collect()["args"]]
    assert Counter(told) == Counter(args)


@slow
def test_the_same_trace_gives_the_same_bytes(sample_traces: Path, tmp_path: Path) -> None:
    trace = Trace.open(sample_traces / "fcfs-preemption-before.trace")

    for name in ("one.pftrace", "two.pftrace", "one.pftrace.gz", "two.pftrace.gz"):
        write_perfetto(trace, tmp_path / name)

    for ending in ("pftrace", "pftrace.gz"):
        one, two = tmp_path / f"one.{ending}", tmp_path / f"two.{ending}"
        assert one.read_bytes() == two.read_bytes()
    assert content(tmp_path / "one.pftrace") == content(tmp_path / "one.pftrace.gz")


def test_nulls_where_a_value_belongs_do_no_harm(tmp_path: Path) -> None:
    texts = dict.fromkeys(("track", "name", "form"), pl.String)
    columns = {"ts_ns": [1, None], "track": [None, "a"], "name": [None, "b"], "form": [None, None]}
    empty = pl.DataFrame(columns, schema={"ts_ns": pl.Int64, **texts})

    shown = written(Trace.from_tables({"spans": empty}, trace_of().manifest), tmp_path)

    assert shown.slices == [("rank 0", "global", "", None, 1, 0)]


def test_a_place_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="cannot be written"):
        write_perfetto(trace_of(), tmp_path / "missing" / "out.pftrace")

    assert not list(tmp_path.iterdir())
