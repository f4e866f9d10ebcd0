"""A trace written as Chrome JSON, read by Perfetto's own engine."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.chrome import write_chrome
from tests.ingest.real_files import profile
from tests.ingest.writers.perfetto_engine import LOST, Ask, Rows
from tests.tiers import sampled, slow
from tests.traces import trace_of

WALL_NS = 1_760_000_000_123_456_789
SLICES = """select json_array(process.name, thread.name, slice.name, category, slice.ts, dur)
    from slice join thread_track on track_id = thread_track.id join thread using (utid)
    join process using (upid)"""
COUNTERS = """select json_array(process.name, track.name, ts, value)
    from counter join process_counter_track as track on track_id = track.id
    left join process using (upid)"""
FLOWS = """select json_array(tail.name, head.name)
    from flow join slice as tail on slice_out = tail.id join slice as head on slice_in = head.id"""


def expected(path: Path) -> tuple[Counter[Any], Counter[Any]]:
    """The slices and counters of a file, as `SLICES` and `COUNTERS` give them."""
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
    names = {
        (event["name"], event["pid"], event.get("tid")): event["args"]["name"]
        for event in events
        if event["ph"] == "M" and "name" in event["args"]
    }
    slices, counters = Counter[Any](), Counter[Any]()
    for event in events:
        process = names.get(("process_name", event.get("pid"), None))
        if event["ph"] in "XiB":
            thread = names["thread_name", event["pid"], event["tid"]]
            dur_ns = {"i": 0, "B": -1}.get(event["ph"], int(event.get("dur", 0) * 1000))
            where = (process, thread, event["name"], event.get("cat"))
            slices[*where, int(event["ts"] * 1000), dur_ns] += 1
        elif event["ph"] == "C":
            ((key, value),) = event["args"].items()
            name = f"{event['name']} {key}"
            counters[process, name, int(event["ts"] * 1000), float(value)] += 1
    return slices, counters


def assert_shown(ask: Ask, trace: Trace, folder: Path) -> Rows:
    """Assert that Perfetto shows all slices and counters as written; give the flows it shows."""
    out = folder / "out.json.gz"
    write_chrome(trace, out)
    lost, slices, counters, flows = ask(out, LOST, SLICES, COUNTERS, FLOWS)
    expected_slices, expected_counters = expected(out)
    assert lost == []
    assert Counter(slices) == expected_slices
    assert Counter(counters) == expected_counters
    assert expected_slices
    return flows


SAMPLES = [
    "mix-admission-before.trace", "fcfs-preemption-before.trace", "torch_profiler_cpu.json.gz",
]  # fmt: skip


@slow
@pytest.mark.parametrize("name", sampled(SAMPLES, SAMPLES[:1]))
def test_perfetto_shows_all_of_a_sample(
    ask: Ask, sample_traces: Path, tmp_path: Path, name: str
) -> None:
    assert_shown(ask, Trace.open(sample_traces / name), tmp_path)


@slow
@pytest.mark.parametrize(
    "name", sampled(["jax_cpu", "gloo_rank1", "hta_nccl_data"], ["gloo_rank1"])
)
def test_perfetto_shows_all_of_a_profile_and_its_launches(
    ask: Ask, tmp_path: Path, name: str
) -> None:
    trace = Trace.open(profile(name))

    flows = assert_shown(ask, trace, tmp_path)

    ends = trace.flows.select("flow", "end").collect().group_by("flow").agg("end")["end"]
    assert len(flows) == sum({"start", "finish"} <= set(end) for end in ends)


@slow
@pytest.mark.parametrize("start_ns", sampled([-700, 4_458_676_416_788_066, WALL_NS], [WALL_NS]))
def test_perfetto_shows_spans_that_touch_nest_and_cross_at_any_time(
    ask: Ask, tmp_path: Path, start_ns: int
) -> None:
    chance = random.Random(7)
    spans = []
    for number in range(2000):
        form = chance.choice(("slice",) * 8 + ("instant", "unfinished"))
        dur_ns = chance.choice((0, 1, 2, 5, 40)) if form == "slice" else None
        # Perfetto takes an unfinished span to lie within one that begins at the same time.
        ts_ns = start_ns + 2 * chance.randrange(2000) + (form == "unfinished")
        track = f"engine / {number % 20}"
        spans.append({"ts_ns": ts_ns, "dur_ns": dur_ns, "track": track, "form": form})
    trace = trace_of(
        spans=[{**span, "name": f"span {number}"} for number, span in enumerate(spans)],
        counters=[
            {"ts_ns": start_ns, "name": "free", "unit": "GiB", "value": 2.5, "track": "engine / 1"},
            {"ts_ns": start_ns + 1, "name": "alone", "value": -1e300},
        ],
    )

    assert_shown(ask, trace, tmp_path)


@slow
def test_perfetto_joins_the_ends_of_arrows(ask: Ask, tmp_path: Path) -> None:
    spans, flows = [], []
    for rank in (0, 1):
        for track, ts_ns in (("cpu", 0), ("gpu", 5)):
            name = f"{track} of {rank}"
            place = {"rank": rank, "track": track}
            spans.append({**place, "name": name, "form": "slice", "ts_ns": ts_ns, "dur_ns": 4})
        start = {"rank": rank, "track": "cpu", "ts_ns": 1, "end": "start", "name": "launch"}
        finish = {"rank": rank, "track": "gpu", "ts_ns": 6, "end": "finish"}
        for flow in ("7", "step 7"):
            flows += [{**start, "flow": flow}, {**finish, "flow": flow}]

    shown = assert_shown(ask, trace_of(ranks=(0, 1), spans=spans, flows=flows), tmp_path)

    assert sorted(shown) == [("cpu of 0", "gpu of 0")] * 2 + [("cpu of 1", "gpu of 1")] * 2


@slow
def test_perfetto_opens_tracks_without_a_name(ask: Ask, tmp_path: Path) -> None:
    span = {"name": "step", "form": "slice", "dur_ns": 1}

    assert_shown(ask, trace_of(spans=[{**span, "track": ""}]), tmp_path)
