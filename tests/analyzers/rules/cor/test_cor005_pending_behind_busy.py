"""COR005: blocks are pending while cores that could run them stand idle."""

from __future__ import annotations

from stepscope.analyzers.rules.cor.cor005_pending_behind_busy import PendingBehindBusy
from tests.analyzers.rows import mix, part, task
from tests.traces import trace_of


def test_a_block_pending_beside_an_idle_core_is_found() -> None:
    idle = part(1, 2, 0, 10_000)
    busy = part(2, 1, 0, 100_000)
    pending = part(3, 1, 100_000, 110_000, slot="pending", dispatch_ns=50_000, block=4)
    trace = trace_of(core_spans=[idle, busy, pending], tasks=[task(3, "gather", 32)])

    (found,) = PendingBehindBusy().check(trace)

    assert (found.task, found.core, found.ts_ns, found.end_ns) == (3, 1, 52_000, 100_000)
    assert found.message == (
        "AIV blocks were pending while AIV cores stood idle: 21.8% of their time, "
        "at worst 1 of 2 idle with 1 pending for 48.0 µs (gather 4/32 first)"
    )
    assert found.evidence["lost_ns"] == 48_000


def test_a_mix_pending_beside_an_idle_group_is_found() -> None:
    other_group = part(1, 4, 0, 10_000)
    busy = [part(2, core, 0, 60_000, block=core) for core in range(3)]
    pending = mix(3, dict.fromkeys(range(3), 60_000), ended=70_000, dispatched=20_000)

    (found,) = PendingBehindBusy().check(trace_of(core_spans=[other_group, *busy, *pending]))

    assert found.message.startswith("MIX blocks were pending while core groups stood idle")


def test_a_mix_pending_beside_a_group_with_a_busy_core_is_clean() -> None:
    one_core_of_it = part(1, 4, 0, 60_000)
    busy = [part(2, core, 0, 60_000, block=core, shape="MIX") for core in range(3)]
    pending = mix(3, dict.fromkeys(range(3), 60_000), ended=70_000, dispatched=20_000)

    assert PendingBehindBusy().check(trace_of(core_spans=[one_core_of_it, *busy, *pending])) == []


def test_a_block_pending_while_every_core_is_busy_is_clean() -> None:
    busy = [part(1, core, 0, 100_000, block=core) for core in (1, 2)]
    pending = part(3, 1, 100_000, 110_000, slot="pending", dispatch_ns=50_000)

    assert PendingBehindBusy().check(trace_of(core_spans=[*busy, pending])) == []


def test_one_block_that_waits_a_few_microseconds_in_a_short_run_is_not_told() -> None:
    idle = part(1, 2, 0, 10_000)
    busy = part(2, 1, 0, 60_000)
    pending = part(3, 1, 60_000, 70_000, slot="pending", dispatch_ns=49_000)
    trace = trace_of(core_spans=[idle, busy, pending])

    assert PendingBehindBusy().check(trace) == []
    assert len(PendingBehindBusy(min_lost_ns=9_000).check(trace)) == 1


def test_what_a_scheduler_pass_takes_is_not_counted() -> None:
    just_freed = part(1, 2, 0, 98_500)
    busy = part(2, 1, 0, 100_000)
    pending = part(3, 1, 100_000, 110_000, slot="pending", dispatch_ns=50_000)

    rule = PendingBehindBusy(max_share=0.0)

    assert rule.check(trace_of(core_spans=[just_freed, busy, pending])) == []
