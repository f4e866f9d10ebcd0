"""Small files as rocprofv3 writes them with `--output-format json`."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
KINDS: list[Json] = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API", "operations": ["hipMalloc", "hipLaunchKernel", "hipMemcpyAsync"]},
    {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxMarkA", "roctxThreadRangeA"]},
    {"kind": "KERNEL_DISPATCH", "operations": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE"]},
    {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
]
HIP, MARKER, KERNEL, COPY = 1, 2, 3, 4
TAGS = {1: "execute_context_1(64)_generation_0(0)", 5: "execute_context_0(0)_generation_2(2)",
        9: "a mark"}  # fmt: skip

COUNTERS = {31: "SQ_WAVES", 32: "GRBM_COUNT"}


def record(kind: int, operation: int, number: int, begin: int, end: int, **more: Any) -> Json:
    """A record of thread 11."""
    return {
        "size": 64, "kind": kind, "operation": operation, "thread_id": 11,
        "correlation_id": {"internal": number, "external": 0},
        "start_timestamp": begin, "end_timestamp": end, **more,
    }  # fmt: skip


def dispatch(number: int, begin: int, end: int, kernel: int = 3) -> Json:
    """A kernel in queue 4 of the first GPU."""
    info = {"agent_id": {"handle": 70}, "queue_id": {"handle": 4}, "kernel_id": kernel,
            "dispatch_id": number, "grid_size": {"x": 512, "y": 1, "z": 1}}  # fmt: skip
    return record(KERNEL, 1, number, begin, end, dispatch_info=info)


def counted(number: int, begin: int | None, *values: tuple[int, float]) -> Json:
    """What counters say of a kernel of the first GPU."""
    said = {"correlation_id": {"internal": number, "external": 0}, "dispatch_info": {
        "agent_id": {"handle": 70}, "queue_id": {"handle": 4}, "kernel_id": 3}}  # fmt: skip
    when = {} if begin is None else {"start_timestamp": begin, "end_timestamp": begin + 50}
    records = [{"counter_id": {"handle": own}, "value": value} for own, value in values]
    return {"thread_id": 11, "dispatch_data": said | when, "records": records}


def counting(process: Json, *records: Json) -> Json:
    """The process with counters of its kernels."""
    named = [{"id": {"handle": own}, "name": name} for own, name in COUNTERS.items()]
    return process | {"counters": named, "callback_records": {"counter_collection": [*records]}}


def process(pid: int = 7, since: int = 1_000) -> Json:
    """Two steps: the first launches a kernel and a copy, the second a kernel."""
    at = since
    copied = {"src_agent_id": {"handle": 60}, "dst_agent_id": {"handle": 70}, "bytes": 4096}
    return {
        "metadata": {"pid": pid, "command": ["serve"]},
        "agents": [{"id": {"handle": 60}, "type": 1, "gpu_index": -1},
                   {"id": {"handle": 70}, "type": 2, "gpu_index": 0}],
        "strings": {
            "buffer_records": KINDS,
            "marker_api": [{"key": key, "value": value} for key, value in TAGS.items()],
        },
        "kernel_symbols": [{"kernel_id": 3, "formatted_kernel_name": "gemm"}],
        "buffer_records": {
            "kernel_dispatch": [dispatch(2, at + 40, at + 90), dispatch(6, at + 230, at + 290)],
            "memory_copy": [record(COPY, 1, 3, at + 100, at + 110, **copied)],
            "hip_api": [record(HIP, 1, 2, at + 10, at + 20), record(HIP, 2, 3, at + 30, at + 40),
                        record(HIP, 1, 6, at + 210, at + 220)],
            "marker_api": [record(MARKER, 1, 1, at, at + 100),
                           record(MARKER, 1, 5, at + 200, at + 260),
                           record(MARKER, 0, 9, at + 50, at + 50)],
            "hsa_api": [],
        },
    }  # fmt: skip


def launches(number: int) -> Json:
    """Return a process that launches so many kernels one by one, two of three an all-reduce."""
    chance = random.Random(12)
    names = ("gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    made = process()
    made["kernel_symbols"] = [
        {"kernel_id": kernel, "formatted_kernel_name": name}
        for kernel, name in enumerate(names, start=3)
    ]
    calls, kernels = [], []
    for launch in range(number):
        at = 1_000 * (launch + 1)
        begin = at + chance.randrange(100, 400)
        end = begin + chance.randrange(1, 500)
        calls.append(record(HIP, 1, launch + 1, at, at + 90))
        kernels.append(dispatch(launch + 1, begin, end, 3 + min(1, launch % 3)))
    made["buffer_records"] = {"hip_api": calls, "kernel_dispatch": kernels, "hsa_api": []}
    return made


def written(*processes: Json) -> Json:
    """A file of these processes."""
    return {"rocprofiler-sdk-tool": list(processes)}
