"""What a replay makes of runs that a real vLLM recorded: no engine is needed for that."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope import Trace
from stepscope.analyzers.replay.contents import contents_of, shared_blocks
from stepscope.analyzers.replay.recorded_settings import config_of
from stepscope.analyzers.replay.same_decisions import compare
from stepscope.analyzers.replay.script_of import requests_and_calls
from stepscope.ingest.replay.script import (
    ADD,
    LENGTH,
    SCHEDULE,
    UPDATE,
    Script,
    read_script,
    write_script,
)
from tests.conftest import ROOT

SAMPLES = ROOT / "sample_traces"


@pytest.fixture(scope="module", params=["vllm_crowd", "vllm_prefixes"])
def trace(request: pytest.FixtureRequest) -> Trace:
    return Trace.open(SAMPLES / f"{request.param}.trace")


def script_of(trace: Trace) -> Script:
    config = config_of("vllm", trace.manifest, {}, trace.name)
    return Script("vllm", config, *requests_and_calls(trace, 0, config))


def test_a_script_forms_takes_and_adds_what_was_recorded(trace: Trace) -> None:
    calls = script_of(trace).calls

    batches = {call.step: call.batch for call in calls if call.what == SCHEDULE}
    recorded = trace.batch_rows.sort("step", "row").select("step", "request", "num_tokens")
    rows = recorded.collect().partition_by("step", as_dict=True, include_key=False)
    assert batches == {step: tuple(each.rows()) for (step,), each in rows.items()}
    tokens = [sum(call.tokens.values()) for call in calls if call.what == UPDATE]
    assert sum(tokens) == trace.num_rows("outputs")
    arrived = trace.sql("select request from lifecycle where event = 'arrive' order by ts_ns")
    assert [call.request for call in calls if call.what == ADD] == arrived["request"].to_list()


def test_each_request_of_a_script_ends_once_with_as_many_tokens_as_it_had(trace: Trace) -> None:
    script = script_of(trace)

    ended = [(name, how) for call in script.calls for name, how in call.ends.items()]
    assert sorted(ended) == sorted((asked.request, LENGTH) for asked in script.requests)
    assert all(asked.num_outputs == asked.max_tokens for asked in script.requests)


def test_a_script_that_was_written_is_read_again(trace: Trace, tmp_path: Path) -> None:
    script = script_of(trace)
    write_script(script, tmp_path / "script")

    assert read_script(tmp_path / "script") == script


def test_who_shared_a_prefix_holds_the_same_in_the_blocks_of_it() -> None:
    trace = Trace.open(SAMPLES / "vllm_prefixes.trace")

    contents = contents_of(trace, 0)

    shared = trace.allocations.filter(pl.col("op") == "share").select(pl.len()).collect().item()
    assert shared > 0
    assert shared_blocks(contents) >= 3
    assert {each[:3] for each in contents.values()} == {(0, 1, 2)}


def test_the_scheduler_of_another_version_diverges_where_a_lone_prompt_is_cut() -> None:
    recorded, other = (
        Trace.open(SAMPLES / f"{name}.trace") for name in ("vllm_prefixes", "vllm_prefixes_0.23")
    )

    divergence = compare(recorded, other, 0).divergence

    assert divergence is not None
    assert (divergence.step, divergence.stage) == (1, "batch")
    assert [row["num_tokens"] for row in divergence.recorded] == [111]
    assert [row["num_tokens"] for row in divergence.replayed] == [48]


def test_a_recorded_run_decides_as_itself(trace: Trace) -> None:
    found = compare(trace, trace, 0)

    assert found.divergence is None
    assert found.num_steps == trace.num_rows("steps")
    assert found.not_compared == ()
