"""`stepscope summary`: a row for each trace, whose numbers are those of the other commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.diff.outcomes import totals
from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.many_runs.trace_row import SCHEMA
from stepscope.analyzers.summary.slo import judged, slo_of
from stepscope.ingest.trace import Trace
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow

SLO = "ttft=1s,tpot=50ms"
SAMPLES = ["fcfs-preemption-before.trace", "vllm_crowd.trace", "torch_profiler_cpu.json.gz",
           "mix-admission-after.trace", "perfetto_two_ranks.pftrace"]  # fmt: skip
UNALIKE = (SAMPLES[0], SAMPLES[2])
"""A run of which everything is known, and a profile of which little is."""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(stepscope: Command, *arguments: Any) -> list[dict[str, Any]]:
    run = stepscope("summary", *arguments, "-o", "out.json", "--force")
    assert run.code == 0, run.err
    return [json.loads(line) for line in Path("out.json").read_text().splitlines()]


@slow
@looped("name", SAMPLES)
def test_its_numbers_are_those_of_diff_blame_and_check(
    stepscope: Command, sample_traces: Path, name: str
) -> None:
    [row] = rows_of(stepscope, sample_traces / name, "--slo", SLO)

    trace = Trace.open(sample_traces / name)
    came, checked, blamed = totals(trace), check(trace), blame(trace)
    assert {each: row[each] for each in came} == pytest.approx(came)
    assert {each["code"]: each["found"] for each in row["findings"]} == checked.counts
    assert row["not_applicable"] == list(checked.not_applicable)
    if blamed.names_requests:
        met = judged(trace, blamed, slo_of(SLO))
        counts = [row[f"slo_{each}"] for each in ("met", "missed", "unknown", "not_served")]
        assert counts == [*met.counts.values()]
        assert row["goodput"] == pytest.approx(met.goodput)
    else:
        assert row["slo_met"] is None


@slow
def test_quantiles_are_of_the_requests_that_finished(
    stepscope: Command, sample_traces: Path
) -> None:
    [row] = rows_of(stepscope, sample_traces / "fcfs-preemption-after.trace")

    each = blame(Trace.open(sample_traces / "fcfs-preemption-after.trace")).requests
    finished = each.filter(pl.col("outcome") == "finish")["latency_ns"]
    assert row["latency_p90_ns"] == round(np.percentile(finished, 90))
    assert row["latency_p99_ns"] == round(np.percentile(finished, 99))


@slow
def test_what_a_trace_does_not_tell_is_null(stepscope: Command, sample_traces: Path) -> None:
    [row] = rows_of(stepscope, sample_traces / "torch_profiler_cpu.json.gz")

    nulls = ("workload_digest", "latency_p50_ns", "kv_usage_mean", "cores_run", "slo", "reference")
    assert {name: row[name] for name in nulls} == dict.fromkeys(nulls)


@slow
def test_a_fix_keeps_the_workloads_digest_and_changes_that_of_the_configuration(
    stepscope: Command, sample_traces: Path
) -> None:
    names = [f"fcfs-preemption-{variant}.trace" for variant in ("before", "after")]
    before, after = rows_of(stepscope, *(sample_traces / name for name in names))

    assert before["workload_digest"] == after["workload_digest"]
    assert before["config_digest"] != after["config_digest"]


def test_a_reference_says_at_which_step_each_diverges(
    stepscope: Command, sample_traces: Path
) -> None:
    names = [sample_traces / f"fcfs-preemption-{each}.trace" for each in ("before", "after")]
    before, after = rows_of(stepscope, *names, "--reference", names[0])

    assert (before["divergence"], before["diverged_step"]) == ("equal", None)
    assert (after["divergence"], after["diverged_step"]) == ("diverged", 3)


@looped("suffix", ["parquet", "json", "csv"])
def test_columns_are_the_same_in_every_file_and_of_every_trace(
    stepscope: Command, sample_traces: Path, suffix: str
) -> None:
    out = Path(f"runs.{suffix}")
    run = stepscope("summary", *(sample_traces / name for name in UNALIKE), "-o", out)

    assert run.code == 0
    if suffix == "json":
        lines = out.read_text().splitlines()
        assert [list(json.loads(line)) for line in lines] == [list(SCHEMA)] * len(UNALIKE)
        return
    table = pl.read_parquet(out) if suffix == "parquet" else pl.read_csv(out)
    assert table.columns == list(SCHEMA)
    assert len(table) == len(UNALIKE)
    assert suffix == "csv" or table.schema == SCHEMA


def test_a_folder_stands_for_its_traces_and_what_cannot_be_read_is_named(
    stepscope: Command, sample_traces: Path
) -> None:
    Path("folder").mkdir()
    for name in SAMPLES[:2]:
        (Path("folder") / name).symlink_to(sample_traces / name)
    run = stepscope("summary", "folder", "absent.trace", "-o", "runs.parquet")

    assert run.code == 3
    assert "absent.trace: no such file" in run.err
    assert len(pl.read_parquet("runs.parquet")) == 2


@looped(
    ("arguments", "said"),
    [
        ((), "Missing argument"),
        (("absent.trace",), "no such file"),
        (("absent.trace", "-o", "out.xlsx"), "name a file that ends in .parquet"),
        (("absent.trace", "--slo", "speed=1s"), "no SLO of"),
    ],
)
def test_what_is_wrong_is_one_line(
    stepscope: Command, arguments: tuple[str, ...], said: str
) -> None:
    run = stepscope("summary", *arguments)

    assert run.code in {2, 3}
    assert said in run.err


def test_every_column_is_explained(stepscope: Command) -> None:
    run = stepscope("summary", "--columns")

    assert all(name in run.out for name in SCHEMA)


@slow
def test_a_terminal_has_a_column_for_each_trace(stepscope: Command, sample_traces: Path) -> None:
    run = stepscope("summary", sample_traces / SAMPLES[0], sample_traces / SAMPLES[1])

    assert run.out.splitlines()[0].split() == ["1", "2"]
    assert next(line for line in run.out.splitlines() if line.startswith("steps")).split() == [
        "steps", "88", "202",
    ]  # fmt: skip


@slow
def test_a_row_for_each_window_of_steps_is_written_where_it_is_asked_for(
    stepscope: Command, sample_traces: Path
) -> None:
    trace = sample_traces / "fcfs-preemption-before.trace"
    [whole] = rows_of(stepscope, trace, "--slo", SLO)
    windows = rows_of(stepscope, trace, "--slo", SLO, "--window", 10)

    assert [each["window"] for each in windows] == [*range(len(windows))]
    assert len(windows) > 3
    assert whole["window"] is None
    assert sum(each["slo_missed"] for each in windows) == whole["slo_missed"]
    assert {each["trace"] for each in windows} == {str(trace)}


def test_windows_are_compared_with_no_reference_and_are_no_runs(
    stepscope: Command, sample_traces: Path
) -> None:
    trace = sample_traces / "mix-admission-before.trace"

    refused = stepscope("summary", trace, "--window", 5, "--reference", trace)
    assert refused.code == 2
    assert "--reference compares whole traces" in refused.err
    rows_of(stepscope, trace, "--window", 1)
    trend = stepscope("trend", "out.json")
    assert trend.code == 3
    assert "its rows are of windows of steps, and not of runs" in trend.err
    assert stepscope("summary", trace, "--window", 0).code == 2
