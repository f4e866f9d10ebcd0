"""COR010: tasks are left, and nothing happens any more; the class of the stall is named."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.rules.cor.cor001_mix_on_occupied_group import MixOnOccupiedGroup
from stepscope.analyzers.rules.cor.cor010_dispatch_stalled import DispatchStalled
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, mix, part, task
from tests.looped import looped
from tests.traces import trace_of

END = 500_000_000
STEP = {"step": 1, "ts_ns": 0, "dur_ns": END, "kind": "decode"}


def left(number: int, name: str = "qk", num_blocks: int = 1, **more: Any) -> Row:
    """A task that was submitted at 10 and is still pending."""
    given: dict[str, Any] = {"core_mask": 2, "outcome": "pending", "ts_ns": 10} | more
    return task(number, name, num_blocks, **given)


def stall(tasks: list[Row], spans: list[Row], edges: list[Row] | None = None) -> Any:
    trace = trace_of(
        tasks=tasks, core_spans=spans, steps=[STEP],
        task_edges=edges if edges is not None else [{"from_task": 8, "to_task": 9}],
    )  # fmt: skip
    (found,) = DispatchStalled().check(trace)
    return found


def test_a_block_that_never_ended_is_named_with_its_core() -> None:
    found = stall([left(1, ready_ns=10)], [part(1, 4, 20, None), part(2, 5, 20, 90)])

    assert (found.step, found.task, found.core, found.group) == (1, 1, 4, 1)
    assert found.evidence["class"] == "a block never ended"
    assert found.message == (
        "step 1 stalled with 1 task left, a block never ended: qk 0/1 on core 4 is the first; "
        "no progress for 500.0 ms with 1 of 2 cores idle"
    )


def test_a_part_of_a_mix_that_never_started() -> None:
    spans = mix(1, {0: 20, 1: 20}, ended=0, dispatched=20, end_ns=None)

    found = stall([left(1, shape="MIX", core_mask=7, ready_ns=10)], spans)

    assert found.evidence["class"] == "a part of a MIX never started"


HUNG = [left(1, "push", ready_ns=10), left(2, shape="MIX", core_mask=7, ready_ns=10)]


def test_a_block_that_hangs_where_it_was_admitted_in_part_names_who_was_in_the_way() -> None:
    held = part(1, 2, 10, 60)
    spans = [held, *mix(2, {0: 20, 1: 20, 2: 60}, ended=0, dispatched=20, end_ns=None)]

    found = stall([HUNG[0] | {"outcome": "run", "retired_ns": 60}, HUNG[1]], spans)

    assert found.message == (
        "step 1 stalled with 1 task left, a block never ended: qk 0/1 on core 0 is the first, "
        "which took AIC AIV0 of group 0 while push 0/1 held AIV1 (COR001); no progress for "
        "500.0 ms with 0 of 3 cores idle"
    )
    assert found.evidence["conflict"] == "took AIC AIV0 of group 0 while push 0/1 held AIV1"
    assert found.fix.startswith("fix the admission")


def test_a_block_that_hangs_with_all_its_cores_to_itself_names_nobody() -> None:
    spans = [part(1, 2, 10, 15), *mix(2, {0: 20, 1: 20, 2: 20}, 0, dispatched=20, end_ns=None)]

    found = stall([HUNG[0] | {"outcome": "run", "retired_ns": 15}, HUNG[1]], spans)

    assert "COR001" not in found.message
    assert "conflict" not in found.evidence


def test_the_engines_late_part_that_hangs_is_led_back_to_its_admission(record: Record) -> None:
    trace = record("mix-admission", fault="late-part-hangs", late_part="hangs")

    (found,) = DispatchStalled().check(trace)
    (conflict, *_) = [
        each for each in MixOnOccupiedGroup().check(trace)
        if each.evidence["block"] == found.evidence["first task"]
    ]  # fmt: skip
    assert str(found.evidence["conflict"]) in conflict.message


def test_a_completion_that_was_lost() -> None:
    found = stall([left(1, ready_ns=10)], [part(1, 4, 20, 90)])

    assert found.evidence["class"] == "a completion was lost"
    assert found.evidence["stall_ns"] == END - 90


def test_a_release_that_was_lost() -> None:
    done = task(1, "qk", retired_ns=90, outcome="run")

    found = stall([done, left(2)], [part(1, 4, 20, 90)], [{"from_task": 1, "to_task": 2}])

    assert found.evidence["class"] == "a release was lost"


def test_a_task_that_is_ready_and_that_nobody_dispatches() -> None:
    done = task(1, "qk", retired_ns=90, outcome="run")

    found = stall([done, left(2, ready_ns=90)], [part(1, 4, 20, 90)])

    assert found.evidence["class"] == "ready and not dispatched"


def test_a_ring_that_is_full_leaves_tasks_that_were_not_submitted() -> None:
    done = task(1, "qk", retired_ns=90, outcome="run")

    found = stall([done, left(2, ts_ns=END), left(3, ts_ns=END)], [part(1, 4, 20, 90)])

    assert found.evidence["class"] == "not submitted"
    assert (found.task, found.evidence["tasks left"]) == (2, 2)


def test_a_ring_that_can_never_move_is_not_blamed_on_threads() -> None:
    """The run is given up at once, with a task just ready that no thread had the time to see."""
    given_up = {"step": 1, "ts_ns": 0, "dur_ns": 1_490, "kind": "decode"}
    done = task(1, "qk", retired_ns=90, outcome="run")
    tasks = [done, left(2, ready_ns=90), left(3, ts_ns=1_490)]

    (found,) = DispatchStalled().check(
        trace_of(tasks=tasks, core_spans=[part(1, 4, 20, 90)], steps=[given_up])
    )

    assert found.evidence["class"] == "not submitted"
    assert found.fix.startswith("make the rings larger, or end scopes early")


@looped("rings", [{"task_slots": "4"}, {"task_slots": "1"}, {"dep_entries": "2"}], ids=str)
def test_the_engine_with_a_ring_too_small_for_a_scope_is_told_to_make_it_larger(
    record: Record, rings: dict[str, str]
) -> None:
    (found,) = DispatchStalled().check(record("mix-admission", **rings))

    assert found.evidence["class"] == "not submitted"
    assert "scope deadlock" in str(found.evidence["recorded"])
    assert found.fix.startswith("make the rings larger, or end scopes early")


def test_a_ring_that_is_not_moved_is_not_told_to_be_larger(record: Record) -> None:
    (found,) = DispatchStalled().check(record("mix-admission", fault="lost-ring-advance"))

    assert found.evidence["class"] == "not submitted"
    assert found.fix.startswith("move the ring past all tasks that are over")


def test_a_deadlock_that_a_runtime_names_is_one_of_structure_however_long_it_took() -> None:
    steps = [
        {
            "step": 1,
            "ts_ns": 0,
            "dur_ns": 9_000_000,
            "kind": "decode",
            "executed_path": "SCOPE_DEADLOCK",
        }
    ]
    tasks = [left(1, ts_ns=None), left(2, ts_ns=None)]

    (found,) = DispatchStalled().check(trace_of(tasks=tasks, steps=steps))

    assert found.fix.startswith("make the rings larger")


def test_tasks_that_wait_for_each_other() -> None:
    edges = [{"from_task": 1, "to_task": 2}, {"from_task": 2, "to_task": 1}]

    found = stall([left(1), left(2)], [part(3, 4, 20, 90)], edges)

    assert found.evidence["class"] == "waits for others that wait"


def test_what_stalls_comes_before_what_waits_for_it() -> None:
    edges = [{"from_task": 1, "to_task": 2}]

    found = stall([left(2), left(1, ready_ns=10)], [part(1, 4, 20, None)], edges)

    assert (found.task, found.evidence["tasks left"]) == (1, 2)


@looped(("closed", "count"), [(True, 1), (False, 0)])
def test_a_step_that_had_not_ended_is_stalled_after_a_time_of_silence(
    closed: bool, count: int
) -> None:
    tasks = [left(1, ready_ns=10), left(2, ts_ns=20_000_000)]
    trace = trace_of(tasks=tasks, core_spans=[part(1, 4, 20, None)], closed=closed)

    assert len(DispatchStalled().check(trace)) == count


def test_a_step_all_of_whose_tasks_are_over_is_clean() -> None:
    tasks = [task(1, "qk", retired_ns=90, outcome="run"), task(2, "x", outcome="skipped")]

    assert DispatchStalled().check(trace_of(tasks=tasks, steps=[STEP])) == []
