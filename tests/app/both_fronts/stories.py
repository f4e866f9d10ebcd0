"""What the stories tell in every front: the same hits, steps, holders, reasons and rows.

They are of the runs of `fcfs-preemption` before and after its fix. The terminal and the page say
them behind a glyph; the prompt and an editor in words and in JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stepscope.app.palette import HIT_GLYPH

LAST_STEP = 88
BEFORE, AFTER = "fcfs-preemption-before.trace", "fcfs-preemption-after.trace"

TAKEN_AWAY = "lifecycle: event = 'preempt' and cause = 'another bucket runs'"
"""The conflict: requests lose all that they computed, as another bucket is run."""
NUM_TAKEN_AWAY, FIRST_STEP = 229, 66
ALL_TAKEN_AWAY = f"{HIT_GLYPH} {NUM_TAKEN_AWAY} hits"
FIRST_TAKEN_AWAY = f"{HIT_GLYPH} hit 1 of {NUM_TAKEN_AWAY}"
FIRST_AT = f"step {FIRST_STEP} of {LAST_STEP}"
FIRST_ROW = "lifecycle: event=preempt request=req-01 cause=another bucket runs"
VERDICT, REASON = "preempted", "another bucket runs"
FOUND, FOUND_AT = "KVB003", 67
"""The rule that says so, and the step from which it does."""
NUM_FOUND_FIRST = 2
"""Of them, those for a request that needed no KV block, which the first finding counts."""
NOWHERE = "no row of this trace meets it"

WATCHED = "watch block 2"
"""A block that goes on changing hands up to the end."""
TAKEN = (
    f"{HIT_GLYPH} hit 23 of 24",
    "step 87 of 88",
    "op=claim resource=kv-block id=2 owner=req-28",
)
LOST = (
    f"{HIT_GLYPH} hit 22 of 24",
    "step 86 of 88",
    "op=release resource=kv-block id=2 owner=req-12",
)
"""The last two hits before the last step, backward: which, where, and the row."""

WHO, WAITS_AT = "req-17", 67
ENDS, HOLDER = "policy", "req-30"
CAUSE = "req-17: policy: the bucket len=193 text runs: shortest goes first"
LINK = "1 → step 67"
WHY = "req-17 is preempted: another bucket runs: needs 0, free 32, held by req-30"
PROOF = "decisions: verdict=preempted subject=req-17 reason=another bucket runs"
"""The row behind the link."""

CROWD, WAITER = "vllm_crowd.trace", "12-a98f2481"
WAITED = "12-a98f2481 waited 196 ms; 74% of that time: too few KV blocks were free"
WAITED_FOR = ("who held KV blocks, needed 4, free 1", "4-ab4d090e", "admit at 206.782187 ms")
"""What one click on a bar of the timeline answers."""

VARIANT, FIXED_STEPS = "after", 202
DIVERGED_AT, DIVERGED_IN, DIVERGED_ROW = 3, "batch", 0
DIVERGED_FROM, DIVERGED_TO = "req-29", "req-00"
"""What the fix would have changed: nothing is found any more; from here on it decides otherwise."""
FOUND_BEFORE = {"STV001": 40, "STV002": 241, "KVB003": 229, "KVB004": 19}
ASKED_BEFORE, ASKED = "KVB003", f"--variant {VARIANT}"
"""What the user stands before, and what he asks of the fix."""
WHAT_IF = (
    "EXACT: the reference engine recorded it",
    f"they diverge in step {DIVERGED_AT}: {DIVERGED_IN}, row {DIVERGED_ROW}",
    f"A request {DIVERGED_FROM}, phase decode, tokens 1",
    f"B request {DIVERGED_TO}, phase decode, tokens 1",
    *(f"{code} {number} 0" for code, number in FOUND_BEFORE.items()),
    "steps 88 202",
    "makespan 21.6 s 14.0 s",
    "preemptions 230 10",
    "max token gap 2.18 s 2.70 s",
    "40 gained by B",
    f"stepscope replay {{trace}} {ASKED} -o variant_after.trace",
)
"""What the fix would have changed, as the page and the terminal say it, white space apart."""
DIVERGED_PLACE = f"step {DIVERGED_AT} of {LAST_STEP}"

LIVE_STEPS, MORE_STEPS = 40, 10
"""What a recording in progress has when it is opened, and what comes while it is looked at."""
LIVE, NEWEST, ELSEWHERE = "● live", "newest step in view", "F follows the newest step"
HELD, ENDED, WHOLE = "paused: H goes on", "■ the recording is closed", "L reads all of it"
KILLED = "■ killed: it was not closed"
TWICE, TWICE_AT = "KVB001", "KVB001 came at step 50"
"""A KV block that two requests have: what is found while one looks, and the step at which."""
CHANGED = "the file on disk has changed: L reads it again"

FLAG, FLAG_NOTE = "storm", "<b>all</b> [bold]wait[/] from here on"
FLAG_LINE = f"@{FLAG} {FLAG_NOTE}"
"""A flag that is put in one front and is there in the other, and in the debugger."""

COMPARED_AT, COMPARED_AS = (
    "they diverge in step 3: batch, row 0",
    "aligned by step, 1 to 88 in both",
)
BY_TIME, BY_REQUEST = "time since the first arrival", "arrival of request req-29"
LANE_OF_BOTH = "req-29"
ONLY_BEFORE = "only A: req-30 did not finish by its deadline"
"""Compared before and after: where they diverge, how they lie on each other, what only one has."""
COMPARED_TOTALS = ("steps 88 202 +114", "makespan 21.6 s 14.0 s -7.67 s", "preemptions 230 10 -220")
COMPARED_SUMMED = (
    "TTFT p50 1.63 s 1.63 s +3.08 ms", "token gap p99 2.18 s 57.1 ms -2.13 s",
    "requests waiting, at most 39 20 -19", "KV in use, on average 95.7% 79.2% -16.5 pp",
    "decode: number 74 198 +124",
)  # fmt: skip
COMPARED_RULES = tuple(
    f"{code} {number} 0 -{number}" for code, number in sorted(FOUND_BEFORE.items())
)
COMPARED_REQUEST = "req-29 21.6 s 10.4 s -11.2 s"

ON_GPU = (
    "on the gpu",
    "busy 100 µs 90.9%",
    "gemm 60.0 µs 54.5%",
    "attention 0 ns 0.0%",
    "other kernels 0 ns 0.0%",
    "exposed communication 30.0 µs 27.3%",
    "copies 10.0 µs 9.1%",
    "idle 10.0 µs 9.1%",
    "in all 110 µs",
    "its kernels and copies",
    "sm90_xmma_gemm 2 60.0 µs 54.5%",
    "ncclDevKernel_AllReduce 1 40.0 µs 36.4%",
    "Memcpy HtoD 1 10.0 µs 9.1%",
)
"""What the GPU did in the second step of `gpu_profile`, white space and capitals apart."""
NOT_IN_IT = "rms_norm"
"""What it executed in the first."""


def gpu_profile(folder: Path) -> Path:
    """Write a profile of two steps in microseconds; of the second, ON_GPU is true.

    Its collective of 40 µs begins 10 µs before the second of two gemms of 30 µs each ends.
    """
    gemm, reduce = "sm90_xmma_gemm", "ncclDevKernel_AllReduce"
    events = [
        _event("user_annotation", "ProfilerStep#1", 0, 190),
        _event("user_annotation", "ProfilerStep#2", 200, 190),
        *_launched(NOT_IN_IT, 10, 20, 15),
        *_launched("Memcpy HtoD", 210, 220, 10, "gpu_memcpy"),
        *_launched(gemm, 212, 240, 30),
        *_launched(gemm, 214, 270, 30),
        *_launched(reduce, 216, 290, 40, stream=20),
        # Launched in the first step, and so no part of the second, though it runs in its time.
        *_launched(NOT_IN_IT, 20, 345, 15),
    ]
    path = folder / "profile.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return path


def _launched(
    name: str, called: int, began: int, lasted: int, category: str = "kernel", stream: int = 7
) -> list[dict[str, Any]]:
    """A call and, with the same correlation, what the GPU executed of it."""
    tied = {"correlation": called}
    call = _event("cuda_runtime", "cudaLaunchKernel", called, 1) | {"args": tied}
    ran = _event(category, name, began, lasted)
    return [call, ran | {"pid": 0, "tid": stream, "args": {"stream": stream, "device": 0, **tied}}]


def _event(category: str, name: str, began: int, lasted: int) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": name, "pid": 100, "tid": 100,
        "ts": began, "dur": lasted, "args": {},
    }  # fmt: skip
