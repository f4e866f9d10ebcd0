"""A run is blamed by what its GPU did, and where it did nothing, by why."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analyzers.latency.blame import COLUMNS, Blame, blame
from stepscope.analyzers.latency.kernel_kinds import KINDS
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

Row = dict[str, Any]
NAMES = {
    "gemm": "sm90_xmma_gemm", "attention": "flash_fwd_kernel", "kernel": "rms_norm",
    "communication": "ncclDevKernel_Generic", "copy": "Memcpy HtoD",
}  # fmt: skip


def step(begun: int, cpu: int, *, gpu: bool = True, dur: int | None = None, **more: Any) -> Row:
    known = {"gpu_ts_ns": begun, "gpu_dur_ns": 1, "gpu_busy_ns": 1} if gpu else {}
    row = {"step": begun + 1, "ts_ns": begun, "dur_ns": dur or cpu, "cpu_dur_ns": cpu}
    return {"kind": "decode", "inferred": "tags", **row, **known, **more}


def ran(kind: str, begun: int, ended: int, correlation: int | None = None, **more: Any) -> Row:
    category = "gpu_memcpy" if kind == "copy" else "kernel"
    return _span(NAMES[kind], category, begun, ended, correlation, more)


def call(
    begun: int, ended: int, correlation: int | None, name: str = "cudaLaunchKernel", **more: Any
) -> Row:
    return _span(name, "cuda_runtime", begun, ended, correlation, more)


def _span(
    name: str, category: str, begun: int, ended: int, correlation: int | None, more: Row
) -> Row:
    return {
        "name": name, "category": category, "ts_ns": begun, "dur_ns": ended - begun,
        "track": category, "form": "slice", "correlation": correlation, "step": 1, **more,
    }  # fmt: skip


def spent(trace: Trace) -> dict[str, int]:
    return {each.cause.name: each.total_ns for each in blame(trace).totals()}


def run(*spans: Row, **changed: Any) -> Trace:
    """One step of 100 ns, in which the CPU is for 20."""
    return trace_of(steps=[step(0, 20, dur=100, **changed)], spans=spans)


def test_a_moment_is_of_the_kind_of_kernel_that_ran() -> None:
    kernels = [ran(kind, 20 * at, 20 * at + 20) for at, kind in enumerate(KINDS)]

    assert spent(run(*kernels)) == dict.fromkeys(KINDS, 20)


def test_a_kernel_without_a_name_is_a_kernel() -> None:
    nameless = ran("gemm", 20, 60) | {"name": None}

    assert spent(run(nameless, ran("gemm", 60, 100))) == {"launch": 20, "kernel": 40, "gemm": 40}


def test_of_two_at_a_time_the_matrix_multiplication_counts() -> None:
    assert spent(run(ran("kernel", 0, 100), ran("gemm", 30, 50))) == {"gemm": 20, "kernel": 80}


def test_communication_costs_what_is_not_behind_computing() -> None:
    trace = run(ran("communication", 0, 60), ran("gemm", 0, 50), ran("copy", 40, 100))

    assert spent(trace) == {"gemm": 50, "communication": 10, "copy": 40}


def test_the_cpu_in_a_step_with_nothing_on_the_gpu_launches() -> None:
    assert spent(run(ran("gemm", 20, 100))) == {"launch": 20, "gemm": 80}


def test_what_was_launched_and_has_not_begun_waits_for_the_gpu() -> None:
    trace = run(call(5, 10, 1), ran("gemm", 60, 100, 1))

    assert spent(trace) == {"launch": 10, "gpu-wait": 50, "gemm": 40}


@slow
@looped(
    "name", ["cudaDeviceSynchronize", "hipEventSynchronize", "hipMemcpyWithStream", "cudaMemcpy"]
)
def test_a_call_that_blocks_waits_for_the_gpu(name: str) -> None:
    trace = run(call(5, 15, None, name), ran("gemm", 20, 100))

    assert spent(trace) == {"launch": 10, "gpu-wait": 10, "gemm": 80}


def test_a_copy_that_ended_before_its_call_returned_was_waited_for() -> None:
    pageable = call(5, 15, 1, "cudaMemcpyAsync"), ran("copy", 11, 12, 1)

    assert spent(run(*pageable, ran("gemm", 20, 100))) == {
        "launch": 10, "gpu-wait": 9, "copy": 1, "gemm": 80,
    }  # fmt: skip


def test_an_asynchronous_copy_waits_for_nothing() -> None:
    trace = run(call(5, 15, 1, "cudaMemcpyAsync"), ran("copy", 15, 20, 1), ran("gemm", 20, 100))

    assert spent(trace) == {"launch": 15, "copy": 5, "gemm": 80}


def test_with_asynchronous_scheduling_no_moment_counts_twice() -> None:
    steps = [step(0, 20, dur=70), step(30, 20, dur=70)]
    spans = [call(0, 5, 1), ran("gemm", 10, 70, 1), call(30, 35, 2), ran("gemm", 70, 100, 2)]

    blamed = blame(trace_of(steps=steps, spans=spans))

    assert blamed.total_ns == 100
    assert spent(trace_of(steps=steps, spans=spans)) == {"gemm": 90, "launch": 5, "gpu-wait": 5}


def test_between_steps_with_nothing_launched_the_run_is_idle() -> None:
    steps = [step(0, 20), step(50, 20)]
    spans = [ran("gemm", 0, 20), ran("gemm", 50, 70)]

    assert spent(trace_of(steps=steps, spans=spans)) == {"gemm": 40, "idle": 30}


def test_of_a_step_that_launched_nothing_the_gpu_is_not_blamed() -> None:
    steps = [step(0, 20), step(20, 20, gpu=False)]

    blamed = blame(trace_of(steps=steps, spans=[ran("gemm", 0, 20)]))

    assert {each.cause.name: each.total_ns for each in blamed.totals()} == {
        "gemm": 20, "unknown": 20,
    }  # fmt: skip
    assert any("of 1 step no kernel is in the profile" in note for note in blamed.notes)


def test_kernels_of_no_step_count_and_are_told() -> None:
    blamed = blame(run(ran("gemm", 0, 50, step=None), ran("gemm", 50, 100)))

    assert any("1 of 2 kernels and copies belong to no step" in note for note in blamed.notes)
    assert blamed.requests["gemm_ns"].to_list() == [100]


def test_a_mixed_step_of_which_the_gpu_is_known_is_not_cut_by_tokens() -> None:
    tokens: Row = {"kind": "mixed", "num_prefill_tokens": 9, "num_decode_tokens": 1}

    blamed = blame(run(ran("gemm", 0, 100), **tokens))

    assert blamed.requests["gemm_ns"].to_list() == [100]
    assert not any("cut in two" in note for note in blamed.notes)


def test_a_mixed_step_of_the_cpu_says_that_it_is_cut_by_tokens() -> None:
    tokens: Row = {"kind": "mixed", "num_prefill_tokens": 9, "num_decode_tokens": 1}
    trace = trace_of(
        steps=[step(0, 100, gpu=False, **tokens)], spans=[call(0, 5, None, "cpu call")]
    )

    assert spent(trace) == {"prefill": 90, "decode": 10}
    notes = blame(trace).notes
    assert any("1 mixed step cut in two by tokens" in note for note in notes)
    assert any("no kernel is in the profile" in note for note in notes)


def test_a_mixed_step_that_says_no_tokens_of_decodes_is_not_all_prefill() -> None:
    tokens: Row = {"kind": "mixed", "num_prefill_tokens": 9}
    trace = trace_of(steps=[step(0, 100, gpu=False, **tokens)])

    assert spent(trace) == {"unknown": 100}
    assert not any("cut in two" in note for note in blame(trace).notes)


@looped(
    ("others", "why"),
    [([], "1 mixed step did not record how many tokens were of prompts and how many of decodes"),
     ([step(100, 50, gpu=False, kind=None)], "the steps do not say of what kind they were, and ")],
)  # fmt: skip
def test_a_mixed_step_is_not_said_to_tell_nothing_where_it_tells_no_tokens(
    others: list[Row], why: str
) -> None:
    mixed = step(0, 100, gpu=False, kind="mixed", num_prefill_tokens=9)

    notes = blame(trace_of(steps=[mixed, *others])).notes

    assert any(note.startswith(f"100.0% is unknown: {why}") for note in notes)


def test_steps_that_an_engine_recorded_are_not_said_to_be_the_cpus() -> None:
    recorded = {"step": 1, "ts_ns": 0, "dur_ns": 9, "kind": "decode"}

    blamed = blame(trace_of(steps=[recorded], spans=[call(0, 5, None, "schedule")]))

    assert not any("kernel" in note for note in blamed.notes)


def test_a_rank_without_a_gpu_beside_one_with_is_told_by_its_steps() -> None:
    steps = [step(0, 20), {**step(0, 20, gpu=False), "rank": 1}]

    rows = blame(trace_of(steps=steps, spans=[ran("gemm", 0, 20)], ranks=(0, 1))).requests

    assert rows.select("rank", "gemm_ns", "decode_ns").rows() == [(0, 20, 0), (1, 0, 20)]


def test_a_requests_batch_is_computing_less_what_its_step_waits_for() -> None:
    trace = trace_of(
        steps=[step(0, 20, dur=100)],
        spans=[call(5, 10, 1), ran("gemm", 40, 70, 1), ran("communication", 60, 90),
               ran("kernel", 90, 100)],
        batch_rows=[{"step": 1, "ts_ns": 0, "request": "r", "phase": "decode", "num_tokens": 1}],
        lifecycle=[event("r", "arrive", 0), event("r", "admit", 0), event("r", "finish", 100)],
    )  # fmt: skip

    assert spent(trace) == {"decode": 40, "communication": 20, "gpu-wait": 30, "launch": 10}


times = st.tuples(st.integers(0, 120), st.integers(0, 40))
kernels = st.lists(st.tuples(st.sampled_from(KINDS), times, times), max_size=8)
steps_of = st.lists(st.tuples(times, st.integers(0, 40), st.booleans()), min_size=1, max_size=4)


@slow
@given(kernels, steps_of)
@settings(max_examples=50)
def test_every_nanosecond_has_the_first_cause_that_holds(
    executed: list[tuple[str, tuple[int, int], tuple[int, int]]],
    stepped: list[tuple[tuple[int, int], int, bool]],
) -> None:
    spans = [ran("copy", 0, 1)]
    for at, (kind, (begun, dur), (called, took)) in enumerate(executed):
        spans += [ran(kind, begun, begun + dur, at), call(called, called + took, at)]
    steps = [
        step(begun, cpu, gpu=gpu, dur=cpu + more, step=at)
        for at, ((begun, cpu), more, gpu) in enumerate(stepped)
    ]

    blamed = blame(trace_of(steps=steps, spans=spans))

    windows = [row for row in spans if row["category"] != "cuda_runtime"] + steps
    first = min(row["ts_ns"] for row in windows)
    last = max(row["ts_ns"] + row["dur_ns"] for row in windows)
    followed = Counter(_cause(at, spans, steps) for at in range(first, last))
    assert {each.cause.name: each.total_ns for each in blamed.totals()} == dict(followed)
    assert adds_up(blamed)


def adds_up(blamed: Blame) -> bool:
    told = blamed.requests
    return told.select(pl.sum_horizontal(COLUMNS)).to_series().to_list() == [blamed.total_ns]


def _cause(at: int, spans: list[Row], steps: list[Row]) -> str:
    """What holds in the nanosecond from `at` on."""
    gpu = [each for each in spans if each["category"] != "cuda_runtime"]
    running = {each["name"] for each in gpu if _is_open(each, at)}
    for kind in KINDS:
        if NAMES[kind] in running:
            return kind
    calls = {each["correlation"]: each for each in spans if each["category"] == "cuda_runtime"}
    if any(_waited_for(each, calls[each["correlation"]], at) for each in gpu[1:]):
        return "gpu-wait"
    known = [each for each in steps if each.get("gpu_ts_ns") is not None]
    if any(each["ts_ns"] <= at < each["ts_ns"] + each["cpu_dur_ns"] for each in known):
        return "launch"
    return "unknown" if any(_is_open(each, at) for each in steps) else "idle"


def _waited_for(executed: Row, called: Row, at: int) -> bool:
    returned = called["ts_ns"] + called["dur_ns"]
    is_late = returned >= executed["ts_ns"] + executed["dur_ns"]
    if executed["category"] == "gpu_memcpy" and is_late and _is_open(called, at):
        return True
    return bool(returned <= at < executed["ts_ns"])


def _is_open(row: Row, at: int) -> bool:
    return bool(row["ts_ns"] <= at < row["ts_ns"] + row["dur_ns"])


@slow
@looped(
    ("category", "kind"),
    [("kernel_dispatch", "kernel"), ("Kernel", "kernel"), ("memory_copy", "copy"),
     ("Memset", "copy")],
)  # fmt: skip
def test_categories_of_other_profilers_tell_kernels_from_copies(category: str, kind: str) -> None:
    assert spent(run({**ran("kernel", 0, 100), "category": category})) == {kind: 100}
