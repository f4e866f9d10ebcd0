"""Collectives out of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ingest.kineto_files import open_events, rows, slice_
from tests.looped import looped
from tests.tiers import slow


def call(ts: float, args: dict[str, Any] | None = None) -> dict[str, Any]:
    known = {"Collective name": "allreduce", "Process Group Name": "0", "dtype": "BFloat16"}
    said = known | (args or {})
    return slice_("record_param_comms", ts, 5, cat="cpu_op", args=said)


def kernel(ts: float, name: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    said = {"stream": 7} | (args or {})
    return slice_(name, ts, 20, cat="kernel", pid=0, tid=7, args=said)


def test_of_a_call_without_a_kernel_it_is_not_known_when_it_ended(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path, call(10, {"In msg nelems": 8, "Process Group Ranks": "[0, 1, 2]"})
    )

    columns = ("op", "num_elements", "num_bytes", "group", "expected_ranks", "dur_ns", "inferred")
    assert rows(trace, "collectives", *columns) == [
        ("allreduce", 8, 16, "0", "0,1,2", None, "record_param_comms")
    ]
    assert trace.manifest.tables["collectives"] == "inferred"


def test_a_collective_is_entered_and_left_as_its_kernel_begins_and_ends(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        call(10, {"External id": 4}),
        call(50, {"External id": 5}),
        kernel(30, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", {"External id": 4}),
    )

    assert rows(trace, "collectives", "ts_ns", "dur_ns", "stream") == [
        (30_000, 20_000, "7"),
        (50_000, None, None),
    ]


def test_a_call_of_another_thread_is_of_the_step_that_launched_its_kernel(tmp_path: Path) -> None:
    """As autograd's thread calls it: its annotations and the tags of steps are on two threads."""
    tags = [slice_(f"ProfilerStep#{n}", 100 * n, 90, cat="user_annotation") for n in (1, 2)]
    of_autograd = {"tid": 2}
    calls = [call(ts, {"External id": ts}) | of_autograd for ts in (110, 210)]
    launches = [
        slice_("cudaLaunchKernel", ts + 1, 2, cat="cuda_runtime", args={"correlation": ts})
        | of_autograd
        for ts in (110, 210)
    ]
    kernels = [
        kernel(ts + 20, "ncclDevKernel_AllReduce", {"External id": ts, "correlation": ts})
        for ts in (110, 210)
    ]

    trace = open_events(tmp_path, *tags, *calls, *launches, *kernels)

    assert rows(trace, "collectives", "ts_ns", "step") == [(130_000, 1), (230_000, 2)]


def test_the_ranks_of_a_long_list_are_told_by_start_stride_and_size(tmp_path: Path) -> None:
    regular = {"Global rank start": 1, "Global rank stride": 4, "Group size": 3}
    abbreviated = {"Process Group Ranks": "[1, 5, ...]"}

    trace = open_events(tmp_path, call(10, abbreviated | regular), call(50, abbreviated))

    assert rows(trace, "collectives", "expected_ranks") == ["1,5,9", None]


def test_the_ranks_of_a_group_are_those_that_the_file_lists(tmp_path: Path) -> None:
    info = {"rank": 0, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}, {"pg_name": "9"}]}

    trace = open_events(tmp_path, call(10), distributedInfo=info)

    assert rows(trace, "collectives", "expected_ranks") == ["0,1"]


def annotation(ts: float, name: str, dur: float = 90, **more: Any) -> dict[str, Any]:
    dims = {"Input Dims": [[3, 4], [5]], "Input type": ["float"]}
    return slice_(name, ts, dur, cat="user_annotation", args=dims) | more


def launch(ts: float, correlation: int) -> dict[str, Any]:
    args = {"correlation": correlation}
    return slice_("cudaLaunchKernel", ts, 3, cat="cuda_runtime", args=args)


@slow
@pytest.mark.parametrize(
    ("name", "op"),
    [("nccl:all_reduce", "all_reduce"), ("hccl:_all_gather_base", "_all_gather_base")],
)
def test_an_annotation_tells_what_a_call_and_its_kernel_do_not(
    tmp_path: Path, name: str, op: str
) -> None:
    sends = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)"
    for calls in ([slice_("record_param_comms", 10, 95, cat="cpu_op")], []):
        trace = open_events(
            tmp_path, *calls, annotation(12, name), launch(20, 70),
            kernel(200, sends, {"correlation": 70}),
        )  # fmt: skip

        columns = ("op", "dtype", "num_elements", "num_bytes", "ts_ns", "dur_ns")
        assert rows(trace, "collectives", *columns) == [(op, "float", 17, 68, 200_000, 20_000)]


def test_work_of_the_host_lasts_as_long_as_its_annotation(tmp_path: Path) -> None:
    trace = open_events(tmp_path, call(10), annotation(12, "gloo:all_reduce"))

    columns = ("op", "ts_ns", "dur_ns")
    assert rows(trace, "collectives", *columns) == [("allreduce", 12_000, 90_000)]


def test_the_devices_copy_of_an_annotation_is_none(tmp_path: Path) -> None:
    copy = annotation(12, "nccl:all_reduce", cat="gpu_user_annotation")

    assert not open_events(tmp_path, copy).has("collectives")


@slow
@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", None),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "allreduce"),
        ("ncclSymDevKernel_AllReduce_LL_f16", "allreduce"),
        ("hcom_reduceScatter__952_0_1", "reducescatter"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(...)", "allreduce"),
    ],
)
def test_kernels_of_other_libraries_are_known(tmp_path: Path, name: str, op: str | None) -> None:
    alone = rows(open_events(tmp_path, kernel(10, name)), "collectives", "op", "dur_ns")
    called = open_events(
        tmp_path, call(5, {"External id": 4}), kernel(10, name, {"External id": 4})
    )

    assert alone == [(op, 20_000)]
    assert rows(called, "collectives", "op", "dur_ns") == [("allreduce", 20_000)]


def test_kernels_of_a_graph_count_beside_calls(tmp_path: Path) -> None:
    graphed = kernel(60, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", {"correlation": 3})

    trace = open_events(tmp_path, call(10, {"Collective name": "broadcast"}), graphed)

    assert rows(trace, "collectives", "op") == ["broadcast", "allreduce"]


def test_sends_and_receives_do_not_count_as_collectives(tmp_path: Path) -> None:
    sends = call(20, {"Collective name": "send"})

    trace = open_events(tmp_path, call(10), sends, call(30))

    assert rows(trace, "collectives", "op", "ordinal") == [
        ("allreduce", 0), ("send", 0), ("allreduce", 1),
    ]  # fmt: skip


def test_waits_are_no_collectives(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path, call(10, {"Collective name": "wait"}), call(20, {"Collective name": "broadcast"})
    )

    assert rows(trace, "collectives", "op", "ordinal") == [("broadcast", 0)]


def test_ordinals_count_per_group_unless_the_profile_numbers_them(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        call(10),
        call(20, {"Process Group Name": "tp", "Seq": 41}),
        call(30),
        call(40, {"Process Group Name": "tp", "Seq": 42}),
    )

    assert rows(trace, "collectives", "group", "ordinal") == [
        ("0", 0), ("tp", 41), ("0", 1), ("tp", 42),
    ]  # fmt: skip


def test_kernels_serve_where_there_are_no_calls(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        kernel(10, "ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclDevComm*)"),
        kernel(40, "ncclDevKernel_Broadcast_RING_LL(ncclDevComm*)"),
        kernel(70, "ncclUnknown"),
    )

    assert rows(trace, "collectives", "op", "ordinal", "stream", "dur_ns") == [
        ("reducescatter", 0, "7", 20_000),
        ("broadcast", 1, "7", 20_000),
    ]


@slow
@looped(
    ("name", "op"),
    [
        (
            "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)",
            "allreduce",
        ),
        ("void vllm::cross_device_reduce_2stage<half, 4>(x)", "allreduce"),
        ("ncclDevKernel_AllGather_RING_LL(x)", "allgather"),
    ],
)
def test_only_kernels_are_device_work_whatever_host_calls_are_named(
    tmp_path: Path, name: str, op: str
) -> None:
    launch = slice_("cudaLaunchKernel", 10, 5, cat="cuda_runtime", args={"correlation": 1})
    hosts = [
        slice_(name, 1 + place, 40, cat=category)
        for place, category in enumerate(("python_function", "cpu_op", "user_annotation"))
    ]

    trace = open_events(tmp_path, *hosts, launch, kernel(30, name, {"correlation": 1}))

    assert rows(trace, "collectives", "op", "ts_ns", "dur_ns") == [(op, 30_000, 20_000)]


@looped("category", ["Kernel", "kernel_dispatch", None])
def test_kernels_of_other_profilers_are_device_work(tmp_path: Path, category: str | None) -> None:
    event = kernel(30, "ncclDevKernel_AllGather_RING_LL(x)") | {"cat": category}
    trace = open_events(tmp_path, {key: value for key, value in event.items() if value})

    assert rows(trace, "collectives", "op", "ts_ns") == [("allgather", 30_000)]


def test_absurd_arguments_are_left_out(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        call(10, {"In msg nelems": 10**30, "Process Group Ranks": "[0, ...]", "dtype": 7}),
        call(20, {"Collective name": 17}),
        slice_("record_param_comms", 30, 5, args=["Collective name"]),
    )

    assert rows(trace, "collectives", "num_elements", "expected_ranks", "dtype") == [
        (None, None, None)
    ]
