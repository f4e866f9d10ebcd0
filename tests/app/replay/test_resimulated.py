"""Runs of other engines on the reference engine: recorded ones of vLLM, and batches alone."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.diff.outcomes import totals
from stepscope.app.replay.resimulated import resimulated, resimulated_lines
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.runs.rerun import Changes
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.tiers import slow


@pytest.fixture
def crowd(sample_traces: Path) -> Trace:
    return Trace.open(sample_traces / "vllm_crowd.trace")


@slow
def test_a_run_of_vllm_takes_as_long_again_within_5_percent(crowd: Trace, tmp_path: Path) -> None:
    found = resimulated(crowd, Changes(), tmp_path / "again.trace")

    recorded, again = totals(crowd), totals(found.replayed)
    assert again["finished"] == recorded["finished"] == 20
    assert again["tokens"] == recorded["tokens"]
    assert again["makespan_ns"] == pytest.approx(recorded["makespan_ns"], rel=0.05)
    assert again["steps"] == pytest.approx(recorded["steps"], rel=0.05)


def test_what_is_told_and_who_scheduled_is_said_first(crowd: Trace, tmp_path: Path) -> None:
    found = resimulated(crowd, Changes(settings={"max_num_seqs": "4"}), tmp_path / "again.trace")

    lines = list(resimulated_lines(found))
    assert lines[1].startswith("replayed  RE-SIMULATED: ")
    assert lines[1].endswith("scheduled by the reference engine (mixed-batches), not by vllm")
    assert "max_num_seqs=4, budget=128, threshold=128, block_size=32, kv_blocks=23" in lines[2]
    assert "off in the mean where held out; " in lines[3]
    assert found.assumed == ()
    assert found.replayed.steps.collect()["num_running"].max() == 4


def test_limits_that_no_manifest_tells_are_named(crowd: Trace, tmp_path: Path) -> None:
    crowd.manifest.config.clear()

    found = resimulated(crowd, Changes(), tmp_path / "again.trace")

    assert found.assumed == (
        "max_num_seqs", "budget", "threshold", "block_size", "kv_blocks", "prefix_cache",
    )  # fmt: skip
    assert any(
        line.startswith("  not told, so as mixed-batches") for line in resimulated_lines(found)
    )


def test_batches_alone_are_priced_and_stay_as_they_were(crowd: Trace, tmp_path: Path) -> None:
    bare = Trace.from_tables({"steps": crowd.steps}, crowd.manifest, name="bare")
    cost = CostModel(base_ns=1000, prefill_token_ns=10, decode_row_ns=1, kv_token_ns=0, gap_ns=5)

    found = resimulated(bare, Changes(cost=cost), tmp_path / "priced.trace")

    priced = found.replayed.steps.sort("step").collect()
    same = ["step", "kind", "num_prefill_tokens", "num_decode_reqs", "num_decode_tokens"]
    assert priced.select(same).equals(crowd.steps.sort("step").select(same).collect())
    prompt, decodes = priced["num_prefill_tokens"], priced["num_decode_reqs"]
    assert priced["dur_ns"].to_list() == (1000 + 10 * prompt + decodes).to_list()
    gaps = priced.select(pl.col("ts_ns").diff() - pl.col("dur_ns").shift(1)).to_series()
    assert set(gaps.drop_nulls()) == {5}
    assert next(line for line in resimulated_lines(found) if "BATCHES PRICED" in line)


def test_batches_alone_are_not_scheduled_otherwise(crowd: Trace, tmp_path: Path) -> None:
    bare = Trace.from_tables({"steps": crowd.steps}, crowd.manifest, name="bare")

    with pytest.raises(ConfigError, match="only its own batches can be priced"):
        resimulated(bare, Changes(settings={"budget": "64"}), tmp_path / "x.trace")


def test_a_fault_of_a_real_engine_cannot_be_switched_off(crowd: Trace, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="its engine is a real one"):
        resimulated(crowd, Changes(without=("block-leaked",)), tmp_path / "x.trace")


def test_the_batches_of_a_public_profile_are_foretold_within_5_percent(
    shared_data: Path, tmp_path: Path
) -> None:
    profile = Trace.open(shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz")

    found = resimulated(profile, Changes(), tmp_path / "priced.trace")

    recorded, priced = totals(profile), totals(found.replayed)
    assert priced["makespan_ns"] == pytest.approx(recorded["makespan_ns"], rel=0.05)


@slow
def test_a_request_that_ended_early_is_as_long_as_it_was(crowd: Trace, tmp_path: Path) -> None:
    event, count = pl.col("event"), pl.col("num_generated")
    crowd.lifecycle = crowd.lifecycle.with_columns(
        num_generated=pl.when(event == "finish").then(3).otherwise(count)
    )

    found = resimulated(crowd, Changes(), tmp_path / "short.trace")

    assert totals(found.replayed)["tokens"] == 3 * 20


def test_requests_of_unknown_length_are_counted_and_refused(crowd: Trace, tmp_path: Path) -> None:
    crowd.lifecycle = crowd.lifecycle.with_columns(prompt_len=None)

    with pytest.raises(ConfigError, match="of 20 of 20 requests the length of prompt or output"):
        resimulated(crowd, Changes(), tmp_path / "x.trace")


@slow
def test_a_list_of_served_requests_is_simulated_at_costs_of_another_trace(tmp_path: Path) -> None:
    shared = Path(__file__).resolve().parents[4] / "shared" / "foreign"
    if not shared.is_dir():
        pytest.skip("the folder of foreign files, ../shared/foreign, is absent")
    served = Trace.open(shared / "llmservingsim_vllm_requests.jsonl")

    found = resimulated(served, Changes(cost=CostModel(base_ns=10**7)), tmp_path / "x.trace")

    assert totals(found.replayed)["finished"] == 300
    assert "budget" in found.assumed
