"""The admission policies: what each answers for a group, and what that costs."""

from __future__ import annotations

from functools import cache
from random import Random
from statistics import fmean

import pytest

from stepscope.engine.device.admission import ADMISSIONS, admission
from stepscope.engine.device.graphs.kernels import Share, whole
from stepscope.engine.device.graphs.tasks import Task, TaskGraph
from stepscope.engine.device.lowering.workloads import workload
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.topology import Device, Group, Part
from stepscope.ingest.errors import ConfigError
from tests.engine.device.drawn_graphs import blocks_of, run_of, split_blocks
from tests.looped import looped
from tests.tiers import sampled, slow

SEEDS = range(4)
each_seed = pytest.mark.parametrize("seed", sampled(SEEDS[:2], SEEDS[:1]))
SPLITTING = ("aic-free", "all-idle-or-pending", "per-core-slot")
STARTING_TOGETHER = ("all-free", "barrier", "reserve-group")


@cache
def interleaved(policy: str, seed: int) -> Run:
    graph = TaskGraph()
    share = Share(num_reqs=12, num_tokens=12, context_len=256)
    workload("moe-interleaved").lower(graph, share, Random(seed), 8)
    return run_of(graph, admission(policy), groups=8)


def elapsed_ns(policy: str, seed: int) -> int:
    return interleaved(policy, seed).end_ns


def group_with(*busy: str) -> tuple[Device, Group]:
    """A device of one group on which an AIV or AIC block runs on each core named."""
    device = Device(num_groups=1)
    group = device.groups[0]
    for name in busy:
        core = group.cores[("aic", "aiv0", "aiv1").index(name)]
        task = TaskGraph().submit("busy", core.role, [1])
        part = Part(task, 0, core, core.role, 0, "running", 0, [], dispatch_ns=0)
        core.running = part
        core.claims.append(part)
        device.num_vector_blocks += task.shape == "AIV"
    return device, group


@looped(
    ("busy", "admitting"),
    [
        ((), {policy.name for policy in ADMISSIONS}),
        (("aiv1",), {"aic-free", "per-core-slot"}),
        (("aic",), {"per-core-slot"}),
        (("aic", "aiv0", "aiv1"), {"per-core-slot"}),
    ],
)
def test_who_admits_a_mix_to_run_at_once(busy: tuple[str, ...], admitting: set[str]) -> None:
    device, group = group_with(*busy)

    said_yes = {p.name for p in ADMISSIONS if p.admits_idle(group, group.needed(7), device)}

    assert said_yes == admitting


@pytest.mark.parametrize(
    ("busy", "admitting"),
    [
        ((), set()),
        (("aiv1",), {"all-idle-or-pending"}),
        (("aic", "aiv0", "aiv1"), {"all-idle-or-pending", "uniform"}),
    ],
)
def test_who_admits_a_mix_to_wait(busy: tuple[str, ...], admitting: set[str]) -> None:
    _, group = group_with(*busy)

    said_yes = {p.name for p in ADMISSIONS if p.admits_pending(group, group.needed(7))}

    assert said_yes == admitting


def test_barrier_waits_for_vector_work_of_other_groups_too() -> None:
    device, group = group_with()
    device.num_vector_blocks = 1

    assert not admission("barrier").admits_idle(group, group.needed(7), device)


def test_reserve_group_lends_nothing_of_a_group_that_runs_a_vector_block() -> None:
    _, group = group_with("aiv0")
    policy = admission("reserve-group")

    assert not any(policy.lends_idle(core, group) for core in group.cores)


def test_an_unknown_policy_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(ConfigError, match="all-free, all-idle-or-pending"):
        admission("aic")


@slow
@each_seed
@looped("policy", SPLITTING)
def test_policies_that_decide_core_by_core_split_mix_blocks(policy: str, seed: int) -> None:
    run = interleaved(policy, seed)

    assert len(run.conflicts) > 0
    assert [(c.task, c.block) for c in run.conflicts] == split_blocks(run)


@slow
@each_seed
@looped("policy", ["uniform", *STARTING_TOGETHER])
def test_policies_that_place_the_whole_block_split_none(policy: str, seed: int) -> None:
    run = interleaved(policy, seed)

    assert run.conflicts == []
    assert split_blocks(run) == []


@each_seed
@looped("policy", STARTING_TOGETHER)
def test_policies_that_want_the_whole_group_start_all_parts_together(
    policy: str, seed: int
) -> None:
    blocks = blocks_of(interleaved(policy, seed)).values()

    assert all(len({part.start_ns for part in parts}) == 1 for parts in blocks)


@each_seed
def test_both_alternatives_take_longer_than_the_guard(seed: int) -> None:
    guarded = elapsed_ns("all-free", seed)

    assert elapsed_ns("barrier", seed) > guarded
    assert elapsed_ns("reserve-group", seed) > 2 * guarded


@slow
def test_the_guard_costs_next_to_nothing() -> None:
    costs = [elapsed_ns("all-free", seed) / elapsed_ns("aic-free", seed) for seed in SEEDS]

    assert 0.97 < fmean(costs) < 1.02


@pytest.mark.parametrize("policy", ["aic-free", "all-idle-or-pending"])
def test_one_layer_alone_shows_no_conflict(policy: str) -> None:
    graph = TaskGraph()
    share = Share(num_reqs=12, num_tokens=12, context_len=256)
    workload("moe-layer").lower(graph, share, Random(0), 8)

    assert run_of(graph, admission(policy), groups=8).conflicts == []


def test_parts_that_started_hold_their_cores_until_the_pending_one_starts() -> None:
    graph = TaskGraph()
    graph.submit("vector", 2, [40_000])
    graph.submit("short", 1, [1_000], writes=[whole("x")])
    graph.submit("mix", 7, [10_000], reads=[whole("x")])

    run = run_of(graph, admission("aic-free"), groups=1, threads=1)

    aic, aiv0, aiv1 = run.parts[-3:]
    assert [part.slot for part in (aic, aiv0, aiv1)] == ["running", "pending", "running"]
    assert aiv0.start_ns - aic.start_ns > 30_000
    assert aic.end_ns == aiv0.end_ns == aiv1.end_ns == aiv0.start_ns + 10_000
    assert [conflict.holder for conflict in run.conflicts] == ["vector 0/1"]


def test_an_admission_over_a_busy_core_names_its_holder_and_the_free_group_not_tried() -> None:
    graph = TaskGraph()
    graph.submit("vector", 2, [40_000])
    graph.submit("short", 1, [1_000], writes=[whole("x")])
    graph.submit("mix", 7, [10_000], reads=[whole("x")])

    run = run_of(graph, admission("aic-free"), groups=2, threads=1)

    (made,) = (each for each in run.decisions if each.task.shape == "MIX")
    assert (made.verdict, made.needed, made.available) == ("admitted", 3, 2)
    assert made.reason == "group 0: AIC free, AIVs not consulted"
    assert (made.holder, made.core, made.instead) == (graph.tasks[0], 2, "group 1")


def test_a_put_back_is_noted_again_only_when_what_holds_it_back_changes() -> None:
    graph = TaskGraph()
    graph.submit("first", 2, [20_000])
    graph.submit("second", 4, [60_000])
    graph.submit("short", 1, [1_000], writes=[whole("x")])
    graph.submit("mix", 7, [10_000], reads=[whole("x")])

    run = run_of(graph, admission("all-free"), groups=1, threads=1)

    first, second, _, mix = graph.tasks
    noted = [(made.verdict, made.holder) for made in run.decisions if made.task is mix]
    assert noted == [("put-back", first), ("put-back", second), ("admitted", None)]


def noted_of(run: Run, task: Task) -> list[tuple[str, str, Task | None]]:
    return [
        (each.verdict, each.resource, each.holder) for each in run.decisions if each.task is task
    ]


def test_a_task_on_single_cores_is_noted_when_it_waits_for_something_else_and_no_oftener() -> None:
    graph = TaskGraph()
    runs, behind, first, second = (graph.submit(f"cube {n}", 1, [30_000]) for n in range(4))

    run = run_of(graph, admission("aic-free"), groups=1, threads=1)

    assert noted_of(run, runs) == [("admitted", "core", None)]
    assert noted_of(run, behind) == [("admitted", "core", runs)]
    assert noted_of(run, first) == [("deferred", "core", runs), ("admitted", "core", behind)]
    assert noted_of(run, second) == [
        ("deferred", "queue", first), ("deferred", "core", behind), ("admitted", "core", first),
    ]  # fmt: skip


def test_what_is_held_back_for_a_mix_names_it_once_and_what_it_waits_for_then() -> None:
    graph = TaskGraph()
    graph.submit("vector", 2, [40_000])
    graph.submit("short", 1, [1_000], writes=[whole("x")])
    mix = graph.submit("mix", 7, [10_000], reads=[whole("x")])
    cube = graph.submit("cube", 1, [1_000], reads=[whole("x")])

    run = run_of(graph, admission("all-free"), groups=1, threads=1)

    assert noted_of(run, cube) == [("deferred", "queue", mix), ("admitted", "core", mix)]


def test_a_task_of_many_blocks_is_admitted_once_to_idle_cores_and_once_to_pending_slots() -> None:
    graph = TaskGraph()
    vector = graph.submit("vector", 2, [10_000] * 32)

    run = run_of(graph, admission("aic-free"), groups=2, threads=1)

    admitted = [each for each in run.decisions if each.verdict == "admitted"]
    assert [(each.reason, each.needed, each.available) for each in admitted] == [
        ("an idle AIV", 32, 4), ("a pending slot, behind a busy AIV", 28, 4),
    ]  # fmt: skip
    assert noted_of(run, vector).count(("deferred", "core", vector)) == 1
    assert len(run.decisions) == 3
