"""COR004: a ready MIX is overtaken by younger single-core work."""

from __future__ import annotations

from stepscope.analyzers.rules.cor.cor004_mix_starved import MixStarved
from tests.analyzers.rows import Row, mix, part, task
from tests.looped import looped
from tests.traces import trace_of

TASKS = [task(1, "qk_pv L0", shape="MIX"), task(2, "push L0", 40)]


def young(count: int, core: int = 1) -> list[Row]:
    """Blocks on one core that were ready and dispatched one after another, from 1 µs on."""
    return [
        part(2, core, 1_000 * n, 1_000 * n + 900, block=n, ready_ns=1_000 * n - 10)
        for n in range(1, count + 1)
    ]


def starved(dispatched: int) -> list[Row]:
    return mix(1, {0: dispatched, 1: dispatched}, dispatched + 5_000, dispatched, ready_ns=500)


def test_a_mix_that_was_overtaken_more_than_twice_a_core_is_found() -> None:
    (found,) = MixStarved().check(trace_of(core_spans=[*young(12), *starved(11_500)], tasks=TASKS))

    assert (found.task, found.group, found.ts_ns, found.end_ns) == (1, 0, 500, 11_500)
    assert found.message == (
        "qk_pv L*: 1 of 1 block was overtaken, at worst by 11 younger blocks in 11.0 µs"
    )


def test_work_that_was_ready_before_does_not_overtake() -> None:
    old = [row | {"ready_ns": 100} for row in young(12)]

    assert MixStarved().check(trace_of(core_spans=[*old, *starved(11_500)], tasks=TASKS)) == []


@looped(("max_turns", "count"), [(10.9, 1), (11.0, 0)])
def test_turns_to_a_core_are_a_threshold(max_turns: float, count: int) -> None:
    trace = trace_of(core_spans=[*young(12), *starved(11_500)])

    assert len(MixStarved(max_turns=max_turns).check(trace)) == count


def test_a_long_wait_counts_though_few_overtook() -> None:
    spans = [*young(1), *starved(20_000_000)]

    assert len(MixStarved().check(trace_of(core_spans=spans))) == 1


def test_a_mix_that_was_never_dispatched_waits_until_the_last_dispatch() -> None:
    never = task(1, "gate L0", shape="MIX", ready_ns=500, outcome="pending")

    (found,) = MixStarved().check(trace_of(core_spans=young(12), tasks=[never]))

    assert (found.task, found.group, found.end_ns) == (1, None, 12_001)
    assert found.evidence["overtaken by at least"] == 12


def test_blocks_of_one_kernel_are_one_finding_placed_at_the_worst() -> None:
    tasks = [task(1, "qk_pv L0", shape="MIX"), task(3, "qk_pv L1", shape="MIX")]
    again = mix(3, {3: 9_500, 4: 9_500}, 15_000, 9_500, ready_ns=500)

    (found,) = MixStarved().check(
        trace_of(core_spans=[*young(12), *starved(11_500), *again], tasks=tasks)
    )

    assert (found.count, found.task) == (2, 1)
