"""What holds for every graph, device and admission policy."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import example, given, settings

from stepscope.engine.device.admission import Admission, admission
from stepscope.engine.device.rings import Rings, RingSizes
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.topology import Device
from tests.engine.device.drawn_graphs import (
    Launch,
    blocks_of,
    graph_of,
    launches,
    num_groups,
    num_threads,
    policies,
    run_of,
    split_blocks,
)
from tests.tiers import examples, slow

bounded = settings(max_examples=examples(40))


def schedule_of(run: Run) -> list[tuple[int, ...]]:
    return [(p.task.id, p.block, p.core.id, p.dispatch_ns, p.start_ns, p.end_ns) for p in run.parts]


BEHIND_WHAT_ANOTHER_THREAD_PREPARES: list[Launch] = [
    *[(1, [0], False, True, [], [])] * 4, (7, [0], False, True, [], []),
    (3, [141], True, True, [], []),
]  # fmt: skip


@bounded
@given(launches, policies, num_groups, num_threads)
@example(BEHIND_WHAT_ANOTHER_THREAD_PREPARES, admission("per-core-slot"), 2, 2)
def test_no_core_runs_two_blocks_at_once(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), policy, groups, threads)

    spans = defaultdict(list)
    for part in run.parts:
        spans[part.core.id].append((part.start_ns, part.end_ns))
    for core in spans.values():
        assert all(first[1] <= second[0] for first, second in pairwise(sorted(core)))


@bounded
@given(launches, policies, num_groups, num_threads)
def test_every_task_retires_and_runs_each_block_once_on_the_cores_it_needs(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    graph = graph_of(given_launches, groups)

    blocks = blocks_of(run_of(graph, policy, groups, threads))

    ran = {task for task in graph.tasks if task.mask and task.enabled}
    assert all(task.outcome == "run" for task in ran)
    assert all(task.outcome in ("skipped", "dummy") for task in {*graph.tasks} - ran)
    assert set(blocks) == {(task.id, block) for task in ran for block in range(task.num_blocks)}
    for parts in blocks.values():
        roles = sum(part.core.role for part in parts)
        task = parts[0].task
        assert (roles == task.mask) if task.shape != "AIV" else (roles in (2, 4))
        assert len({part.core.group for part in parts}) == 1


@bounded
@given(launches, policies, num_groups, num_threads)
def test_no_block_starts_before_its_dependencies_ended(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), policy, groups, threads)

    for part in run.parts:
        assert part.task.submitted_ns <= part.task.ready_ns <= part.dispatch_ns < part.start_ns
        assert all(before.retired_ns <= part.task.ready_ns for before in part.task.predecessors)


@bounded
@given(launches, policies, num_groups, num_threads)
def test_an_all_or_nothing_task_is_published_in_one_instant(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), policy, groups, threads)

    published = defaultdict(set)
    for part in run.parts:
        if part.task.is_sync_start:
            published[part.task.id].add(part.dispatch_ns)
    assert all(len(instants) == 1 for instants in published.values())


@slow
@bounded
@given(launches, policies, num_groups, num_threads)
def test_the_parts_of_a_block_compute_together_once_the_last_has_started(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), policy, groups, threads)

    for parts in blocks_of(run).values():
        ends = {part.end_ns for part in parts}
        last = max(part.start_ns for part in parts)
        assert ends == {last + parts[0].task.durations_ns[parts[0].block]}


@bounded
@given(launches, policies, num_groups, num_threads)
def test_the_conflicts_counted_at_admission_are_those_that_the_parts_show(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), policy, groups, threads)

    assert [(c.task, c.block) for c in run.conflicts] == split_blocks(run)


@slow
@bounded
@given(launches, num_groups, num_threads)
def test_four_policies_never_split_a_block(
    given_launches: list[Launch], groups: int, threads: int
) -> None:
    for name in ("uniform", "all-free", "barrier", "reserve-group"):
        run = run_of(graph_of(given_launches, groups), admission(name), groups, threads)

        assert run.conflicts == []


@slow
@bounded
@given(launches, num_groups, num_threads)
def test_three_policies_start_all_parts_of_a_block_together(
    given_launches: list[Launch], groups: int, threads: int
) -> None:
    for name in ("all-free", "barrier", "reserve-group"):
        run = run_of(graph_of(given_launches, groups), admission(name), groups, threads)

        assert all(len({p.start_ns for p in parts}) == 1 for parts in blocks_of(run).values())


@bounded
@given(launches, num_groups, num_threads)
def test_under_barrier_no_mix_is_admitted_while_a_vector_block_is_in_flight(
    given_launches: list[Launch], groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), admission("barrier"), groups, threads)

    about_mix = [made for made in run.decisions if made.task.shape == "MIX"]
    admitted = [made.ts_ns for made in about_mix if made.verdict == "admitted"]
    vector = [(p.dispatch_ns, p.end_ns) for p in run.parts if p.task.shape == "AIV"]
    assert not any(first <= ts_ns < last for ts_ns in admitted for first, last in vector)


@bounded
@given(launches, num_groups, num_threads)
def test_under_reserve_group_a_vector_block_has_its_group_to_itself(
    given_launches: list[Launch], groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), admission("reserve-group"), groups, threads)

    for part in run.parts:
        if part.task.shape == "AIV":
            assert not any(
                other.start_ns < part.end_ns and part.start_ns < other.end_ns
                for other in run.parts
                if other is not part and other.group == part.group
            )


@slow
@bounded
@given(launches, policies, num_groups, num_threads)
def test_the_same_graph_is_dispatched_the_same_way_again(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    once = run_of(graph_of(given_launches, groups), policy, groups, threads)
    again = run_of(graph_of(given_launches, groups), policy, groups, threads)

    assert schedule_of(once) == schedule_of(again)


@bounded
@given(launches, policies, num_groups, num_threads)
def test_a_ring_of_two_tasks_slows_a_graph_down_but_never_stops_it(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    graph = graph_of(given_launches, groups)
    rings = Rings(RingSizes(num_slots=2))

    run = run_of(graph, policy, groups, threads, rings=rings)

    assert run.stall is None
    assert rings.slots.held == rings.heap.held == rings.entries.held == 0


@bounded
@given(num_groups, num_threads)
def test_every_core_belongs_to_one_group_and_one_thread(groups: int, threads: int) -> None:
    device = Device(groups, threads)

    assert [core.id for core in device.cores] == list(range(3 * groups))
    assert sorted(c.id for t in device.threads for c in t.cores) == list(range(3 * groups))
    for group in device.groups:
        assert [c.id for c in group.cores] == [
            group.id, groups + 2 * group.id, groups + 2 * group.id + 1,
        ]  # fmt: skip
        assert group.thread == group.id % threads


@bounded
@given(launches, policies, num_groups, num_threads)
def test_where_nobody_is_told_all_goes_the_same_way_and_nothing_is_noted(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    told = run_of(graph_of(given_launches, groups), policy, groups, threads)
    untold = run_of(graph_of(given_launches, groups), policy, groups, threads, is_told=False)

    assert (schedule_of(untold), untold.end_ns) == (schedule_of(told), told.end_ns)
    assert untold.decisions == []


@bounded
@given(launches, policies, num_groups, num_threads)
def test_every_mix_block_that_runs_was_admitted_once(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), policy, groups, threads)

    about_mix = [made for made in run.decisions if made.task.shape == "MIX"]
    admitted = [made.task.id for made in about_mix if made.verdict == "admitted"]
    blocks = [b[0].task.id for b in blocks_of(run).values() if b[0].task.shape == "MIX"]
    assert sorted(admitted) == sorted(blocks)


@bounded
@given(launches, policies, num_groups, num_threads)
def test_every_task_on_single_cores_that_runs_was_admitted_and_never_deferred_twice_for_one_thing(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    run = run_of(graph_of(given_launches, groups), policy, groups, threads)

    ran = {part.task for part in run.parts if part.task.shape != "MIX"}
    about = {task: [made for made in run.decisions if made.task is task] for task in ran}
    for rows in about.values():
        admitted = [made.reason for made in rows if made.verdict == "admitted"]
        lacked = [made.reason for made in rows if made.verdict == "deferred"]
        assert 1 <= len(admitted) == len(set(admitted)) <= 2
        assert all(one != other for one, other in pairwise(lacked))
