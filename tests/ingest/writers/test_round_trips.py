"""A trace written in a format that others read, and read again: what must come back does."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers import Writer, writers
from stepscope.ingest.writers.perfetto import PerfettoWriter
from tests.ingest.real_files import profile
from tests.tiers import examples, sampled, slow
from tests.traces import by_track, trace_of

WRITERS = [writer for writer in writers() if ".trace" not in writer.endings]
"""Of the formats of others: ours holds more than spans, and is tried with its tables."""
each_writer = pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.endings[0])
SPAN = ("track", "name", "category", "form", "ts_ns", "dur_ns", "args")
COUNTER = ("track", "name", "unit", "ts_ns", "value")
FLOW = ("track", "name", "category", "ts_ns", "end")
SAMPLES = [
    "torch_profiler_cpu.json.gz", "torch_executor_cpu.json.gz", "mix-admission-before.trace",
    "fcfs-preemption-before.trace",
]  # fmt: skip
PROFILES = [
    "gloo_rank1",
    "h100_qwen15_05b_chat", "hta_event_sync_trace", "hta_nccl_data", "hta_sampled_rank-0",
    "sglang_qwen3_8b_prefilldecode", "vllm_prefilldecode_mi300",
]  # fmt: skip

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
TRACKS = st.sampled_from(["engine", "engine / steps", "gpu 0 / stream 7", "gpu 0 / stream 7 / x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
ARGS = st.dictionaries(NAMES, VALUES, max_size=4)


@st.composite
def spans(draw: st.DrawFn) -> dict[str, Any]:
    """A span of any form, near others."""
    form = draw(st.sampled_from(["slice", "slice", "slice", "instant", "async", "unfinished"]))
    has_end = form in ("slice", "async")
    return {
        "track": draw(TRACKS),
        "name": draw(NAMES),
        "category": draw(st.none() | NAMES),
        "form": form,
        "ts_ns": draw(st.integers(0, 40)),
        "dur_ns": draw(st.sampled_from([0, 0, 1, 2, 5, 20])) if has_end else None,
        "args": json.dumps(args) if (args := draw(ARGS)) else None,
    }


@st.composite
def counters(draw: st.DrawFn) -> dict[str, Any]:
    """A sample."""
    return {
        "track": draw(st.none() | TRACKS),
        "name": draw(NAMES),
        "unit": draw(st.sampled_from([None, "ms", "KV blocks"])),
        "ts_ns": draw(st.integers(0, 40)),
        "value": draw(st.floats(allow_nan=False, allow_infinity=False)),
    }


@st.composite
def arrows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The ends of an arrow."""
    of_arrow = {"name": draw(NAMES), "category": draw(NAMES)}
    times = sorted(draw(st.lists(st.integers(0, 40), min_size=2, max_size=4, unique=True)))
    ends = ["start", *["step"] * (len(times) - 2), "finish"]
    return [
        {**of_arrow, "end": end, "ts_ns": ts_ns, "track": draw(TRACKS)}
        for end, ts_ns in zip(ends, times, strict=True)
    ]


def shown(trace: Trace, table: str, columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """The rows of a table; arguments by what they mean."""
    frame = trace.table(table).select(columns).collect()
    rows = frame.rows(named=True)
    for row in rows:
        if row.get("args") is not None:
            row["args"] = _plain(row["args"])
    return Counter(tuple(row.values()) for row in rows)


def _plain(args: str) -> str:
    """Arguments in one spelling: 1.50 and 1.5 are the same."""
    try:
        return json.dumps(json.loads(args), sort_keys=True)
    except ValueError:
        return args


def arrows_of(trace: Trace) -> list[list[tuple[Any, ...]]]:
    """The ends of each arrow, whatever its id is."""
    ends = trace.flows.collect().sort("ts_ns", "end")
    return sorted(
        (sorted(part.select(FLOW).rows(), key=str) for part in ends.partition_by("rank", "flow")),
        key=str,
    )


def again(trace: Trace, writer: Writer, file: Path) -> Trace:
    """The trace written and read, on its own clock: a wall clock's times are moved in JSON."""
    writer.write(trace, file)
    copy = Trace.open(file, cached=False)
    assert copy.manifest.clock.kind == trace.manifest.clock.kind
    moved_ns = copy.manifest.clock.epoch_ns - trace.manifest.clock.epoch_ns
    tables = {
        table: copy.table(table).with_columns(pl.col("ts_ns") + moved_ns)
        for table in ("spans", "counters", "flows", "steps", "collectives")
    }
    return Trace.from_tables(tables, replace(copy.manifest, clock=trace.manifest.clock))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


@slow
@each_writer
@settings(max_examples=examples(60))
@given(
    spans=st.lists(spans(), max_size=12),
    counters=st.lists(counters(), max_size=4),
    arrows=st.lists(arrows(), max_size=3),
)
def test_any_spans_counters_and_arrows_come_back(
    folder: Path, writer: Writer, spans: Any, counters: Any, arrows: Any
) -> None:
    flows = [{**end, "flow": f"{number}"} for number, ends in enumerate(arrows) for end in ends]
    recorded = trace_of(spans=spans, counters=counters, flows=flows)
    laned = with_lanes(recorded.spans.drop("span", "parent").collect())
    trace = Trace.from_tables(
        {"spans": laned, "counters": recorded.counters, "flows": recorded.flows}, recorded.manifest
    )

    copy = again(trace, writer, folder / f"copy{writer.endings[0]}")

    assert shown(copy, "spans", SPAN) == shown(trace, "spans", SPAN)
    assert shown(copy, "counters", COUNTER) == shown(trace, "counters", COUNTER)
    assert arrows_of(copy) == arrows_of(trace)


@slow
@each_writer
@pytest.mark.parametrize("sample", sampled(SAMPLES, [SAMPLES[0], SAMPLES[2]]))
def test_a_sample_comes_back(
    sample_traces: Path, tmp_path: Path, writer: Writer, sample: str
) -> None:
    """An engine's tables become slices once; these come back from then on."""
    trace = Trace.open(sample_traces / sample)
    if not trace.has("spans"):
        trace = again(trace, writer, tmp_path / f"once{writer.endings[0]}")

    copy = again(trace, writer, tmp_path / f"copy{writer.endings[0]}")

    assert trace.num_rows("spans")
    for table, columns in (("spans", SPAN), ("counters", COUNTER)):
        assert shown(copy, table, columns) == shown(trace, table, columns)
    assert copy.steps.collect().equals(trace.steps.collect())


@pytest.mark.parametrize("name", sampled(PROFILES, ["gloo_rank1"]))
def test_a_profile_comes_back_from_perfetto(tmp_path: Path, name: str) -> None:
    trace = Trace.open(profile(name))

    # Over gloo no call names the ranks of its group; the head of the file does, for all.
    in_head = cs.matches("expected_ranks" if name == "gloo_rank1" else "^$")
    copy = again(trace, PerfettoWriter(), tmp_path / "copy.pftrace")

    for table in ("counters", "steps", "collectives", "flows"):
        left, right = (each.table(table).drop(in_head).collect() for each in (trace, copy))
        assert right.sort(pl.all()).equals(left.sort(pl.all())), table
    left, right = (each.spans.drop("args").collect() for each in (trace, copy))
    assert by_track(right).equals(by_track(left))
    assert shown(copy, "spans", SPAN) == shown(trace, "spans", SPAN)
    assert copy.manifest.ranks == trace.manifest.ranks
    assert copy.manifest.producer == trace.manifest.producer
