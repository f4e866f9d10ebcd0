"""What a GPU did in a profile, counted with nothing but `json`: which step launched it, and when.

It follows the edges of all spans in order of time, one by one, with what is open at each.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Spans = list[tuple[int, int]]
TAGS = re.compile(r"execute_(?:\d+_)?context_\d+\(.*|step\[[A-Z_]+ bs=\d+.*|ProfilerStep#\d+")
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
MULTIPLIES = (
    "gemm", "gemv", "matmul", "cijk_", "xmma", "scudnn", "wgrad", "dgrad", "fprop", "splitk",
)  # fmt: skip
RAN = ("gemm", "attention", "kernel", "communication", "copy")
ORDER = (*RAN, "gpu-wait", "launch")


@dataclass
class Step:
    """A step's tag, the thread that it is on, and what it launched."""

    thread: object
    cpu: tuple[int, int]
    ran: Spans = field(default_factory=list)

    @property
    def gpu(self) -> tuple[int, int] | None:
        """When the first of it began and the last ended."""
        return (min(b for b, _ in self.ran), max(e for _, e in self.ran)) if self.ran else None


@dataclass
class Run:
    """The steps of a profile, all that a GPU executed, and what no step launched."""

    steps: list[Step]
    num_alone: int
    causes: dict[str, Spans]
    whole: tuple[int, int]

    @property
    def bounds(self) -> tuple[int, int]:
        """From the first begin to the last end of all steps and of all that the GPU executed.

        Where there is no step, those of all events with a duration.
        """
        if not self.steps:
            return self.whole
        spans = [step.cpu for step in self.steps] + [
            span for kind in RAN for span in self.causes[kind]
        ]
        return min(begun for begun, _ in spans), max(ended for _, ended in spans)


def run_of(file: Path) -> Run:
    """Read a profile and tie its kernels to its steps."""
    events = json.loads(gzip.decompress(file.read_bytes()), parse_float=Decimal)["traceEvents"]
    events = [event for event in events if event["ph"] == "X"]
    begins, ends = zip(*map(ns, events), strict=True)
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in CALLS}
    ran = [event for event in events if event.get("cat") in ON_GPU]
    steps = _steps(events)
    causes: dict[str, Spans] = defaultdict(list)
    num_alone = 0
    for event in ran:
        call = calls.get(event["args"]["correlation"])
        step = _step_of(call, steps) if call else None
        begun, ended = ns(event)
        causes[kind_of(event)].append((begun, ended))
        if call and ns(call)[1] < begun:
            causes["gpu-wait"].append((ns(call)[1], begun))
        if call and "mem" in event["cat"] and ns(call)[1] >= ended:
            causes["gpu-wait"].append(ns(call))
        num_alone += step is None
        if step:
            step.ran.append((begun, ended))
    causes["gpu-wait"] += [ns(call) for call in calls.values() if blocks(call["name"])]
    causes["launch"] = [step.cpu for step in steps if step.ran]
    return Run(steps, num_alone, causes, (min(begins), max(ends)))


def ns(event: Event) -> tuple[int, int]:
    """When an event began and ended, in whole nanoseconds."""
    begun = round(Decimal(event["ts"]) * 1000)
    return begun, begun + round(Decimal(event.get("dur", 0)) * 1000)


def blocks(name: str) -> bool:
    """Whether a call returns only when the GPU is done."""
    return "Async" not in name and ("Synchronize" in name or "Memcpy" in name)


def kind_of(event: Event) -> str:
    """What the kernels of the real files are, by the words in their names."""
    name = event["name"]
    if event["cat"] != "kernel":
        return "copy"
    if name.startswith("nccl"):
        return "communication"
    if any(word in name for word in ("attention", "flash_fwd_kernel", "FmhaBatchPrefill")):
        return "attention"
    lowered = name.lower().replace("fbgemm", "")
    return "gemm" if any(word in lowered for word in MULTIPLIES) else "kernel"


def _steps(events: list[Event]) -> list[Step]:
    found = [
        event for event in events
        if TAGS.fullmatch(event["name"]) and event.get("cat") == "user_annotation"
    ]  # fmt: skip
    if any(not event["name"].startswith("Profiler") for event in found):
        found = [event for event in found if not event["name"].startswith("Profiler")]
    steps: list[Step] = []
    for event in sorted(found, key=lambda event: (ns(event)[0], -ns(event)[1])):
        begun, ended = ns(event)
        if not steps or begun >= steps[-1].cpu[1] or ended > steps[-1].cpu[1]:
            steps.append(Step((event["pid"], event["tid"]), ns(event)))
    return steps


def _step_of(call: Event, steps: list[Step]) -> Step | None:
    """The step on whose thread a call was made; of a thread without any, the only one open."""
    thread, made = (call["pid"], call["tid"]), ns(call)[0]
    open_then = [step for step in steps if step.cpu[0] <= made < step.cpu[1]]
    if any(step.thread == thread for step in steps):
        open_then = [step for step in open_then if step.thread == thread]
    return open_then[0] if len(open_then) == 1 else None


def length(spans: Spans) -> int:
    """How long any of these was open."""
    total, reached = 0, -(1 << 62)
    for begun, ended in sorted(spans):
        total += max(0, ended - max(begun, reached))
        reached = max(reached, ended)
    return total


def shares(run: Run) -> dict[str, int]:
    """How long each cause was the first of those that held, within the run's bounds."""
    first, last = run.bounds
    spans = {**run.causes, "idle": [(first, last)]}
    edges: list[tuple[int, int, str]] = [(first, 0, "idle"), (last, 0, "idle")]
    for cause, times in spans.items():
        for begun, ended in times:
            if begun < ended:
                edges += [(begun, 1, cause), (ended, -1, cause)]
    is_open: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    at = first
    for when, change, cause in sorted(edges):
        until = min(max(when, first), last)
        holds = next((each for each in (*ORDER, "idle") if is_open[each]), "idle")
        spent[holds] += until - at
        at = until
        is_open[cause] += change
    return {cause: total for cause, total in spent.items() if total}
