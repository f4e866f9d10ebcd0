"""What the GPU executed of a step is what following the step's spans one by one comes to."""

from __future__ import annotations

import random

from stepscope.analyzers.latency.kernel_kinds import KINDS
from stepscope.analyzers.summary.gpu_use import USES
from stepscope.analyzers.summary.step_on_gpu import step_on_gpu
from tests.analyzers.summary.every_trace import each_file, opened
from tests.analyzers.summary.test_gpu_use import Intervals, executed, kernel, kinds_of, union
from tests.traces import trace_of

MOST_STEPS = 6


def test_a_step_has_what_it_launched_and_nothing_of_the_others() -> None:
    trace = trace_of(
        spans=[
            kernel("gemm_a", 10, 20, step=1),
            kernel("copy", 20, 30, step=1, category="gpu_memcpy"),
            kernel("gemm_b", 55, 5, step=2),
            kernel("gemm_a", 60, 10, step=1, rank=1),
        ]
    )

    told = step_on_gpu(trace, 0, 1)

    assert told is not None
    assert told.use == dict.fromkeys(USES, 0) | {
        "gemm_ns": 20, "copy_ns": 20, "busy_ns": 40, "window_ns": 40, "idle_ns": 0
    }  # fmt: skip
    assert told.kernels.select("name", "num", "total_ns").rows() == [
        ("copy", 1, 30),
        ("gemm_a", 1, 20),
    ]


def test_what_no_gpu_executed_is_not_the_gpus() -> None:
    op = kernel("aten::mm", 10, 20, step=1, category="cpu_op")

    assert step_on_gpu(trace_of(spans=[op]), 0, 1) is None
    assert step_on_gpu(trace_of(steps=[{"step": 1, "ts_ns": 0, "kind": "decode"}]), 0, 1) is None


def test_a_kernel_without_a_name_or_a_length_takes_nothing_from_the_others() -> None:
    trace = trace_of(
        spans=[
            kernel("gemm", 10, 20, step=1),
            kernel("gemm", 30, 0, step=1) | {"dur_ns": None},
            kernel("gemm", 40, 5, step=1) | {"name": None},
        ]
    )

    told = step_on_gpu(trace, 0, 1)

    assert told is not None
    assert (told.use["gemm_ns"], told.use["kernel_ns"], told.use["busy_ns"]) == (20, 5, 25)


@each_file
def test_steps_of_every_file_are_what_their_spans_come_to_one_by_one(name: str) -> None:
    trace = opened(name)
    steps = trace.steps.select("rank", "step", "gpu_dur_ns", "gpu_busy_ns").collect().to_dicts()
    steps = random.Random(name).sample(steps, min(MOST_STEPS, len(steps)))
    ran = executed(trace)
    of_kind = kinds_of(ran)

    for step in steps:
        own = [row for row in ran if (row["rank"], row["step"]) == (step["rank"], step["step"])]
        told = step_on_gpu(trace, step["rank"], step["step"])

        assert (told is None) == (not own)
        if told is None:
            continue
        before: Intervals = []
        for kind, use in zip(KINDS, USES, strict=True):
            kinds = [
                (row["ts_ns"], row["ts_ns"] + max(row["dur_ns"], 0))
                for row in own
                if of_kind[row["name"], row["category"]] == kind
            ]
            assert told.use[use] == union(before + kinds) - union(before), kind
            before += kinds
        assert told.use["busy_ns"] == union(before) == step["gpu_busy_ns"]
        assert told.use["window_ns"] == step["gpu_dur_ns"]
        assert told.kernels["num"].sum() == len(own)
        assert told.kernels["total_ns"].sum() == sum(row["dur_ns"] for row in own)
