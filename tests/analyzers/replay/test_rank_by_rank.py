from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope import Trace
from stepscope.analyzers.replay.rank_by_rank import Replay, replay
from stepscope.analyzers.replay.step_costs import FittedCosts
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.manifest import Manifest
from tests.analyzers.replay.small_scheduler import CONFIG, COSTS, recorded, run_small
from tests.looped import looped
from tests.tiers import slow


def replayed(trace: Path, out: Path, **settings: Any) -> Replay:
    return replay(Trace.open(trace), "vllm", settings, out, lambda script: run_small(script, out))


def test_the_same_scheduler_decides_the_same_at_every_step(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace", aborted="r2")

    found = replayed(trace, tmp_path / "b.trace")

    assert found.is_same
    assert found.ranks[0].compared is not None
    assert found.ranks[0].compared.num_steps == found.recorded.num_rows("steps") > 20
    told = "select ts_ns, request, event, num_generated from lifecycle order by 1, 2, 3"
    assert found.replayed.sql(told).equals(found.recorded.sql(told))


def test_another_setting_is_another_batch_at_a_step_that_is_named(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    found = replayed(trace, tmp_path / "b.trace", max_num_batched_tokens=8)

    assert found.ranks[0].compared is not None
    divergence = found.ranks[0].compared.divergence
    assert divergence is not None
    assert (divergence.step, divergence.stage) == (3, "batch")
    assert {row["num_tokens"] for row in divergence.replayed} != {
        row["num_tokens"] for row in divergence.recorded
    }


def test_behind_a_divergence_everybody_is_served_to_the_end(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    found = replayed(trace, tmp_path / "b.trace", max_num_seqs=1)

    ended = found.replayed.sql("select request, num_generated from lifecycle where event='finish'")
    asked = found.recorded.sql("select request, max_tokens from lifecycle where event='arrive'")
    assert sorted(ended.rows()) == sorted(asked.rows())
    mean = found.served.error("ttft", "mean")
    assert mean is not None
    assert mean > 0.5


def test_costs_of_steps_that_were_computed_are_found_again(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    costs = replayed(trace, tmp_path / "b.trace").ranks[0].costs

    assert isinstance(costs, FittedCosts)
    assert costs.costs.base_ns == pytest.approx(COSTS.base_ns, rel=1e-3)
    assert costs.costs.prefill_token_ns == pytest.approx(COSTS.prefill_token_ns, rel=0.05)
    assert costs.p90_error < 0.01


def test_of_requests_without_steps_costs_are_fitted_to_a_third_and_told_of_the_rest(
    tmp_path: Path,
) -> None:
    whole = Trace.open(recorded(tmp_path / "a.trace", 90))
    asked = whole.lifecycle.collect()
    longer = asked.with_columns(num_generated=asked["num_generated"] * 20)
    listed = Trace.from_tables({"lifecycle": longer}, Manifest("a list"))
    out = tmp_path / "b.trace"

    found = replay(listed, "vllm", CONFIG, out, lambda script: run_small(script, out))

    assert found.ranks[0].compared is None
    assert found.served.num_requests == 60


def test_what_a_trace_does_not_tell_is_asked_for(tmp_path: Path) -> None:
    arrived = {"lifecycle": Trace.open(recorded(tmp_path / "a.trace")).lifecycle}
    unsaid = Trace.from_tables(arrived, Manifest("torch.profiler"))

    with pytest.raises(ConfigError, match=r"torch\.profiler.*max_num_seqs.*--set NAME=VALUE"):
        replay(unsaid, "vllm", {}, tmp_path / "b.trace", run_small_never)


def test_a_trace_in_which_nobody_arrives_is_refused_before_its_settings_are_asked_for(
    tmp_path: Path,
) -> None:
    steps = {"steps": Trace.open(recorded(tmp_path / "a.trace")).steps}
    profile = Trace.from_tables(steps, Manifest("torch.profiler"))

    with pytest.raises(ConfigError, match="no request arrives in it"):
        replay(profile, "vllm", {}, tmp_path / "b.trace", run_small_never)


@looped("table", ["batch_rows", "outputs"])
def test_steps_without_what_was_in_them_or_came_of_them_are_refused(
    table: str, tmp_path: Path
) -> None:
    whole = Trace.open(recorded(tmp_path / "a.trace"))
    names = {"lifecycle", "steps", "batch_rows", "outputs"} - {table}
    cut = Trace.from_tables({name: whole.table(name) for name in names}, whole.manifest)

    with pytest.raises(ConfigError, match=f"it has steps, but no {table}"):
        replay(cut, "vllm", {}, tmp_path / "b.trace", run_small_never)


@slow
@looped("share", [0.1, 0.37, 0.5, 0.9])
def test_a_recording_that_was_cut_is_replayed_as_far_as_it_goes(
    share: float, tmp_path: Path
) -> None:
    whole = Trace.open(recorded(tmp_path / "a.trace"))
    times = whole.steps.collect()["ts_ns"]
    until = times.to_list()[round((len(times) - 1) * share)]
    names = ("lifecycle", "steps", "batch_rows", "outputs")
    kept = {name: whole.table(name).filter(pl.col("ts_ns") <= until) for name in names}
    open_end = pl.when(pl.col("ts_ns") + pl.col("dur_ns") <= until).then("dur_ns")
    kept["steps"] = kept["steps"].with_columns(dur_ns=open_end)
    out = tmp_path / "b.trace"

    found = replay(Trace.from_tables(kept, whole.manifest), "vllm", {}, out,
                   lambda script: run_small(script, out))  # fmt: skip

    assert found.is_same
    assert found.ranks[0].compared is not None
    assert found.ranks[0].compared.num_steps == kept["steps"].collect().height > 0


def test_adapters_that_took_turns_and_were_not_told_are_not_guessed(tmp_path: Path) -> None:
    whole = Trace.open(recorded(tmp_path / "a.trace"))
    waited = {
        "rank": 0, "step": 1, "ts_ns": 1, "subject_kind": "request", "subject": "r1",
        "verdict": "deferred", "resource": "lora",
    }  # fmt: skip
    waits = Trace.from_tables({"decisions": pl.LazyFrame([waited])}, whole.manifest)
    trace = whole.replacing({"decisions": waits.decisions}, whole.manifest)

    with pytest.raises(ConfigError, match=r"asked for which was not recorded; .*max_loras=0"):
        replay(trace, "vllm", {"max_loras": 1}, tmp_path / "b.trace", run_small_never)
    assert replay(
        trace, "vllm", {"max_loras": 0}, tmp_path / "c.trace",
        lambda script: run_small(script, tmp_path / "c.trace"),
    ).is_same  # fmt: skip


def test_a_prefix_cache_of_which_no_block_was_recorded_is_not_guessed(tmp_path: Path) -> None:
    trace = Trace.open(recorded(tmp_path / "a.trace"))

    with pytest.raises(ConfigError, match="nobody knows who shared what"):
        replay(trace, "vllm", {"enable_prefix_caching": True}, tmp_path / "b.trace",
               run_small_never)  # fmt: skip


def run_small_never(_script: object) -> dict[str, Any]:
    raise AssertionError("it has begun")
