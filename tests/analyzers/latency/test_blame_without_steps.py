"""A rank in which no step is marked is blamed by what its GPU did, from first span to last end."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.blame import COLUMNS, blame
from tests.analyzers.latency.test_blame_gpu import call, ran, step
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of


def test_a_rank_without_steps_is_blamed_beside_one_that_has_them() -> None:
    beside = call(0, 200, None, "aten::mm", rank=1)
    of_cpu = call(0, 200, None, "aten::mm", rank=2)
    trace = trace_of(
        steps=[step(0, 100, gpu=False)], spans=[beside, ran("gemm", 50, 80, rank=1), of_cpu]
    )

    blamed = blame(trace)

    assert blamed.requests.select("rank", "latency_ns", "gemm_ns", "idle_ns").rows() == [
        (0, 100, 0, 0),
        (1, 200, 30, 170),
    ]
    assert any(note.startswith("no step of 1 rank is known") for note in blamed.notes)


@slow
@looped("begun", [-(2**62), -1, 0, 2**60, 2**61 - 7])
@looped("length", [0, 9, 2**60, 2**62])
def test_a_kernel_at_the_end_of_time_adds_up(begun: int, length: int) -> None:
    told = blame(trace_of(spans=[ran("gemm", begun, begun + length)])).requests

    assert told.select(pl.sum_horizontal(COLUMNS)).item() == told["latency_ns"].item()
    assert told["gemm_ns"].item() == told["latency_ns"].item()


@looped("begun", [2**61, 2**62])
def test_a_run_beyond_the_end_of_time_is_not_told_to_have_taken_none(begun: int) -> None:
    blamed = blame(trace_of(spans=[ran("gemm", begun, begun + 9)]))

    assert blamed.requests.is_empty()
    assert "too far from time 0" in blamed.notes[0]
