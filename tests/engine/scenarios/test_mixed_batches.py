"""What the scenario claims of report 001, and what each of its faults does to the trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import polars as pl
import pytest
from hypothesis import given, settings

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.segments.split import Split
from stepscope.engine.executors.simulated import Simulated
from stepscope.engine.runs.scenario import RunResult, recorder_for
from stepscope.engine.scenarios.mixed_setups import COST
from stepscope.engine.schedulers import Scheduler
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import RequestSpec, identical
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.mixed_runs import MIXED, SMALL, faulty, kinds, rows_of, sound
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Rows
from tests.engine.scenarios.prefill_first import PrefillFirst
from tests.engine.schedulers.test_paged_properties import sizes, specs
from tests.engine.small_engines import serve
from tests.tiers import examples, slow


@pytest.fixture(scope="module")
def report(recorded_once: RecordedOnce) -> dict[str, tuple[Trace, RunResult]]:
    return {
        name: (recorded_once.trace(MIXED.name, name), recorded_once.run(MIXED.name, name))
        for name in ("before", "after")
    }


def test_without_a_reserve_two_steps_are_mixed_between_all_prompts_and_all_decodes(
    report: dict[str, tuple[Trace, RunResult]],
) -> None:
    assert kinds(report["before"][0]) == ["prefill"] * 511 + ["mixed"] * 2 + ["decode"] * 511


def test_with_a_reserve_three_steps_are_pure_and_the_prompts_of_all_others_mixed(
    report: dict[str, tuple[Trace, RunResult]],
) -> None:
    assert kinds(report["after"][0]) == ["prefill"] * 3 + ["mixed"] * 544 + ["decode"] * 511


def test_the_step_of_the_report_is_there(report: dict[str, tuple[Trace, RunResult]]) -> None:
    steps = report["after"][0].steps.filter(
        num_prefill_reqs=2, num_decode_reqs=114, num_prefill_tokens=1934, num_decode_tokens=114
    ).collect()  # fmt: skip
    assert len(steps) >= 1
    assert set(steps["token_budget"]) == {2048}
    assert set(steps["reserved_tokens"]) == {114}


def test_the_longest_gap_falls_a_hundredfold_and_the_99th_percentile_does_not_show_it(
    report: dict[str, tuple[Trace, RunResult]],
) -> None:
    before, after = (report[name][1].metrics for name in ("before", "after"))
    assert float(before["worst_gap_s"]) >= 100 * float(after["worst_gap_s"])
    assert float(before["p99_gap_s"]) <= float(after["p99_gap_s"])
    assert (before["requests_stalled"], after["requests_stalled"]) == (239, 0)


@pytest.mark.parametrize("variant", ["before", "after"])
def test_the_table_says_of_gaps_what_the_trace_does(
    report: dict[str, tuple[Trace, RunResult]], variant: str
) -> None:
    trace, run = report[variant]
    tokens = trace.outputs.sort("request", "position")
    gap = pl.col("ts_ns").diff().over("request")
    gaps = tokens.with_columns(gap_ns=gap).drop_nulls("gap_ns").collect()
    in_order = sorted(gaps["gap_ns"])
    p99 = in_order[-(-99 * len(in_order) // 100) - 1]
    worst = list(gaps.group_by("request").agg(pl.col("gap_ns").max())["gap_ns"])
    assert run.metrics["worst_gap_s"] == round(max(worst) / 1e9, 3)
    assert run.metrics["p99_gap_s"] == round(p99 / 1e9, 3)
    assert run.metrics["median_request_worst_gap_s"] == round(median(worst) / 1e9, 3)


def test_whoever_comes_back_waits_less_for_a_first_token() -> None:
    given = asked({**SMALL, "workload": "closed-loop"})
    before, after = (MIXED.record(name, None, given).metrics for name in ("before", "after"))
    assert float(after["median_ttft_s"]) < 0.6 * float(before["median_ttft_s"])


def test_deferred_output_wins_back_what_mixing_cost_without_it() -> None:
    given = asked({**SMALL, "requests": "32", "max_tokens": "128"})
    speed = {
        name: int(MIXED.record(name, None, given).metrics["tokens_per_s"])
        for name in ("flag-off-deferred", "after", "deferred")
    }
    assert speed["after"] < speed["deferred"]
    assert speed["after"] < speed["flag-off-deferred"]


def test_drafts_make_outputs_come_in_fewer_steps(recorded_once: RecordedOnce) -> None:
    plain, drafted = (rows_of(recorded_once, name) for name in ("flag-off", "mtp"))
    assert len(drafted.of("steps", kind="decode")) < len(plain.of("steps", kind="decode"))
    paths = {row["executed_path"] for row in drafted.of("steps", kind="decode")}
    assert "simulated-decode+mtp" in paths
    accepted = sum(row["value"] for row in drafted.of("counters", name="accepted"))
    decodes = {(row["request"], row["step"]) for row in drafted.of("batch_rows", phase="decode")}
    tokens = [row for row in drafted.of("outputs") if (row["request"], row["step"]) in decodes]
    assert accepted == len(tokens) - len(decodes)


def test_the_same_seed_accepts_the_same_drafts_and_another_one_others(tmp_path: Path) -> None:
    del tmp_path
    runs = [MIXED.record("mtp", None, asked(SMALL, seed=seed)).metrics for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@slow
def test_prompts_that_begin_alike_are_computed_once(recorded_once: RecordedOnce) -> None:
    alike = {"prompt_len": "1100", "shared_prefix": "1024"}
    cached, plain = (
        rows_of(recorded_once, "after", {**alike, "prefix_cache": switch})
        for switch in ("true", "false")
    )
    num_computed = [
        sum(row["num_tokens"] for row in rows.of("batch_rows", phase="prefill"))
        for rows in (cached, plain)
    ]
    num_shared = sum(row["num_cached"] for row in cached.of("batch_rows"))
    assert num_shared > 0
    assert num_computed[0] == num_computed[1] - num_shared == 16 * 1100 - num_shared
    assert len(cached.of("allocations", op="share")) == num_shared // 16


# ── flag off ──────────────────────────────────────────────────────────────────────────────────────


@given(specs, sizes)
@settings(max_examples=examples(60))
def test_flag_off_decides_as_a_scheduler_that_knows_nothing_of_mixed_batches(
    drawn: list[RequestSpec], config: EngineConfig
) -> None:
    texts = [
        RequestSpec(each.id, each.arrival_ns, each.prompt_len, each.max_tokens)
        for each in drawn
        if each.prompt_len + each.max_tokens <= config.num_kv_blocks * config.block_size
    ]
    config = replace(config, prefix_cache=False)
    told = [
        serve(texts, scheduler, config)[1].tables
        for scheduler in (Paged(mixed=False, long_prefill_threshold=5), PrefillFirst(5))
    ]
    for tables in told:  # each is another source, in which it decides elsewhere
        tables["decisions"] = [{**row, "site": None} for row in tables["decisions"]]
    assert told[0] == told[1]


def apart_from_sites(file: Path) -> bytes:
    """What is in a file, but not where a policy decided: each is another source."""
    if "decisions" not in file.parts:
        return file.read_bytes()
    return pl.read_parquet(file).drop("site").write_json().encode()


def test_flag_off_records_the_same_bytes_as_the_engine_without_the_feature(tmp_path: Path) -> None:
    def written(name: str, scheduler: Scheduler) -> dict[str, bytes]:
        config = EngineConfig(num_kv_blocks=400, max_num_batched_tokens=256, max_num_seqs=32)
        executor = Simulated(COST, Split())
        with recorder_for(tmp_path / name, "mixed-batches", "flag-off", {}, None) as recorder:
            workload = identical(16, 500, 32)
            Engine(config, workload, scheduler, executor, VirtualClock(), recorder).run()
        files = (tmp_path / name).rglob("*.parquet")
        return {str(file.relative_to(tmp_path / name)): apart_from_sites(file) for file in files}

    ours = written("ours", Paged(mixed=False, reserve=True, long_prefill_threshold=224))
    theirs = written("theirs", PrefillFirst(224))
    assert {name.split("/")[0] for name in ours} >= {"steps", "batch_rows", "decisions", "outputs"}
    assert ours == theirs


# ── data-parallel ranks ───────────────────────────────────────────────────────────────────────────


def ran(rows: Rows) -> dict[int, set[str]]:
    """The kinds that the ranks ran in each step; a mixed batch is a prefill for the others."""
    told: dict[int, set[str]] = {}
    for row in rows.of("steps"):
        kind = row["executed_path"].removeprefix("simulated-dummy-")
        is_prefill = kind == "prefill" or row["kind"] in {"prefill", "mixed"}
        told.setdefault(row["step"], set()).add("prefill" if is_prefill else "decode")
    return told


@slow
def test_ranks_run_the_same_kind_in_every_step_and_dummies_where_they_have_none(
    recorded_once: RecordedOnce,
) -> None:
    rows = sound(recorded_once, "peer-kind-from-queue")
    assert {row["rank"] for row in rows.of("steps")} == {0, 1}
    assert all(len(kinds) == 1 for kinds in ran(rows).values())
    assert {row["executed_path"] for row in rows.of("steps", kind="dummy")} >= {
        "simulated-dummy-prefill"
    }
    waiting = rows.of("decisions", resource="phase")
    assert {row["instead"] for row in waiting} == {"prefill"}
    assert len(rows.of("lifecycle", event="finish")) == 8


def test_a_rank_that_forgets_its_begun_prefills_runs_another_kind_than_its_peer(
    recorded_once: RecordedOnce,
) -> None:
    rows = faulty(recorded_once, "peer-kind-from-queue")
    assert any(kinds == {"prefill", "decode"} for kinds in ran(rows).values())
    assert len(rows.of("lifecycle", event="finish")) == 8


def test_clients_who_wait_for_answers_are_not_dealt_to_ranks() -> None:
    with pytest.raises(ConfigError, match="cannot be dealt"):
        MIXED.record("data-parallel", None, asked({**SMALL, "workload": "closed-loop"}))
