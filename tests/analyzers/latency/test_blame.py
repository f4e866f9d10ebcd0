"""Every nanosecond of a request has one cause, and it is the right one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analyzers.latency.blame import COLUMNS, Blame, blame
from stepscope.analyzers.latency.causes import CAUSES, OF_RESOURCE
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.scenarios import SCENARIOS
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.workloads.workload import RequestSpec
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.analyzers.absurd import Rows as Absurd
from tests.analyzers.absurd import absurd_rows, trace_from
from tests.analyzers.rows import event
from tests.engine.drawn_requests import knobs, requests, sizes
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Rows
from tests.engine.small_engines import serve
from tests.looped import looped
from tests.tiers import examples, slow
from tests.traces import trace_of

REPORTED = [
    (name, variant)
    for name in ("mix-admission", "fcfs-preemption", "waiting-queue")
    for variant in ("before", "after")
]
OTHERS = [
    (each.name, variant)
    for each in SCENARIOS
    for variant in each.variants
    if (each.name, variant) not in REPORTED
]
KINETO = (
    "vllm_cpu_tiny_llama_preemptions", "sglang_qwen3_8b_prefilldecode", "vllm_prefilldecode_mi300",
    "h100_qwen15_05b_chat", "hta_nccl_data", "hta_sampled_rank-0",
    "hta_event_sync_trace",
)  # fmt: skip


def adds_up(blamed: Blame) -> bool:
    """Whether causes add up to latencies, and intervals to causes, to the nanosecond."""
    told = blamed.requests
    sums = told.select(pl.sum_horizontal(COLUMNS))[COLUMNS[0]]
    assert blamed.intervals["ns"].min() is None or (blamed.intervals["ns"] > 0).all()
    assert (told.select((pl.col(COLUMNS) >= 0).all()).row(0)) == (True,) * len(COLUMNS)
    spent = blamed.intervals.group_by("cause").agg(pl.col("ns").sum())
    totals = {each.cause.name: each.total_ns for each in blamed.totals()}
    return sums.equals(told["latency_ns"], check_names=False) and dict(spent.rows()) == totals


def of_request(blamed: Blame, request: str) -> dict[str, int]:
    """Nanoseconds by cause of one request, without zeros."""
    row = blamed.requests.row(by_predicate=pl.col("request") == request, named=True)
    return {cause.name: row[cause.column] for cause in CAUSES if row[cause.column]}


def test_an_id_that_is_used_again_is_one_request_and_said_to_be() -> None:
    told = [event("r", name, at) for at, name in ((0, "arrive"), (9, "finish"), (20, "arrive"))]

    blamed = blame(trace_of(lifecycle=told))

    assert len(blamed.requests) == 1
    assert "1 request id used again: all rows with one id count as one request" in blamed.notes


def test_where_no_step_is_told_nobody_knows_that_none_ran() -> None:
    told = [event("r", "arrive", 0), event("r", "admit", 3), event("r", "finish", 10)]

    assert of_request(blame(trace_of(lifecycle=told)), "r") == {"waiting": 3, "unknown": 7}


def check_causes(blamed: Blame) -> None:
    assert adds_up(blamed)
    assert len(blamed.requests) > 0
    assert "unknown" not in {each.cause.name for each in blamed.totals()}


@slow
@looped(("scenario", "variant"), REPORTED)
def test_causes_add_up_to_every_latency_of_three_scenarios(
    recorded_once: RecordedOnce, scenario: str, variant: str
) -> None:
    check_causes(blame(recorded_once.trace(scenario, variant)))


@slow
@looped(("scenario", "variant"), OTHERS)
def test_causes_add_up_to_every_latency_of_every_other_variant(
    recorded_once: RecordedOnce, scenario: str, variant: str
) -> None:
    check_causes(blame(recorded_once.trace(scenario, variant)))


@slow
@looped("name", KINETO)
def test_a_profile_that_names_no_request_has_its_whole_run_blamed(
    shared_data: Path, name: str
) -> None:
    blamed = blame(Trace.open(shared_data / "kineto" / f"{name}.json.gz"))

    assert adds_up(blamed)
    assert blamed.requests["request"].to_list() == [None]
    assert blamed.total_ns > 0
    assert any("names no requests" in note for note in blamed.notes)


@slow
def test_real_steps_are_split_between_prefill_decode_and_the_time_between_them(
    shared_data: Path,
) -> None:
    trace = Trace.open(shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz")
    ran = int(trace.steps.select(pl.col("dur_ns").sum()).collect().item())

    spent = {each.cause.name: each.total_ns for each in blame(trace).totals()}

    assert spent.keys() == {"prefill", "decode", "idle"}
    assert spent["prefill"] + spent["decode"] == ran


slow_costs = st.builds(
    CostModel, base_ns=st.integers(1, 5), prefill_token_ns=st.integers(0, 2),
    decode_row_ns=st.integers(0, 2), kv_token_ns=st.just(0),
)  # fmt: skip


@slow
@given(requests, knobs, sizes, slow_costs)
@settings(max_examples=examples(60))
def test_blame_is_what_following_every_step_of_a_run_comes_to(
    specs: list[RequestSpec], scheduler: Bucketed, config: EngineConfig, cost: CostModel
) -> None:
    seen: list[dict[str, Any]] = []
    _, rows = serve(specs, scheduler, config, observer=seen.append, cost=cost)
    blamed = blame(_traced(rows))

    assert adds_up(blamed)
    for spec in specs:
        assert of_request(blamed, spec.id) == _followed(spec.id, rows, seen)


def _followed(request: str, rows: Rows, seen: list[dict[str, Any]]) -> dict[str, int]:
    """The causes of a request's time, told step by step from the engine's own snapshots."""
    events = rows.of("lifecycle", request=request)
    (arrive_ns,) = (row["ts_ns"] for row in events if row["event"] == "arrive")
    (end_ns,) = (row["ts_ns"] for row in events if row["event"] in {"finish", "abort", "reject"})
    spent: Counter[str] = Counter()
    looked_at = min([each["ts_ns"] for each in seen if each["ts_ns"] >= arrive_ns] + [end_ns])
    spent[_under_way(arrive_ns, rows)] = min(looked_at, end_ns) - arrive_ns
    for snapshot in seen:
        lasts = sum(step["dur_ns"] for step in rows.of("steps", step=snapshot["step"]))
        if arrive_ns <= snapshot["ts_ns"] < end_ns:
            spent[_cause(request, snapshot, rows)] += min(lasts, end_ns - snapshot["ts_ns"])
    return {name: ns for name, ns in spent.items() if ns}


def _under_way(arrive_ns: int, rows: Rows) -> str:
    """Who comes during a step waits for it; in a step that runs nobody, nothing is under way."""
    ran = [step for step in rows.tables["steps"] if step["ts_ns"] < arrive_ns]
    return "idle" if ran and ran[-1]["kind"] == "idle" else "step"


def _cause(request: str, snapshot: dict[str, Any], rows: Rows) -> str:
    now, step = snapshot["ts_ns"], snapshot["step"]
    for row in rows.of("batch_rows", request=request, step=step):
        return "recompute" if row["is_recompute"] else str(row["phase"])
    before = [row for row in rows.of("lifecycle", request=request) if row["ts_ns"] <= now]
    if request in snapshot["waiting"] and "preempt" in {row["event"] for row in before}:
        return "preempted"
    if decided := _decided(request, now, rows):
        # Who stands behind the head waits for what that lacks.
        own = _decided(decided["holder"], now, rows) if decided["resource"] == "queue" else None
        return OF_RESOURCE[(own or decided)["resource"]]
    (told,) = rows.of("steps", step=step)
    return "idle" if told["kind"] == "idle" else "unknown"


def _decided(request: str, now: int, rows: Rows) -> dict[str, Any] | None:
    """The last decision about a request since it last moved."""
    moves = {"arrive", "admit", "preempt", "resume"}
    events = [row for row in rows.of("lifecycle", request=request) if row["ts_ns"] <= now]
    since = max(row["ts_ns"] for row in events if row["event"] in moves)
    about = rows.of("decisions", subject_kind="request", subject=request)
    return next((row for row in reversed(about) if since <= row["ts_ns"] <= now), None)


@slow
@given(absurd_rows)
@settings(max_examples=examples(40))
def test_causes_add_up_on_traces_that_no_engine_would_write(rows: Absurd) -> None:
    assert adds_up(blame(trace_from(rows)))


def test_causes_add_up_where_a_step_lasts_beyond_all_times() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 30, "dur_ns": 2**63 - 1, "kind": "prefill"}],
        lifecycle=[event("r", "arrive", 0)],
    )

    assert adds_up(blame(trace))


def test_requests_that_only_batches_name_are_blamed_from_first_to_last_batch() -> None:
    row = {"request": "r", "phase": "decode", "num_tokens": 1}
    trace = trace_of(
        steps=[{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(3)],
        batch_rows=[{**row, "step": 0, "ts_ns": 0}, {**row, "step": 2, "ts_ns": 20}],
    )

    blamed = blame(trace)

    assert of_request(blamed, "r") == {"decode": 20, "unknown": 10}
    assert any("without an arrival" in note for note in blamed.notes)


def test_times_since_1970_are_as_good_as_any() -> None:
    epoch = 1_763_000_000_000_000_000
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": epoch, "dur_ns": 10, "kind": "decode"}],
        batch_rows=[
            {"step": 1, "ts_ns": epoch, "request": "r", "phase": "decode", "num_tokens": 1}
        ],
        lifecycle=[event("r", "arrive", epoch - 5), event("r", "finish", epoch + 10)],
    )

    assert of_request(blame(trace), "r") == {"idle": 5, "decode": 10}


@slow
def test_one_request_alone_is_blamed_as_it_is_among_all() -> None:
    _, rows = serve([RequestSpec(f"r{n}", n, 4, 3) for n in range(4)], config=TIGHT)
    trace = _traced(rows)

    assert of_request(blame(trace, "r2"), "r2") == of_request(blame(trace), "r2")


def test_a_request_that_is_not_there_names_near_ones() -> None:
    with pytest.raises(ConfigError, match="req-01"):
        blame(trace_of(lifecycle=[event("req-01", "arrive", 0)]), "req-1")


def test_a_list_of_arrivals_has_no_latencies() -> None:
    told = blame(trace_of(lifecycle=[event(f"r{n}", "arrive", 100 * n) for n in range(3)]))

    assert told.requests.is_empty()
    assert told.total_ns == 0
    (note,) = told.notes
    assert note.startswith("a list of 3 arrivals: ")


@slow
def test_a_real_list_of_requests_has_no_latencies(shared_data: Path) -> None:
    for path in sorted((shared_data / "requests").iterdir()):
        assert blame(Trace.open(path)).requests.is_empty()


def _traced(rows: Rows) -> Trace:
    tables: dict[str, Any] = rows.tables
    return trace_of(**tables)


TIGHT = EngineConfig(num_kv_blocks=4, block_size=2, max_num_seqs=2, max_num_batched_tokens=16)


def test_a_log_that_names_no_request_is_blamed_as_a_run_until_its_last_known_moment() -> None:
    trace = trace_of(
        steps=[
            {"step": 1, "ts_ns": 0, "dur_ns": 40, "kind": "prefill", "num_prefill_tokens": 8},
            {"step": 2, "ts_ns": 100, "dur_ns": None, "kind": "decode", "num_decode_tokens": 1},
        ],
        lifecycle=[{"ts_ns": 50, "request": None, "event": "preempt"}],
    )

    (row,) = blame(trace).requests.to_dicts()

    assert (row["latency_ns"], row["prefill_ns"], row["idle_ns"]) == (100, 40, 60)
