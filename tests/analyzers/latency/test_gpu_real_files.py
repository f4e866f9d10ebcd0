"""What is said of the GPUs of real profiles is what counting their events by hand gives."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import COLUMNS, blame
from stepscope.ingest.trace import Trace
from tests.analyzers.latency.raw_gpu import RAN, Run, length, run_of, shares
from tests.tiers import slow

ON_GPU = (
    "sglang_qwen3_8b_prefilldecode", "vllm_prefilldecode_mi300", "h100_qwen15_05b_chat",
    "hta_nccl_data", "hta_sampled_rank-0", "hta_sampled_rank-1", "hta_event_sync_trace",
)  # fmt: skip


@pytest.fixture(scope="module", params=ON_GPU)
def profile(shared_data: Path, request: pytest.FixtureRequest) -> tuple[Trace, Run]:
    file = shared_data / "kineto" / f"{request.param}.json.gz"
    return Trace.open(file), run_of(file)


@slow
def test_a_step_lasts_until_the_last_of_its_kernels_ended(profile: tuple[Trace, Run]) -> None:
    trace, run = profile

    steps = trace.steps.select("ts_ns", "dur_ns", "cpu_dur_ns").sort("ts_ns").collect()

    assert steps.rows() == [
        (begun, max(ended, step.gpu[1] if step.gpu else 0) - begun, ended - begun)
        for step in run.steps
        for begun, ended in (step.cpu,)
    ]


def test_a_steps_time_on_the_gpu_is_that_of_what_it_launched(profile: tuple[Trace, Run]) -> None:
    trace, run = profile

    steps = trace.steps.sort("ts_ns").select("gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns").collect()

    assert steps.rows() == [
        (step.gpu[0], step.gpu[1] - step.gpu[0], length(step.ran)) if step.gpu else (None,) * 3
        for step in run.steps
    ]


@slow
def test_blame_is_what_following_every_event_comes_to(profile: tuple[Trace, Run]) -> None:
    trace, run = profile

    blamed = blame(trace)

    assert {each.cause.name: each.total_ns for each in blamed.totals()} == shares(run)


def test_causes_of_a_run_add_up_to_it(profile: tuple[Trace, Run]) -> None:
    trace, run = profile
    first, last = run.bounds

    row = blame(trace).requests

    assert row.select("arrive_ns", "ended_ns", "latency_ns").row(0) == (first, last, last - first)
    assert row.select(pl.sum_horizontal(COLUMNS)).item() == last - first


@slow
def test_kernels_that_no_step_launched_are_counted(profile: tuple[Trace, Run]) -> None:
    trace, run = profile
    total = sum(len(run.causes[kind]) for kind in RAN)

    said = [note for note in blame(trace).notes if "belong to no step" in note]

    counted = f"{run.num_alone:,} of {total:,} kernels and copies belong to no step"
    is_some = run.num_alone and run.steps
    assert said == ([f"{counted}; what they took counts all the same"] if is_some else [])
