"""Small recordings and profiles of the same run, in which every step launches a kernel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import Event, slice_

UNIX_NS = 1_800_000_000_000_000_000
TOKENS = (64, 2, 2, 17, 3)
STEP_NS, LENGTH_NS = 1_000_000, 900_000


def recorded(
    folder: Path,
    tokens: Sequence[int] = TOKENS,
    *,
    name: str = "run.trace",
    rank: int = 0,
    first: int = 10,
    clock: ClockInfo | None = None,
    ahead_ns: int | None = None,
) -> Trace:
    """A recording of steps a millisecond apart, the first numbered `first`.

    Each batch was formed `ahead_ns` before it is said to have begun to run.
    """
    path = folder / name
    with Recorder(path, producer="vllm", rank=rank, clock=clock or ClockInfo("wall")) as recorder:
        for at, num in enumerate(tokens):
            ts_ns = UNIX_NS + at * STEP_NS
            recorder.steps(
                step=first + at, ts_ns=ts_ns, dur_ns=LENGTH_NS, kind="prefill" if num else "idle",
                num_prefill_tokens=num, num_decode_tokens=0, num_waiting=at, num_running=1,
                formed_ns=None if ahead_ns is None else ts_ns - ahead_ns,
            )  # fmt: skip
    return Trace.open(path)


def profiled(
    folder: Path,
    tokens: Sequence[int] = TOKENS,
    *,
    name: str = "profile.json",
    rank: int = 0,
    at: int = 0,
    late_us: float = 0.0,
    base_ns: int = UNIX_NS,
) -> Trace:
    """A profile of those steps from the one at `at` on: tag, launch, a sampler, their kernels.

    A step without tokens has no tag.
    """
    file = folder / name
    events = [
        event
        for place, num in enumerate(tokens, at)
        if num
        for event in _step(num, place * STEP_NS / 1e3 + late_us, place)
    ]
    top = {"schemaVersion": 1, "distributedInfo": {"rank": rank}}
    dated = {"baseTimeNanoseconds": base_ns} if base_ns else {}
    file.write_text(json.dumps(top | dated | {"traceEvents": events}))
    return Trace.open(file)


def _step(num: int, since_us: float, place: int) -> list[Event]:
    tag = f"execute_context_1({num})_generation_0(0)"
    launch = {"cat": "cuda_runtime", "tid": 1}
    kernel = {"cat": "kernel", "tid": 7, "pid": 9}
    forward, sample = ({"args": {"correlation": 2 * place + own}} for own in (1, 2))
    return [
        slice_(tag, since_us + 100, 300, cat="user_annotation", tid=1),
        slice_("cudaLaunchKernel", since_us + 150, 10, **launch, **forward),
        slice_("gemm", since_us + 200, 400, **kernel, **forward),
        slice_("cudaLaunchKernel", since_us + 500, 10, **launch, **sample),
        slice_("argmax", since_us + 650, 50, **kernel, **sample),
    ]
