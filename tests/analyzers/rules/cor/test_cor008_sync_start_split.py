"""COR008: a task whose blocks must start together is started in part."""

from __future__ import annotations

from stepscope.analyzers.rules.cor.cor008_sync_start_split import SyncStartSplit
from tests.analyzers.rows import Row, part, task
from tests.looped import looped
from tests.traces import trace_of


def sync(number: int, num_blocks: int, name: str = "sync_mix") -> Row:
    return task(number, name, num_blocks, "AIV", is_sync_start=True)


def test_blocks_that_were_dispatched_later_are_found() -> None:
    spans = [
        part(1, 0, 100, 90_000),
        part(1, 1, 100, 90_000, block=1),
        part(1, 2, 40_000, 90_000, block=2),
    ]

    (found,) = SyncStartSplit().check(trace_of(core_spans=spans, tasks=[sync(1, 3)]))

    assert (found.task, found.ts_ns, found.end_ns) == (1, 100, 40_000)
    assert found.message == (
        "sync_mix was started in part, 1 of 1 time: at worst 2 of 3 blocks at first, "
        "the last 39.9 µs after the first"
    )


@looped(("state", "count"), [("complete", 1), ("partial", 0)])
def test_blocks_that_never_came_count_when_no_row_can_be_missing(state: str, count: int) -> None:
    trace = trace_of(
        core_spans=[part(1, 0, 0, 900)], tasks=[sync(1, 3)], tables={"core_spans": state}
    )

    found = SyncStartSplit().check(trace)

    assert len(found) == count
    assert all("2 never" in each.message for each in found)


def test_blocks_that_are_dispatched_one_after_another_are_together() -> None:
    spans = [part(1, core, 140 * core, 90_000, block=core) for core in range(24)]

    assert SyncStartSplit().check(trace_of(core_spans=spans, tasks=[sync(1, 24)])) == []


def held_until(end_ns: int) -> Row:
    """What core 1 ran before a block of task 1 was dispatched to it at 1,500 ns."""
    return part(9, 1, -40_000, end_ns, block=0)


@looped(("end_ns", "count"), [(1_200, 1), (90, 0)])
def test_a_block_whose_core_was_held_at_the_first_dispatch_is_late_however_soon_it_came(
    end_ns: int, count: int
) -> None:
    spans = [held_until(end_ns), part(1, 0, 100, 90_000), part(1, 1, 1_500, 90_000, block=1)]

    found = SyncStartSplit().check(trace_of(core_spans=spans, tasks=[sync(1, 2), task(9, "x", 1)]))

    assert len(found) == count
    assert all("1 of 2 blocks at first, the last 1.4 µs" in each.message for each in found)


@looped("dispatch_ns", [150, 1_500])
def test_a_block_put_behind_what_its_core_still_ran_is_dispatched_with_the_others(
    dispatch_ns: int,
) -> None:
    behind = part(1, 1, 2_000, 90_000, dispatch_ns=dispatch_ns, block=1, slot="pending")
    spans = [held_until(1_200), part(1, 0, 100, 90_000), behind]

    assert SyncStartSplit().check(trace_of(core_spans=spans, tasks=[sync(1, 2)])) == []


def test_a_task_whose_blocks_may_start_apart_is_clean() -> None:
    spans = [part(1, 0, 0, 900), part(1, 1, 80_000, 90_000, block=1)]

    assert SyncStartSplit().check(trace_of(core_spans=spans, tasks=[task(1, "mix", 2)])) == []


def test_tasks_of_one_kernel_are_one_finding_placed_at_the_worst() -> None:
    spans = [
        part(1, 0, 0, 900), part(1, 1, 20_000, 90_000, block=1),
        part(2, 0, 100_000, 110_000), part(2, 1, 150_000, 190_000, block=1),
        part(3, 0, 200_000, 210_000), part(3, 1, 200_000, 290_000, block=1),
    ]  # fmt: skip
    tasks = [sync(number, 2, f"sync L{number}") for number in (1, 2, 3)]

    (found,) = SyncStartSplit().check(trace_of(core_spans=spans, tasks=tasks))

    assert (found.count, found.task) == (2, 2)
    assert found.evidence["tasks of the kernel"] == 3
