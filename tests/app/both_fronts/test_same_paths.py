"""Paths and arrows on every file that is at hand, against the rows themselves."""

from __future__ import annotations

import polars as pl

from stepscope.app.timeline.flows.ties import LAUNCH, PREEMPTION, TASK
from stepscope.ingest.schema import ON_DEVICE
from tests.app.both_fronts.looked import Looked
from tests.app.timeline.flows.test_path import check_paths
from tests.tiers import slow


def num_of(run: Looked, kind: int) -> int:
    return int((run.timeline.flows.ties._edges[2] == kind).sum())


def check_launches(run: Looked) -> int:
    """As many arrows as kernels with a call of their correlation; each from it to the kernel."""
    kind = pl.col("category").str.to_lowercase()
    rows = run.trace.spans.drop_nulls(["correlation", "track"]).with_columns(
        ran=kind.is_in(ON_DEVICE).fill_null(value=False),
        calls=~kind.is_in([*ON_DEVICE, "gpu_user_annotation", "cuda_sync"]).fill_null(value=False),
    )
    calls = rows.filter("calls").select("rank", "correlation").unique()
    ran = rows.filter("ran").join(calls, on=["rank", "correlation"]).collect()
    assert num_of(run, LAUNCH) == len(ran), run.trace.name
    return len(ran)


@slow
def test_every_path_adds_up_on_every_profile(profiles: list[Looked]) -> None:
    assert [run.trace.name for run in profiles if not check_paths(run)] == []


@slow
def test_every_path_adds_up_on_every_real_run(real_runs: list[Looked]) -> None:
    assert sum(check_paths(run) for run in real_runs) > 10_000


def test_every_path_adds_up_and_every_edge_has_an_arrow_in_every_scenario(
    scenario_run: Looked,
) -> None:
    assert check_paths(scenario_run) > 0
    check_tasks(scenario_run)
    check_preemptions(scenario_run)


def test_every_path_adds_up_in_the_samples(sample_profiles: list[Looked]) -> None:
    assert [run.trace.name for run in sample_profiles if not check_paths(run)] == []
    assert sum(check_launches(run) for run in sample_profiles) > 1


@slow
def test_every_kernel_with_a_call_in_the_file_has_an_arrow(profiles: list[Looked]) -> None:
    assert sum(check_launches(run) for run in profiles) > 5_000


@slow
def test_every_edge_of_two_tasks_on_cores_has_an_arrow(real_runs: list[Looked]) -> None:
    assert sum(check_tasks(run) for run in real_runs) > 1_000


def check_tasks(run: Looked) -> int:
    """As many arrows as edges of two tasks that ran on cores."""
    if not (run.trace.has("task_edges") and run.trace.has("core_spans")):
        return 0
    edges = run.trace.sql(
        "select distinct e.rank, e.from_task, e.to_task from task_edges e "
        "join core_spans a on a.rank = e.rank and a.task = e.from_task "
        "join core_spans b on b.rank = e.rank and b.task = e.to_task "
        "where a.core is not null and b.core is not null and e.from_task <> e.to_task"
    )
    assert num_of(run, TASK) == len(edges), run.trace.name
    return len(edges)


@slow
def test_every_preemption_for_a_request_that_is_shown_has_an_arrow(
    real_runs: list[Looked],
) -> None:
    assert sum(check_preemptions(run) for run in real_runs) > 100


def check_preemptions(run: Looked) -> int:
    """As many arrows as preemptions of one request for another."""
    if not run.trace.has("lifecycle"):
        return 0
    preempted = run.trace.lifecycle.filter(pl.col("event") == "preempt")
    for_another = preempted.filter(pl.col("by_request") != pl.col("request")).collect()
    assert num_of(run, PREEMPTION) == len(for_another), run.trace.name
    return len(for_another)
