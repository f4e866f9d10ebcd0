"""COR003: the parts of one MIX block start apart by more than a share of its length."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.rules.cor.cor003_mix_parts_skewed import MixPartsSkewed
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import mix, task
from tests.looped import looped
from tests.traces import trace_of


def test_parts_that_start_apart_are_found_though_all_were_queued() -> None:
    spans = mix(1, {0: 7_000, 1: 12_000, 2: 7_100}, ended=27_000, dispatched=5_000)

    (found,) = MixPartsSkewed().check(trace_of(core_spans=spans, tasks=[task(1, "qk_pv L0")]))

    assert (found.task, found.core, found.group) == (1, 1, 0)
    assert (
        found.message
        == "qk_pv L*: parts of 1 of 1 block start apart, by 5.0 µs of 20.0 µs at worst"
    )


def test_blocks_of_one_kernel_are_one_finding_placed_at_the_worst() -> None:
    tasks = [task(layer, f"qk_pv L{layer} b0") for layer in range(3)]
    spans = [
        *mix(0, {0: 0, 1: 3_000}, ended=10_000, dispatched=0),
        *mix(1, {0: 20_000, 1: 26_000}, ended=30_000, dispatched=20_000),
        *mix(2, {0: 40_000, 1: 40_000}, ended=50_000, dispatched=40_000),
    ]

    (found,) = MixPartsSkewed().check(trace_of(core_spans=spans, tasks=tasks))

    assert (found.count, found.task, found.ts_ns) == (2, 1, 20_000)
    assert found.evidence["blocks of the kernel"] == 3
    assert found.evidence["skew_ns"] == 9_000


@looped(("max_share", "count"), [(0.29, 1), (0.31, 0)])
def test_the_share_is_a_threshold(max_share: float, count: int) -> None:
    spans = mix(1, {0: 0, 1: 3_000}, ended=10_000, dispatched=0)

    assert len(MixPartsSkewed(max_share=max_share).check(trace_of(core_spans=spans))) == count


def test_parts_that_start_within_the_dispatch_of_one_another_are_clean() -> None:
    spans = mix(1, {0: 0, 1: 140, 2: 280}, ended=20_000, dispatched=0)

    assert MixPartsSkewed().check(trace_of(core_spans=spans)) == []


@looped(("run_ns", "count"), [(332, 0), (1_000, 1)])
def test_blocks_that_run_for_less_than_it_takes_to_get_them_onto_cores_are_left_out(
    run_ns: int, count: int
) -> None:
    spans = [
        *mix(1, {0: 0}, ended=run_ns, dispatched=0),
        *mix(1, {1: 90_000}, ended=90_000 + run_ns, dispatched=0),
    ]

    assert len(MixPartsSkewed().check(trace_of(core_spans=spans))) == count


@looped(("folder", "count"), [("TestSpmdStarvation_Case1", 0), ("TestMixedExample_case1", 6)])
def test_kernels_of_a_few_hundred_nanoseconds_are_left_to_cor009(
    shared_data: Path, folder: str, count: int
) -> None:
    found = MixPartsSkewed().check(Trace.open(shared_data / "swimlane" / folder))

    assert sum(each.count for each in found) == count
