"""Recorded engines and the profiles that they wrote of themselves, put together."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.merging.merge import merge
from stepscope.ingest.trace import Trace
from tests.vllm.runs import Run
from tests.vllm.situations import IN_PROCESS

Tag = tuple[int, int, int]
"""Begin and end in Unix time, and tokens."""


@pytest.fixture(params=[each.__name__ for each in IN_PROCESS])
def run(request: pytest.FixtureRequest, in_process: dict[str, Run]) -> Run:
    return in_process[request.param]


def tags_of(profile: Path) -> list[Tag]:
    """What vLLM's annotations say, read by the standard library alone."""
    opened = gzip.open if profile.suffix == ".gz" else open
    with opened(profile, "rb") as file:
        said = json.load(file)
    base_ns = said["baseTimeNanoseconds"]
    return sorted(
        (
            base_ns + round(event["ts"] * 1e3),
            base_ns + round((event["ts"] + event["dur"]) * 1e3),
            sum(int(tokens) for tokens in re.findall(r"\((\d+)\)", event["name"])),
        )
        for event in said["traceEvents"]
        if event.get("cat") == "user_annotation" and event["name"].startswith("execute_context_")
    )


def test_every_step_of_the_profile_is_the_recorded_one_that_ran_then(run: Run) -> None:
    (file,) = run.profiles
    trace, (found,) = merge(run.trace, Trace.open(file))
    ran = pl.col("num_prefill_tokens") + pl.col("num_decode_tokens")
    steps = trace.steps.filter(
        ran > 0, pl.col("step").is_between(found.first_step, found.last_step)
    )
    tokens = steps.sort("ts_ns").select(ran).collect().to_series().to_list()

    tags = [tag for tag in tags_of(file) if tag[2]]
    assert (found.num_steps, found.num_alone, found.moved_ns) == (len(tags), 0, 0)
    assert tokens == [num for _, _, num in tags]


def test_every_span_with_a_step_was_while_that_step_was(run: Run) -> None:
    (file,) = run.profiles
    trace, (found,) = merge(run.trace, Trace.open(file))
    when = trace.steps.select(
        "rank", "step", from_ns=pl.min_horizontal("formed_ns", "ts_ns"),
        to_ns=pl.col("ts_ns") + pl.col("dur_ns"),
    )  # fmt: skip
    spans = trace.spans.join(when, on=["rank", "step"]).collect()

    begun = spans.filter(~pl.col("ts_ns").is_between("from_ns", pl.col("to_ns") + found.most_ns))
    assert len(spans) > 1_000
    assert begun.is_empty()


def test_steps_that_ran_as_a_graph_are_those_in_which_the_profile_launched_one(run: Run) -> None:
    (file,) = run.profiles
    trace, _ = merge(run.trace, Trace.open(file))
    graphs = trace.spans.filter(pl.col("name").cast(pl.String) == "cudaGraphLaunch")
    full = trace.steps.filter(pl.col("executed_path").cast(pl.String) == "graph full")

    launched = set(graphs.select("step").collect().to_series())
    assert launched == set(full.select("step").collect().to_series())
    assert bool(launched) != run.is_eager


def test_what_a_step_had_the_gpu_do_lies_in_the_step(run: Run) -> None:
    (file,) = run.profiles
    trace, (found,) = merge(run.trace, Trace.open(file))
    begun, ended = pl.col("gpu_ts_ns"), pl.col("gpu_ts_ns") + pl.col("gpu_dur_ns")
    is_in = (begun >= pl.col("ts_ns")) & (ended <= pl.col("ts_ns") + pl.col("dur_ns"))
    on_gpu = trace.steps.filter(pl.col("gpu_ts_ns").is_not_null()).select(is_in).collect()

    assert len(on_gpu) == (found.num_steps if found.num_executed else 0)
    assert on_gpu.to_series().all()
    assert found.num_assigned == found.num_executed
