"""Profiles of torch.profiler: our own, and those of other people."""

from __future__ import annotations

import gzip
import json
import math
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import num_accounted, open_bytes, rows
from tests.ingest.log_files import report_of
from tests.ingest.real_files import GLOO, OWN_TORCH, profile
from tests.tiers import sampled, slow

FILES = (
    *OWN_TORCH,
    "h100_qwen15_05b_chat",
    "hta_event_sync_trace",
    "hta_nccl_data",
    "hta_sampled_rank-0",
    "hta_sampled_rank-1",
    "sglang_qwen3_8b_prefilldecode",
    "vllm_cpu_tiny_llama_preemptions",
    "vllm_prefilldecode_mi300",
)
QUICK = [*OWN_TORCH, "hta_event_sync_trace", "hta_sampled_rank-0", "vllm_prefilldecode_mi300"]
"""A file of a CPU, of gloo, of CUDA's events, of an older profiler, and of ROCm."""


def file(shared_data: Path, name: str) -> Path:
    return shared_data / "kineto" / f"{name}.json.gz"


@cache
def opened(path: Path) -> Trace:
    return Trace.open(path)


def events_in(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


@slow
@pytest.mark.parametrize("name", sampled(FILES, QUICK))
def test_every_event_is_read_or_skipped_and_counted(name: str) -> None:
    path = profile(name)
    events = events_in(path)

    trace = opened(path)

    assert num_accounted(trace) == len(events)
    assert trace.num_rows("spans") == sum(event["ph"] in "Xi" for event in events)
    assert trace.num_rows("flows") == sum(event["ph"] in "stf" for event in events)


@slow
@pytest.mark.parametrize("name", sampled(FILES, QUICK))
def test_times_are_the_microseconds_of_the_file_to_the_nanosecond(name: str) -> None:
    path = profile(name)
    text = gzip.decompress(path.read_bytes())
    exact = json.loads(text, parse_float=_nanoseconds, parse_int=lambda digits: int(digits) * 1000)
    written = sorted(
        (event["ts"], event["dur"]) for event in exact["traceEvents"] if event["ph"] == "X"
    )

    read = sorted(
        opened(path)
        .spans.filter(pl.col("form") == "slice")
        .select("ts_ns", "dur_ns")
        .collect()
        .rows()
    )

    assert read == written


def _nanoseconds(digits: str) -> int:
    if "e" in digits.lower():
        return 0
    whole, _, fraction = digits.partition(".")
    sign = -1 if whole.startswith("-") else 1
    return int(whole) * 1000 + sign * int(fraction[:3].ljust(3, "0"))


@pytest.mark.parametrize("name", sampled(FILES, QUICK))
def test_slices_of_a_track_nest_and_parents_enclose(name: str) -> None:
    spans = opened(profile(name)).spans.filter(pl.col("form") == "slice").collect()
    outer = spans.select("span", "track", outer_ts="ts_ns", outer_dur="dur_ns")

    nested = spans.join(outer, left_on="parent", right_on="span", suffix="_outer")
    crossing = 0
    for _, track in spans.group_by("track"):
        open_ends: list[int] = []
        for ts, dur in track.sort("ts_ns", -pl.col("dur_ns")).select("ts_ns", "dur_ns").rows():
            while open_ends and open_ends[-1] <= ts:
                open_ends.pop()
            crossing += bool(open_ends) and open_ends[-1] < ts + dur
            open_ends.append(ts + dur)

    assert crossing == 0
    assert nested.filter(pl.col("track") != pl.col("track_outer")).is_empty()
    ends = nested["ts_ns"] + nested["dur_ns"]
    assert (nested["outer_ts"] <= nested["ts_ns"]).all()
    assert (ends <= nested["outer_ts"] + nested["outer_dur"]).all()


@slow
def test_vllm_on_a_cpu_shows_its_133_steps(shared_data: Path) -> None:
    path = file(shared_data, "vllm_cpu_tiny_llama_preemptions")
    tags = [
        event["name"]
        for event in sorted(events_in(path), key=lambda event: event["ts"])
        if event["name"].startswith("execute_context_")
    ]

    trace = opened(path)
    steps = trace.steps.collect()

    assert dict(steps["kind"].value_counts().rows()) == {"prefill": 1, "mixed": 29, "decode": 103}
    assert steps["tag"].to_list() == tags
    counts = ("num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "num_decode_tokens")
    said = "execute_context_{}({})_generation_{}({})"
    assert [said.format(*row) for row in steps.select(counts).rows()] == tags
    assert steps["step"].to_list() == list(range(1, 134))
    assert (trace.manifest.producer, trace.manifest.producer_version) == ("vLLM", "0.32.0")
    assert trace.manifest.tables["steps"] == "inferred"


COUNTS = ("kind", "num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "num_decode_tokens")


def test_two_tags_of_sglang_are_one_step(shared_data: Path) -> None:
    trace = opened(file(shared_data, "sglang_qwen3_8b_prefilldecode"))

    assert rows(trace, "steps", *COUNTS) == [("prefill", 15, 15360, 0, 0)]


def test_a_detailed_tag_of_vllm_tells_rows_and_tokens(shared_data: Path) -> None:
    trace = opened(file(shared_data, "vllm_prefilldecode_mi300"))

    assert rows(trace, "steps", *COUNTS) == [("mixed", 9, 8155, 37, 37)]


def test_kernels_belong_to_the_step_that_launched_them(shared_data: Path) -> None:
    trace = opened(file(shared_data, "vllm_prefilldecode_mi300"))

    kernels = trace.spans.filter(pl.col("category") == "kernel").collect()

    assert kernels["step"].unique().to_list() == [1]


def test_profiler_steps_serve_where_nothing_better_is(shared_data: Path) -> None:
    trace = opened(file(shared_data, "hta_sampled_rank-1"))

    assert rows(trace, "steps", "step", "kind", "tag") == [
        (551, None, "ProfilerStep#551"),
        (552, None, "ProfilerStep#552"),
    ]
    assert trace.manifest.ranks == (1,)


def test_collectives_come_from_the_calls_and_last_as_long_as_their_kernels(
    shared_data: Path,
) -> None:
    collectives = opened(file(shared_data, "hta_nccl_data")).collectives.collect()

    assert dict(collectives["op"].value_counts().rows()) == {"allreduce": 15, "broadcast": 6}
    assert collectives["ordinal"].to_list() == list(range(21))
    first = collectives.row(0, named=True)
    assert (first["num_elements"], first["num_bytes"], first["dtype"]) == (53120, 212480, "Float")
    assert (first["group"], first["expected_ranks"], first["stream"]) == ("0", "0,1", "40")
    assert (first["ts_ns"], first["dur_ns"]) == (4458676423385774, 30975)


def test_annotations_tell_what_kernels_do_that_are_all_called_alike(shared_data: Path) -> None:
    """The calls of 2022 name no operation, and every kernel of the pair is called SendRecv."""
    collectives = opened(file(shared_data, "hta_sampled_rank-0")).collectives.collect()

    assert dict(collectives["op"].value_counts().rows()) == {
        "all_to_all": 4, "all_reduce": 4, "_all_gather_base": 2,
    }  # fmt: skip
    assert collectives["num_elements"].to_list()[:3] == [384, 419430400, 19618307]
    assert collectives["dur_ns"].to_list()[:3] == [30_669_000, 62_783_000, 11_727_000]
    assert collectives.filter(pl.col("stream") == "84")["ordinal"].to_list() == list(range(8))


def test_the_projects_own_profile_holds_the_steps_that_were_served(sample_traces: Path) -> None:
    trace = opened(sample_traces / "torch_profiler_cpu.json.gz")
    steps = trace.steps.collect()

    assert dict(steps["kind"].value_counts().rows()) == {"prefill": 1, "mixed": 7, "decode": 9}
    assert steps["num_prefill_tokens"].sum() == 24 + 9 + 40 + 17 + 5 + 33 + 12 + 28
    assert steps["num_decode_tokens"].sum() == 6 + 9 + 5 + 8 + 10 + 4 + 7 + 6 - 8
    assert (sample_traces / "torch_profiler_cpu.json.gz").stat().st_size < 300_000


@pytest.mark.parametrize("rank", [0, 1])
def test_collectives_over_gloo_are_the_annotations_of_the_file(rank: int) -> None:
    path = GLOO / f"rank{rank}.json.gz"
    events = sorted(events_in(path), key=lambda event: event["ts"])
    annotations = [event for event in events if event["name"].startswith("gloo:")]
    steps = [event for event in events if event["name"].startswith("execute_context_")]

    trace = opened(path)

    assert trace.manifest.ranks == (rank,)
    columns = ("op", "ts_ns", "dur_ns", "num_elements", "expected_ranks")
    assert rows(trace, "collectives", *columns) == [
        (
            event["name"].removeprefix("gloo:"),
            _nanoseconds(str(event["ts"])),
            _nanoseconds(str(event["dur"])),
            _num_elements(event["args"]["Input Dims"]),
            "0,1",
        )
        for event in annotations
    ]
    assert rows(trace, "collectives", "step") == [
        number
        for event in annotations
        for number, step in enumerate(steps, start=1)
        if step["ts"] <= event["ts"] < step["ts"] + step["dur"]
    ]


def _num_elements(dims: list[Any]) -> int:
    """Number of elements of the first tensor, which may lie in a list of tensors."""
    shape = dims[0][0] if isinstance(dims[0][0], list) else dims[0]
    return math.prod(shape)


@slow
@pytest.mark.parametrize("tenths", [1, 8])
def test_of_a_file_that_was_cut_off_every_whole_event_is_read(tmp_path: Path, tenths: int) -> None:
    content = gzip.decompress((GLOO / "rank0.json.gz").read_bytes())
    content = content[: len(content) * tenths // 10]
    events: list[dict[str, Any]] = []
    text, decoder = content.decode(), json.JSONDecoder()
    at = text.index("[", text.index('"traceEvents"')) + 1
    with suppress(ValueError):
        while True:
            event, at = decoder.raw_decode(text, text.index("{", at))
            events.append(event)

    trace = open_bytes(tmp_path, content)

    assert sum(report_of(trace).read.values()) == len(events)
    assert trace.num_rows("spans") == sum(event["ph"] in "Xi" for event in events)
    assert not trace.manifest.closed
