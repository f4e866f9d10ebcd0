"""COR006: cores idle while blocks that could run on them are ready."""

from __future__ import annotations

from stepscope.analyzers.rules.cor.cor006_idle_core_ready_work import IdleCoreReadyWork
from tests.analyzers.rows import mix, part, task
from tests.looped import looped
from tests.traces import trace_of


def test_a_core_that_idles_with_a_block_ready_is_found() -> None:
    spans = [
        part(1, 1, 0, 100_000),
        part(1, 2, 0, 20_000, block=1),
        part(2, 2, 80_000, 100_000, ready_ns=10_000),
    ]

    (found,) = IdleCoreReadyWork().check(trace_of(core_spans=spans))

    assert (found.step, found.ts_ns, found.end_ns) == (1, 22_000, 80_000)
    assert found.message == (
        "AIV cores stood idle for 29.0% of their time with AIV blocks ready: "
        "at worst 1 of 2 idle with 1 ready for 58.0 µs"
    )
    assert found.evidence["idle_share"] == 0.29


def test_more_blocks_than_cores_lose_no_more_than_the_cores() -> None:
    waiting = [part(2, 1, 50_000 + n, 60_000 + n, ready_ns=0, block=n) for n in range(9)]
    spans = [part(1, 2, 0, 100_000), *waiting]

    (found,) = IdleCoreReadyWork().check(trace_of(core_spans=spans))

    assert found.evidence["lost_ns"] == 48_000


def test_a_mix_is_not_work_for_a_single_idle_core() -> None:
    spans = [
        part(1, 1, 0, 80_000),
        *mix(2, {0: 80_000, 1: 80_000, 2: 80_000}, 99_000, dispatched=80_000, ready_ns=0),
    ]

    assert IdleCoreReadyWork().check(trace_of(core_spans=spans)) == []


def test_a_mix_is_work_for_a_whole_idle_group() -> None:
    spans = [
        part(1, 1, 0, 20_000),
        *mix(2, {0: 80_000, 1: 80_000, 2: 80_000}, 99_000, dispatched=80_000, ready_ns=0),
    ]

    (found,) = IdleCoreReadyWork().check(trace_of(core_spans=spans))

    assert found.message.startswith("core groups stood idle")


def test_a_task_that_starts_all_together_does_not_count() -> None:
    late = part(2, 1, 80_000, 100_000, ready_ns=0)
    tasks = [task(2, "attention", is_sync_start=True)]

    assert IdleCoreReadyWork().check(trace_of(core_spans=[late], tasks=tasks)) == []


@looped(("dispatched", "count"), [(11_900, 0), (60_000, 1)])
def test_what_a_scheduler_pass_takes_is_not_counted(dispatched: int, count: int) -> None:
    spans = [part(1, 1, 0, 10_000), part(2, 1, dispatched, 100_000, ready_ns=5_000)]

    rule = IdleCoreReadyWork(max_share=0.0)

    assert len(rule.check(trace_of(core_spans=spans))) == count


def test_a_core_of_another_kind_is_not_idle_for_the_block() -> None:
    spans = [
        part(1, 0, 0, 1_000, shape="AIC"),
        part(1, 1, 0, 80_000, block=1),
        part(2, 1, 80_000, 99_000, ready_ns=0),
    ]

    assert IdleCoreReadyWork().check(trace_of(core_spans=spans)) == []


def test_cores_that_the_device_has_and_nobody_used_are_idle_too() -> None:
    spans = [part(1, 2, 0, 20_000), part(2, 2, 80_000, 100_000, ready_ns=10_000)]
    device = {"device": {"core_types": ["aic", "aiv", "aiv", "aiv", "aiv"]}}

    (found,) = IdleCoreReadyWork(max_share=0).check(trace_of(core_spans=spans, config=device))

    assert "at worst 4 of 4 idle with 1 ready for 58.0 µs" in found.message
    assert found.evidence["idle_share"] == 0.17
