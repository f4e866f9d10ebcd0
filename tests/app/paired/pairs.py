"""Pairs of traces that tests look at."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stepscope.app.paired.pair import Pair, pair_of
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.tiers import sampled

SAMPLES = ROOT / "sample_traces"
REAL = ROOT.parent / "shared" / "data"
PAIRS = {
    "fcfs": ("fcfs-preemption-before.trace", "fcfs-preemption-after.trace"),
    "mix": ("mix-admission-before.trace", "mix-admission-after.trace"),
    "profiles": ("torch_profiler_cpu.json.gz", "torch_executor_cpu.json.gz"),
    "vllm": ("vllm_prefixes.trace", "vllm_prefixes_0.23.trace"),
    "a profile and a run": ("torch_profiler_cpu.json.gz", "fcfs-preemption-after.trace"),
    "the same twice": ("perfetto_two_ranks.pftrace", "perfetto_two_ranks.pftrace"),
}
EVERY_PAIR = sampled(PAIRS, ["mix", "a profile and a run"])
"""The names of all pairs; without the slow ones, cores, requests and tracks are among them."""


@cache
def pair(name: str) -> Pair:
    a, b = (Trace.open(SAMPLES / each) for each in PAIRS[name])
    return pair_of((a, b))


def real_pair(one: Path, other: Path) -> Pair:
    return pair_of((Trace.open(one), Trace.open(other)))
