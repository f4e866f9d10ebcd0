"""COR009: getting blocks onto cores takes longer than what the cores do with them."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.rules.cor.cor009_dispatch_bound import DispatchBound
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import mix, part, task
from tests.looped import looped
from tests.traces import trace_of


def test_blocks_that_wait_longer_than_they_run_are_found() -> None:
    spans = [
        part(1, 1, 3_000, 4_000, ready_ns=0, dispatch_ns=2_000),
        part(2, 1, 8_000, 9_000, ready_ns=0, dispatch_ns=7_000),
    ]

    (found,) = DispatchBound().check(
        trace_of(core_spans=spans, tasks=[task(1, "add 1"), task(2, "add 2")])
    )

    assert (found.task, found.core) == (2, 1)
    assert found.message == (
        "dispatching 2 AIV blocks took 3.5 times as long as running them: 7.0 µs for 2.0 µs, "
        "29% of it on the way to the core; add * costs most"
    )


def test_a_core_that_runs_something_else_is_no_overhead() -> None:
    spans = [part(1, 1, 0, 50_000), part(2, 1, 50_100, 50_900, ready_ns=0, dispatch_ns=0)]

    assert DispatchBound().check(trace_of(core_spans=spans)) == []


def test_a_block_that_was_staged_early_waits_from_when_it_was_ready() -> None:
    spans = [part(1, 1, 9_000, 10_000, ready_ns=8_900, dispatch_ns=0)]

    assert DispatchBound().check(trace_of(core_spans=spans)) == []


@looped(("max_ratio", "count"), [(1.9, 1), (2.0, 0)])
def test_the_ratio_is_a_threshold(max_ratio: float, count: int) -> None:
    spans = [part(1, 1, 2_000, 3_000, ready_ns=0)]

    assert len(DispatchBound(max_ratio=max_ratio).check(trace_of(core_spans=spans))) == count


def test_blocks_that_take_no_time_at_all_are_said_to_be_all_overhead() -> None:
    (found,) = DispatchBound().check(trace_of(core_spans=[part(1, 1, 3_000, 3_000, ready_ns=0)]))

    assert "took all of running them" in found.message


def test_a_simulator_whose_kernels_do_next_to_nothing_is_dispatch_bound(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "swimlane" / "TestSpmdStarvation_Case1")

    (found,) = DispatchBound().check(trace)

    assert found.evidence["blocks"] == 84
    assert found.message.startswith("dispatching 84 MIX blocks took 2,642.4 times as long")


def test_a_model_whose_kernels_are_long_is_not(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "swimlane" / "TestQwen2L_StressBatch16Seq3500")

    assert DispatchBound().check(trace) == []


def test_the_parts_of_a_mix_are_one_block() -> None:
    spans = [*mix(1, {0: 9_000, 1: 9_000, 2: 9_500}, 9_800, 1_000, block=0),
             *mix(1, {3: 9_000, 4: 9_000, 5: 9_500}, 9_800, 1_000, block=1)]  # fmt: skip

    (found,) = DispatchBound().check(trace_of(core_spans=spans))

    assert (found.evidence["blocks"], found.message[:24]) == (2, "dispatching 2 MIX blocks")
