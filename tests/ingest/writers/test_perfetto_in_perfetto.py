"""A trace written as Perfetto's protobuf, read by Perfetto's own engine."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.perfetto import write_perfetto
from tests.ingest.perfetto_files import Shown, shown_by
from tests.ingest.real_files import profile
from tests.ingest.writers.perfetto_engine import LOST, Ask, Rows
from tests.tiers import sampled, slow
from tests.traces import trace_of

PROFILES = ["gloo_rank1"]
"""Of a CPU, in the repository, and of a GPU."""
WALL_NS = 1_760_000_000_123_456_789
_PATHS = """with recursive
    up(id, above, path) as (
        select id, parent_id, name from track
        union all
        select up.id, track.parent_id, track.name || ' / ' || path
        from up join track on above = track.id
    ),
    owned(id, upid) as (
        select id, upid from process_track union all select id, upid from process_counter_track
    ),
    owner(id, upid) as (
        select id, upid from owned
        union all
        select track.id, upid from owner join track on track.parent_id = owner.id
        where track.id not in (select id from owned)
    ),
    place(id, process, path) as (
        select up.id, process.name, path from up join owner using (id) join process using (upid)
        where above is null
    )"""
# Times as text: the script reads JSON's numbers as doubles.
SLICES = " ".join((_PATHS, """select json_array(process, path, slice.name, category, ts || '', dur)
    from slice join place on track_id = place.id"""))  # fmt: skip
COUNTERS = " ".join((_PATHS, """select json_array(process, path, unit, ts || '', value)
    from counter join place on track_id = place.id
    join (select id, unit from counter_track) as track on track_id = track.id"""))  # fmt: skip
FLOWS = """select json_array(tail.name, head.name)
    from flow join slice as tail on slice_out = tail.id join slice as head on slice_in = head.id"""
ARGUMENTS = """select json_array(key, display_value) from slice join args using (arg_set_id)
    where key glob 'debug.*' or key glob 'correlation*'"""


def assert_shown(ask: Ask, trace: Trace, folder: Path) -> tuple[Shown, Rows]:
    """Assert that Perfetto shows all slices, tracks and counters of the file; give its arrows."""
    write_perfetto(trace, folder / "out.pftrace")
    lost, slices, counters, flows = ask(folder / "out.pftrace", LOST, SLICES, COUNTERS, FLOWS)
    shown = shown_by(folder / "out.pftrace")
    assert lost == []
    assert Counter(slices) == Counter((*row[:4], str(row[4]), row[5]) for row in shown.slices)
    assert Counter(counters) == Counter((*row[:3], str(row[3]), row[4]) for row in shown.counters)
    assert slices
    return shown, flows


@slow
@pytest.mark.parametrize(
    "name",
    sampled(
        [
            "fcfs-preemption-before.trace",
            "mix-admission-before.trace",
            "torch_profiler_cpu.json.gz",
        ],
        ["fcfs-preemption-before.trace"],
    ),
)
def test_perfetto_shows_all_of_a_sample(
    ask: Ask, sample_traces: Path, tmp_path: Path, name: str
) -> None:
    assert_shown(ask, Trace.open(sample_traces / name), tmp_path)


@slow
@pytest.mark.parametrize(
    "name", sampled(["jax_cpu", "gloo_rank1", "hta_nccl_data", "hta_sampled_rank-1"], PROFILES)
)
def test_perfetto_shows_all_of_a_profile_and_its_launches(
    ask: Ask, tmp_path: Path, name: str
) -> None:
    trace = Trace.open(profile(name))

    _, flows = assert_shown(ask, trace, tmp_path)

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
        form = chance.choice(("slice",) * 8 + ("instant", "unfinished", "async"))
        dur_ns = chance.choice((0, 1, 2, 5, 40)) if form in ("slice", "async") else None
        ts_ns = start_ns + chance.randrange(4000)
        track = f"engine / {number % 20}"
        spans.append({"ts_ns": ts_ns, "dur_ns": dur_ns, "track": track, "form": form})
    trace = trace_of(
        spans=[{**span, "name": f"span {number}"} for number, span in enumerate(spans)],
        counters=[
            {"ts_ns": start_ns, "name": "free", "unit": "blocks", "value": 2.5, "track": "engine"},
            {"ts_ns": start_ns + 1, "name": "alone", "value": -1e300},
        ],
    )

    shown, _ = assert_shown(ask, trace, tmp_path)

    assert len(shown.slices) == len(spans)


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

    _, shown = assert_shown(ask, trace_of(ranks=(0, 1), spans=spans, flows=flows), tmp_path)

    assert sorted(shown) == [("cpu of 0", "gpu of 0")] * 2 + [("cpu of 1", "gpu of 1")] * 2


@slow
def test_perfetto_shows_arguments_and_correlations(ask: Ask, tmp_path: Path) -> None:
    args = '{"text": "é\\"", "float": 1.50, "list": [1, {"a": []}], "null": null, "object": {}}'
    span = {"track": "t", "name": "a", "form": "async", "dur_ns": 1, "args": args}

    write_perfetto(trace_of(spans=[{**span, "step": 3, "correlation": 9}]), tmp_path / "a.pftrace")

    (arguments,) = ask(tmp_path / "a.pftrace", ARGUMENTS)
    assert dict(arguments) == {
        "debug.text": 'é"', "debug.float": "1.5", "debug.list[0]": "1", "correlation_id": "tp:#9",
        "debug.stepscope_step": "3", "debug.stepscope_form": "async",
    }  # fmt: skip


@slow
def test_perfetto_survives_any_argument(ask: Ask, tmp_path: Path) -> None:
    span = {"track": "", "name": "", "category": "", "form": "slice", "dur_ns": 1}
    texts = ("null", "[null]", "{}", "[[[]]]", '{"a":{"b":null}}', "1e400", "x", '"\\u0000"')
    spans = [{**span, "args": f'{{"a":{text}}}'} for text in texts]

    assert_shown(ask, trace_of(spans=spans), tmp_path)
