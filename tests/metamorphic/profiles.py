"""The profiles that are rewritten: the project's own, one made here, and real ones."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.metamorphic.contents import Told, told_of
from tests.metamorphic.documents import Document, Event, loaded
from tests.metamorphic.profile_rewritings import plain

_KINETO = ROOT.parent / "shared" / "data" / "kineto"
_REAL = (
    "hta_event_sync_trace", "hta_sampled_rank-0", "vllm_prefilldecode_mi300",
    "h100_qwen15_05b_chat",
)  # fmt: skip
_SAMPLES = ("torch_profiler_cpu", "torch_executor_cpu")
QUICK = ("made",)
"""It has all kinds of events; the others, of which each takes seconds, are slow."""


def names() -> list[str]:
    """What there is on this machine."""
    real = [name for name in _REAL if (_KINETO / f"{name}.json.gz").is_file()]
    return ["made", *_SAMPLES, *real]


@cache
def _text(name: str) -> Document:
    if name == "made":
        return made()
    folder = ROOT / "sample_traces" if name in _SAMPLES else _KINETO
    return loaded(folder / f"{name}.json.gz")


def profile(name: str) -> Document:
    """One of them, to be changed."""
    return _text(name).copy()


def made() -> Document:
    """A small one with all kinds of events: steps, launches and kernels, samples, arrows, names."""
    events: list[Event] = [
        _at(1, 1, ph="M", name="process_name", ts=0, args={"name": "engine \u00e9\u4e2d"}),
        _at(1, 1, ph="M", name="thread_name", ts=0, args={"name": "main"}),
        _at(0, 7, ph="M", name="thread_name", ts=0, args={"name": "stream 7"}),
    ]
    for step in range(12):
        events += _step(step, 1_790_857_026_000 + 100 * step)
    return Document(events, {"schemaVersion": 1, "displayTimeUnit": "ms"}, {"traceName": "made"})


def _step(step: int, ts: int) -> list[Event]:
    kind = f"execute_context_0(0)_generation_{step + 1}({step + 1})"
    launch, kernel = {"correlation": step + 1}, {"correlation": step + 1, "stream": 7}
    arrow = {"cat": "ac2g", "name": "ac2g", "id": step}
    return [
        _at(1, 1, ph="X", cat="user_annotation", name=kind, ts=ts, dur=90),
        _at(1, 1, ph="X", cat="cpu_op", name='aten::"mm"\\\t\u00e9', ts=ts + 10, dur=40,
            args={"dims": [[2, 3], []], "note": None}),
        _at(1, 1, ph="X", cat="cuda_runtime", name="cudaLaunchKernel", ts=ts + 20, dur=5,
            args=launch),
        _at(0, 7, ph="X", cat="kernel", name="gemm", ts=ts + 30, dur=50, args=kernel),
        _at(1, 1, ph="s", ts=ts + 20, **arrow),
        _at(0, 7, ph="f", bp="e", ts=ts + 30, **arrow),
        _at(1, 1, ph="B", cat="python", name="loop", ts=ts + 91, args={"n": step}),
        _at(1, 1, ph="E", ts=ts + 95),
        _at(1, 1, ph="i", s="t", name="mark", ts=ts + 96),
        _at(1, 1, ph="b", cat="request", id=f"0x{step:x}", name="decode", ts=ts + 1),
        _at(1, 1, ph="e", cat="request", id=f"0x{step:x}", name="decode", ts=ts + 99),
        _at(1, 1, ph="C", name="memory", ts=ts + 97, args={"used": step, "free": 100 - step}),
    ]  # fmt: skip


def _at(pid: int, tid: int, **fields: Any) -> Event:
    return json.loads(json.dumps({**fields, "pid": pid, "tid": tid}))  # type: ignore[no-any-return]  # an event again


def write(folder: Path, content: bytes, name: str = "trace.json") -> Path:
    """A file of that content."""
    (folder / name).write_bytes(content)
    return folder / name


@cache
def told(folder: Path, name: str) -> Told:
    """What is read and said of one of them as it is."""
    return told_of(opened(folder, plain(profile(name)), f"{name}.json"))


def opened(folder: Path, content: bytes, name: str = "trace.json") -> Trace:
    """What is read of a file of that content."""
    return Trace.open(write(folder, content, name))
