"""Profiles that nobody wrote: what is said of their GPUs is what counting by hand gives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random

from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.trace import Trace
from tests.analyzers.latency.raw_gpu import Event, Run, length, run_of, shares
from tests.ingest.kineto_files import slice_
from tests.looped import looped
from tests.tiers import slow

TAGS = ("execute_context_{}(9)_generation_1(1)", "step[DECODE bs={}]", "step[EXTEND bs={} toks=9]")
LAUNCHES = ("cudaLaunchKernel", "cudaGraphLaunch", "hipMemcpyWithStream", "cudaMemcpyAsync")
CALLS = (*LAUNCHES, "cudaDeviceSynchronize")
KERNELS = ("sm90_xmma_gemm", "flash_fwd_kernel", "ncclDevKernel_Generic(x)", "rms_norm")
UNTIL_US = 1_500


def written(folder: Path, seed: int, *, has_steps: bool = True) -> Path:
    """A profile of up to 16 steps on two threads, or of none, and calls on three."""
    random = Random(seed)
    events = [*(_tags(random) if has_steps else ()), *_calls(random)]
    random.shuffle(events)
    file = folder / f"{seed}.json.gz"
    content = {"schemaVersion": 1, "traceEvents": events}
    file.write_bytes(gzip.compress(json.dumps(content).encode()))
    return file


def _at(random: Random, name: str, ts: float, most: float, **fields: object) -> Event:
    return slice_(name, round(ts, 3), round(random.uniform(0, most), 3), **fields)


def _tags(random: Random) -> list[Event]:
    found = []
    for thread in range(random.choice([1, 1, 2])):
        now = random.uniform(0, 300)
        for number in range(1, random.randint(2, 9)):
            name = random.choice(TAGS).format(number)
            outer = _at(random, name, now, 300, cat="user_annotation", tid=thread)
            found.append(outer)
            if random.random() < 0.3:
                inner = now + outer["dur"] / 5
                found.append(_at(random, "step[DECODE bs=7]", inner, outer["dur"] / 2,
                                 cat="user_annotation", tid=thread))  # fmt: skip
            now += outer["dur"] + random.choice([0, 150]) * random.random()
    return found


def _calls(random: Random) -> list[Event]:
    found = []
    for correlation in range(random.randint(1, 60)):
        name, begun = random.choice(CALLS), random.uniform(0, UNTIL_US)
        args = {"correlation": correlation, "stream": 7}
        long = random.choice([5, 5, 200])
        call = _at(random, name, begun, long, cat="cuda_runtime", tid=random.randint(0, 2))
        found.append({**call, "args": args})
        is_lost = random.random() < 0.1
        for _ in range(random.randint(1, 3) if "Graph" in name else name in LAUNCHES):
            kind = "gpu_memcpy" if "Memcpy" in name else "kernel"
            ran = _at(random, random.choice(KERNELS), begun + random.uniform(-2, 300), 90,
                      cat=kind, tid=random.randint(7, 9))  # fmt: skip
            found.append({**ran, "args": {**args, "correlation": correlation + 1_000 * is_lost}})
    return found


@slow
@looped("seed", range(20))
def test_random_profiles_are_told_as_counting_by_hand_tells_them(tmp_path: Path, seed: int) -> None:
    file = written(tmp_path, seed)
    run = run_of(file)

    trace = Trace.open(file)

    assert _steps(trace) == sorted(map(str, _counted(run)))
    assert _spent(trace) == {cause: ns for cause, ns in shares(run).items() if cause != "idle"}


@slow
@looped("seed", range(20))
def test_a_profile_without_steps_is_blamed_from_its_first_span_to_its_last_end(
    tmp_path: Path, seed: int
) -> None:
    file = written(tmp_path, seed, has_steps=False)
    run = run_of(file)

    blamed = blame(Trace.open(file))

    assert {each.cause.name: each.total_ns for each in blamed.totals()} == shares(run)
    assert blamed.requests.select("arrive_ns", "ended_ns").row(0) == run.bounds


def _steps(trace: Trace) -> list[str]:
    names = ("ts_ns", "dur_ns", "cpu_dur_ns", "gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns")
    return sorted(map(str, trace.steps.select(names).collect().rows()))


def _counted(run: Run) -> list[tuple[int | None, ...]]:
    return [
        (begun, max(ended, step.gpu[1] if step.gpu else 0) - begun, ended - begun,
         *((step.gpu[0], step.gpu[1] - step.gpu[0], length(step.ran)) if step.gpu else (None,) * 3))
        for step in run.steps
        for begun, ended in (step.cpu,)
    ]  # fmt: skip


def _spent(trace: Trace) -> dict[str, int]:
    """Time by cause, without idle and unknown: the two differ by what the file does not tell."""
    unseen = ("idle", "unknown")
    return {
        each.cause.name: each.total_ns
        for each in blame(trace).totals()
        if each.cause.name not in unseen
    }
