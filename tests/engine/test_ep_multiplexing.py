"""The scenario `ep-multiplexing` on virtual time: what each variant shows, and each fault."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest

from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.faults import EP_FAULTS, Fault
from stepscope.engine.scenario import Metric, Options
from stepscope.engine.scenarios.ep_multiplexing import EpMultiplexing
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.rows import Row, Rows

SCENARIO = EpMultiplexing()
HAS_TORCH = find_spec("torch") is not None
SIMULATED, *TORCH = SCENARIO.executors
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from stepscope.app.cli import main
raise SystemExit(main())
"""
SHORT = {"max_tokens": "8"}
STAGGERED = {"max_tokens": "16", "stagger": "4"}


@cache
def served(variant: str, **settings: str) -> dict[str, Metric]:
    return SCENARIO.record(variant, None, asked({**SHORT, **settings})).metrics


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ep")


@cache
def run(folder: Path, variant: str, **settings: str) -> tuple[dict[str, Metric], Rows]:
    path = folder / "-".join((variant, *settings.values(), "trace"))
    result = SCENARIO.record(variant, path, asked({**SHORT, **settings}))
    return result.metrics, Rows.read(Trace.open(path))


def recorded(folder: Path, variant: str, **settings: str) -> Rows:
    return run(folder, variant, **settings)[1]


@pytest.mark.parametrize(
    ("variant", "num_requests"),
    [*product(("before", "after", "v2-device-staging"), (2, 4, 8)),
     ("v2-host-staging", 4), ("v2-grouped-gemm", 4), ("v2-grouped-attention", 4)],
)  # fmt: skip
def test_distinct_prompts_together_each_get_what_they_get_alone(
    variant: str, num_requests: int
) -> None:
    metrics = served(variant, requests=str(num_requests), slots="8", max_tokens="5")

    assert metrics["equal_to_solo"] == f"{num_requests}/{num_requests}"
    assert metrics["decode_rows"] == (1 if variant == "before" else num_requests)


def test_requests_with_prompts_of_their_own_get_answers_of_their_own(folder: Path) -> None:
    first = recorded(folder, "after").of("outputs", position=0)

    assert len({row["digest"] for row in first}) == len(first) == 4


def test_four_queue_up_for_four_slots() -> None:
    metrics = served("after", requests="8")

    assert metrics["equal_to_solo"] == "8/8"
    assert metrics["decode_rows"] == 4


def test_under_v1_the_last_of_four_waits_for_the_other_three_to_end(folder: Path) -> None:
    rows = recorded(folder, "before")

    told = [row["request"] for row in rows.of("lifecycle", event="finish")]
    (last,) = rows.of("lifecycle", event="first-token", request="req-03")
    third = rows.of("lifecycle", event="finish", request="req-02")[0]
    assert told == ["req-00", "req-01", "req-02", "req-03"]
    assert third["ts_ns"] < last["ts_ns"]
    assert max(row["num_running"] for row in rows.of("steps", rank=0)) == 1


def test_under_v2_nobody_waits_for_anybody_to_end(folder: Path) -> None:
    rows = recorded(folder, "after")

    first = [row["ts_ns"] for row in rows.of("lifecycle", event="first-token")]
    ends = [row["ts_ns"] for row in rows.of("lifecycle", event="finish")]
    assert max(first) < min(ends)
    assert served("after")["ttft_max_s"] < served("before")["ttft_max_s"]  # type: ignore[operator]


KEPT = {"fault": "state-not-cleared"}
LONG = {"long_tokens": "600", "max_tokens": "40", "client_timeout_s": "10"}


@pytest.mark.parametrize(
    ("variant", "late", "earliest_s", "latest_s"),
    [("before", 3, 20.2, 23.4), ("after", 0, 6.2, 6.3)],
)
def test_short_requests_behind_a_long_one_wait_for_it_under_v1_alone(
    folder: Path, variant: str, late: int, earliest_s: float, latest_s: float
) -> None:
    metrics, rows = run(folder, variant, **LONG)

    ends_s = {row["request"]: row["ts_ns"] / 1e9 for row in rows.of("lifecycle", event="finish")}
    short_s = [ends_s[f"req-{i:02d}"] for i in (1, 2, 3)]
    assert metrics["late"] == late
    assert min(short_s) == pytest.approx(earliest_s, abs=0.06)
    assert max(short_s) == pytest.approx(latest_s, abs=0.06)
    assert metrics["tail_s"] == round(max(short_s), 3)


def test_without_a_long_one_the_tail_is_of_all_and_nobody_is_late() -> None:
    metrics = served("before")

    assert metrics["tail_s"] == metrics["makespan_s"]
    assert metrics["late"] == 0


def test_where_nobody_finishes_there_is_no_tail() -> None:
    assert "tail_s" not in served("after", slot_tokens="1")


@pytest.mark.parametrize("num_requests", ["2", "4"])
def test_throughput_is_about_the_same_one_by_one_or_together(num_requests: str) -> None:
    one_by_one, together = (
        float(served(variant, requests=num_requests, max_tokens="16")["tokens_per_s"])
        for variant in ("before", "after")
    )

    assert 0.95 < together / one_by_one < 1.2


def test_the_grouped_gemm_takes_about_1_6_times_the_step_of_four_rows() -> None:
    right, wrong = (
        float(served(variant)["decode_step_ms"]) for variant in ("after", "v2-grouped-gemm")
    )

    assert 1.5 < wrong / right < 1.65


def test_a_burst_takes_as_long_as_the_report_measured_with_rows_staged_here_or_there() -> None:
    through_host, on_device = (
        float(served(each, max_tokens="37")["makespan_s"])
        for each in ("v2-host-staging", "v2-device-staging")
    )

    assert on_device == pytest.approx(5.89, rel=0.01)
    assert through_host == pytest.approx(7.01, rel=0.03)
    assert 1.15 < through_host / on_device < 1.19


def test_two_rows_are_faster_fused_than_one_by_one() -> None:
    fused, one_by_one = (
        float(served("after", requests="2", **fault)["decode_step_ms"])
        for fault in ({}, {"fault": "path-never-reached"})
    )

    assert one_by_one / fused == pytest.approx(61 / 52, rel=0.02)


@pytest.mark.parametrize(
    ("num_requests", "variant", "path"),
    [
        ("1", "after", "per-token"),
        ("2", "after", "fused"),
        ("3", "after", "fused"),
        ("4", "after", "per-token"),
        ("4", "v2-grouped-gemm", "grouped-gemm"),
        ("4", "v2-grouped-attention", "per-token + grouped-gemm"),
        ("4", "before", "per-token"),
    ],
)
def test_the_path_of_the_experts_is_chosen_by_width_and_told(
    folder: Path, num_requests: str, variant: str, path: str
) -> None:
    rows = recorded(folder, variant, requests=num_requests)

    for rank in (0, 1):
        decodes = rows.of("steps", rank=rank, kind="decode")
        assert {row["executed_path"] for row in decodes} == {f"decode: {path}"}
    assert {row["executed_path"] for row in rows.of("steps", kind="prefill")} == {
        "prefill: grouped-gemm"
    }


def test_a_path_decides_how_many_all_reduces_a_layer_has(folder: Path) -> None:
    for num_requests, variant, per_layer in (
        ("2", "after", 1),
        ("4", "after", 4),
        ("4", "v2-grouped-gemm", 4),
    ):
        rows = recorded(folder, variant, requests=num_requests)
        (step,) = rows.of("steps", rank=0, step=2)
        reduced = rows.of("collectives", rank=0, step=2, op="all-reduce")
        assert step["kind"] == "decode"
        assert len(reduced) == 2 * per_layer
        assert sum(row["num_elements"] for row in reduced) == 2 * int(num_requests) * 64


def test_a_batched_decode_is_said_in_five_broadcasts(folder: Path) -> None:
    rows = recorded(folder, "after")

    said = rows.of("collectives", rank=1, op="broadcast", command="decode-batch")
    at = said[0]["ordinal"]
    words = [row for row in rows.of("collectives", rank=1) if at - 1 <= row["ordinal"] <= at + 3]
    assert [(row["command"], row["num_elements"]) for row in words] == [
        ("slot", 1), ("decode-batch", 1), ("decode-batch: rows", 1),
        ("decode-batch: slots", 4), ("decode-batch: tokens", 4),
    ]  # fmt: skip


@pytest.mark.parametrize("variant", SCENARIO.variants)
def test_the_ranks_operations_are_the_same_one_by_one(folder: Path, variant: str) -> None:
    rows = recorded(folder, variant)

    head, worker = (_operations(rows, rank) for rank in (0, 1))
    assert head == worker
    assert [row["ordinal"] for row in rows.of("collectives", rank=1)] == list(range(len(worker)))
    assert all(row["dur_ns"] is not None for row in rows.of("collectives"))


def test_a_worker_claims_its_slots_as_the_head_does_generation_by_generation(folder: Path) -> None:
    rows = recorded(folder, "after", requests="8")

    head, worker = (
        {(row["id"], row["generation"]) for row in rows.of("allocations", rank=rank, op="claim")}
        for rank in (0, 1)
    )
    assert head == worker == {(slot, owner) for slot in range(4) for owner in range(2)}
    assert all(row["owner"] == f"slot {row['id']}" for row in rows.of("allocations", rank=1))


@pytest.mark.parametrize("variant", SCENARIO.variants)
def test_whoever_samples_reads_what_was_written_for_it_and_waited_for(
    folder: Path, variant: str
) -> None:
    rows = recorded(folder, variant)

    assert _read_of_others(rows) == []
    assert _unordered(rows) == []
    assert _overlapping_scratch(rows) == []


@pytest.mark.parametrize("executor", [SIMULATED, *(each for each in TORCH if HAS_TORCH)])
def test_one_rank_issues_no_collective(tmp_path: Path, executor: str) -> None:
    options = Options(settings={**SHORT, "ranks": "1"}, executor=executor)
    result = SCENARIO.record("after", tmp_path / "x.trace", options)

    assert result.metrics["collectives"] == 0
    assert result.metrics["equal_to_solo"] == "4/4"
    assert Rows.read(Trace.open(tmp_path / "x.trace")).of("collectives") == []


def test_more_ranks_share_the_experts_and_say_the_same() -> None:
    assert served("after", ranks="4")["equal_to_solo"] == "4/4"


@pytest.mark.parametrize(
    ("variant", "width"), [("before", "4"), ("after", "2"), ("after", "3"), ("after", "4")]
)
def test_guesses_that_are_verified_change_no_token(folder: Path, variant: str, width: str) -> None:
    metrics, rows = run(folder, variant, verify_width=width, max_tokens="16")

    assert metrics["equal_to_solo"] == "4/4"
    kept = rows.of("collectives", rank=0, command=f"verify-{width}: verdict")
    assert rows.of(
        "collectives", rank=1, command=f"verify-{width}: tokens", num_elements=int(width)
    )
    assert len(kept) < 4 * 14


def test_every_rank_says_which_version_it_speaks(folder: Path) -> None:
    for variant, version in (("before", 1.0), ("after", 2.0)):
        told = recorded(folder, variant).of("counters", name="protocol version")
        assert [(row["rank"], row["value"]) for row in told] == [(0, version), (1, version)]


def test_another_codebook_serves_as_well() -> None:
    codebook = "decode-batch=0xFFFFFF10,prefill=0xFFFFFF20,shutdown=0xFFFFFF30"
    assert served("after", codebook=codebook)["equal_to_solo"] == "4/4"


@pytest.mark.parametrize(
    "settings", [{"ranks": "0"}, {"verify_width": "5"}, {"codebook": "prefill=3"}, {"fault": "x"}]
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        SCENARIO.record("after", None, asked(settings))


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.parametrize(
    ("variant", "settings"),
    [
        ("before", {"requests": "3", "ranks": "3"}),
        ("after", {"requests": "6", "stagger": "2"}),
        ("after", {"requests": "2"}),
        ("after", {"verify_width": "4", "max_tokens": "24"}),
        ("v2-host-staging", {}),
        ("v2-device-staging", {}),
        ("v2-grouped-gemm", {}),
        ("after", {"fault": "slot-order-differs"}),
        ("after", {"fault": "compaction-on-one-side", "requests": "6", "stagger": "2"}),
        ("after", {"fault": "v2-head-v1-worker"}),
        ("after", {"fault": "state-not-cleared", "requests": "8"}),
    ],
)
def test_the_simulated_run_has_every_row_of_the_one_with_torch(
    tmp_path: Path, variant: str, settings: dict[str, str]
) -> None:
    came_to = []
    for executor in (SIMULATED, "expert-parallel"):
        path = tmp_path / executor
        options = replace(asked({**SHORT, **settings}), executor=executor)
        metrics = SCENARIO.record(variant, path, options).metrics
        came_to.append((metrics, Rows.read(Trace.open(path)).tables))

    assert came_to[0] == came_to[1]


def test_it_serves_where_there_is_no_torch(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "record", "ep-multiplexing", "-o", "x.trace"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "recorded x.trace\n")
    assert "4/4" in done.stdout


@pytest.mark.parametrize("executor", TORCH)
def test_an_executor_that_needs_torch_says_so_where_there_is_none(
    tmp_path: Path, executor: str
) -> None:
    done = subprocess.run(
        [
            sys.executable, "-c", WITHOUT_TORCH, "record", "ep-multiplexing",
            f"--executor={executor}", "-o", "x.trace",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode != 0
    assert "the model needs PyTorch" in done.stderr
    assert "Traceback" not in done.stderr


def test_costs_of_another_model_are_refused() -> None:
    with pytest.raises(ConfigError, match="takes no costs"):
        SCENARIO.record("after", None, Options(cost=CostModel()))


def test_a_slot_is_freed_when_its_sequence_has_ended_and_allocated_for_the_next(
    folder: Path,
) -> None:
    rows = recorded(folder, "after", requests="5")

    worker = [(row["op"], row["id"], row["generation"]) for row in rows.of("allocations", rank=1)]
    said = [
        (row["command"], row["slot"])
        for row in rows.of("collectives", rank=1)
        if row["command"] in {"free", "allocate"}
    ]
    assert said == [*(("free", slot) for slot in range(4)), ("allocate", 0)]
    assert worker[:4] == [("claim", slot, 0) for slot in range(4)]
    assert worker[4:9] == [*(("release", slot, 0) for slot in range(4)), ("claim", 0, 1)]
    assert worker[9:] == [("release", 0, 1)]


def test_under_v1_a_slot_goes_from_one_to_the_next_by_allocate_alone(folder: Path) -> None:
    said = {row["command"] for row in recorded(folder, "before").of("collectives")}

    assert "allocate" in said
    assert not {"free", "slot"} & said


def test_what_a_worker_still_holds_at_shutdown_it_frees(folder: Path) -> None:
    rows = recorded(folder, "after")

    ops = [row["op"] for row in rows.of("allocations", rank=1)]
    assert ops.count("claim") == ops.count("release") == 4


def test_each_row_reads_and_writes_the_recurrent_state_of_its_own_slot(folder: Path) -> None:
    rows = recorded(folder, "after")

    for rank in (0, 1):
        states = rows.of("accesses", rank=rank, buffer="recurrent-state", step=2 + 3 * rank)
        assert [(row["op"], row["first"]) for row in states] == [
            (op, slot) for slot in range(4) for op in ("read", "write")
        ]
        written: dict[int, int] = {}
        for row in rows.of("accesses", rank=rank, buffer="recurrent-state"):
            if row["op"] == "read":
                assert row["epoch"] == written[row["first"]]
            written[row["first"]] = row["epoch"]


@pytest.mark.parametrize(("settings", "first"), [({}, "write"), (KEPT, "read")])
def test_a_sequence_begins_without_a_state_unless_the_last_one_left_its_own(
    folder: Path, settings: dict[str, str], first: str
) -> None:
    rows = recorded(folder, "after", requests="8", **settings)

    (begun,) = rows.of("steps", rank=0, kind="prefill", step=9)
    states = rows.of("accesses", rank=0, buffer="recurrent-state", step=begun["step"])
    assert next(row["op"] for row in states if row["first"] == 0) == first


@pytest.mark.parametrize(
    ("num_requests", "variant", "recurrent_ms", "attention_ms"),
    [
        ("2", "after", 35, 12),
        ("4", "after", 88, 24),
        ("4", "v2-grouped-gemm", 140, 40),
        ("4", "v2-grouped-attention", 88, 40),
    ],
)
def test_layers_take_what_the_report_measured(
    folder: Path, num_requests: str, variant: str, recurrent_ms: float, attention_ms: float
) -> None:
    rows = recorded(folder, variant, requests=num_requests)

    for kind, ms in (("recurrent", recurrent_ms), ("attention", attention_ms)):
        told = rows.of("counters", name=f"{kind} layers", step=2)
        assert [row["value"] / 1e6 for row in told] == [pytest.approx(ms, abs=0.05)]


@pytest.mark.parametrize(("num_requests", "wins"), [("41", False), ("42", True)])
def test_the_grouped_gemm_wins_where_rows_share_enough_experts(
    num_requests: str, wins: bool
) -> None:
    settings = {"requests": num_requests, "slots": "64", "max_tokens": "2", "prompt_len": "1"}
    one_by_one, grouped = (
        float(served(variant, **settings)["decode_step_ms"])
        for variant in ("after", "v2-grouped-gemm")
    )

    assert (grouped < one_by_one) is wins


def test_a_request_longer_than_a_slot_is_rejected_and_the_others_are_served() -> None:
    metrics = served("after", slot_tokens="26", prompt_len="16")

    assert (metrics["finished"], metrics["outcome"]) == (4, "served")
    assert served("after", slot_tokens="24")["finished"] == 2


# ── faults ───────────────────────────────────────────────────────────────────────────────────


@cache
def of_fault(folder: Path, name: str) -> tuple[dict[str, Metric], Rows]:
    (fault,) = (each for each in EP_FAULTS if each.name == name)
    path = folder / f"{name}.trace"
    result = SCENARIO.record(fault.variant, path, Options(faults=frozenset({name})))
    trace = Trace.open(path)
    assert not trace.manifest.dropped
    return result.metrics, Rows.read(trace)


@cache
def without_fault(path: Path, variant: str, settings: tuple[tuple[str, str], ...]) -> Rows:
    SCENARIO.record(variant, path, Options(settings=dict(settings)))
    return Rows.read(Trace.open(path))


def plain(folder: Path, fault: Fault, name: str = "plain") -> Rows:
    """The run that shows a fault, without it."""
    settings = tuple(fault.settings.items())
    path = folder / "-".join((name, fault.variant, *map("=".join, settings)))
    return without_fault(path, fault.variant, settings)


def test_preambles_up_front_deadlock_at_the_first_operation_that_differs(folder: Path) -> None:
    metrics, rows = of_fault(folder, "preambles-up-front")

    head, worker = (rows.of("collectives", rank=rank) for rank in (0, 1))
    assert _operations(rows, 0)[:-1] == _operations(rows, 1)[:-1]
    assert (head[-1]["op"], head[-1]["command"], head[-1]["slot"]) == ("broadcast", "slot", 2)
    assert (worker[-1]["op"], worker[-1]["command"], worker[-1]["slot"]) == (
        "all-reduce", "decode", 3,
    )  # fmt: skip
    assert head[-1]["dur_ns"] is worker[-1]["dur_ns"] is None
    assert metrics["outcome"] == (
        f"deadlock at operation {head[-1]['ordinal']}: broadcast faces all-reduce"
    )
    causes = {row["cause"] for row in rows.of("lifecycle", event="abort")}
    assert len(causes) == 1
    assert "B(slot 3) B(decode 3) >B(slot 2)<" in str(causes)
    assert "B(slot 3) B(decode 3) >AR(decode 3)<" in str(causes)
    assert rows.of("steps", rank=0)[-1]["executed_path"] == "stalled: decode"


def test_rows_that_stay_in_row_0_are_all_sampled_from_the_last_one_there(folder: Path) -> None:
    metrics, rows = of_fault(folder, "every-row-samples-row-0")

    read = _read_of_others(rows)
    assert metrics["equal_to_solo"] == "1/4"
    assert {(row["buffer"], row["first"]) for row in read} == {("logits", 0)}
    assert {row["segment"] for row in read} == {1, 2, 3}


def test_a_copy_on_a_stream_that_does_not_wait_takes_what_was_there_before(folder: Path) -> None:
    metrics, rows = of_fault(folder, "copy-on-unordered-stream")

    unordered = _unordered(rows)
    assert metrics["equal_to_solo"] == "0/4"
    assert {(row["stream"], row["buffer"], row["op"]) for row in unordered} == {
        ("copy", "logits", "read")
    }


def test_slots_claimed_in_another_order_differ_from_the_heads(folder: Path) -> None:
    metrics, rows = of_fault(folder, "slot-order-differs")

    worker = rows.of("allocations", rank=1, op="claim")
    assert [(row["owner"], row["id"]) for row in worker] == [
        ("slot 3", 0), ("slot 2", 1), ("slot 1", 2), ("slot 0", 3),
    ]  # fmt: skip
    assert (metrics["finished"], metrics["outcome"]) == (4, "served")
    assert metrics["equal_to_solo"] == "0/4"


def test_a_command_for_a_slot_that_nobody_has_ends_the_worker(folder: Path) -> None:
    metrics, rows = of_fault(folder, "slots-not-allocated")

    assert metrics["outcome"] == (
        "rank 1 has left: it refused: prefill for slot 1, which is not allocated"
    )
    assert [row["id"] for row in rows.of("allocations", rank=1)] == [0]
    assert rows.of("collectives", rank=1)[-1]["slot"] == 1
    assert rows.of("collectives", rank=1)[-1]["dur_ns"] is not None
    assert metrics["finished"] == 0


def test_compaction_on_one_side_gives_the_other_side_another_sequences_slot(
    folder: Path,
) -> None:
    metrics, rows = of_fault(folder, "compaction-on-one-side")

    moves = rows.of("allocations", op="move")
    assert [(row["rank"], row["owner"], row["id"]) for row in moves] == [
        (0, "req-03", 0), (0, "req-02", 1), (0, "req-03", 0),
    ][: len(moves)]  # fmt: skip
    assert moves
    assert metrics["finished"] == 4
    assert int(str(metrics["equal_to_solo"])[0]) < 4
    assert served("after", **STAGGERED)["equal_to_solo"] == "4/4"


def test_a_mark_for_no_slot_goes_over_the_wire_as_the_word_shutdown(folder: Path) -> None:
    metrics, rows = of_fault(folder, "sentinel-as-slot")

    assert rows.of("collectives", rank=1)[-2]["slot"] == -1
    assert rows.of("collectives", rank=1)[-2]["command"] == "slot"
    assert str(metrics["outcome"]).startswith(
        "rank 1 has left: it refused: slot 0xffffffff is out of range"
    )
    assert metrics["finished"] == 1


def test_a_v1_head_and_a_v2_worker_do_not_get_past_the_first_command(folder: Path) -> None:
    metrics, rows = of_fault(folder, "v1-head-v2-worker")

    told = rows.of("counters", name="protocol version")
    assert [(row["rank"], row["value"]) for row in told] == [(0, 1.0), (1, 2.0)]
    assert rows.of("collectives", rank=0)[0]["command"] == "prefill"
    assert rows.of("collectives", rank=1)[0]["command"] == "slot"
    assert "slot 0xfffffff0 is out of range" in str(metrics["outcome"])


def test_a_v2_head_and_a_v1_worker_deadlock_at_the_first_command(folder: Path) -> None:
    metrics, rows = of_fault(folder, "v2-head-v1-worker")

    told = rows.of("counters", name="protocol version")
    assert [(row["rank"], row["value"]) for row in told] == [(0, 2.0), (1, 1.0)]
    assert [row["command"] for row in rows.of("collectives", rank=0)] == ["slot", "prefill"]
    assert [row["command"] for row in rows.of("collectives", rank=1)] == ["decode", "decode"]
    assert metrics["outcome"] == "deadlock at operation 1: broadcast faces all-reduce"
    assert metrics["finished"] == 0


def test_a_rank_that_is_alone_and_does_not_ask_dies_of_its_first_broadcast(folder: Path) -> None:
    metrics, rows = of_fault(folder, "collective-at-world-size-1")

    (last,) = rows.of("collectives")
    assert (last["op"], last["expected_ranks"], last["dur_ns"]) == ("broadcast", "0", None)
    assert metrics["outcome"] == "rank 0 died: ep_broadcast_u32 without comm"
    assert metrics["finished"] == 0
    assert {row["cause"] for row in rows.of("lifecycle", event="abort")} == {metrics["outcome"]}


def test_a_recurrent_state_that_stays_in_its_slot_goes_on_in_the_next_sequence(
    folder: Path,
) -> None:
    metrics, rows = of_fault(folder, "state-not-cleared")

    assert [_is_as_alone(rows, f"req-{i:02d}") for i in range(4)] == [True] * 4
    assert int(str(metrics["equal_to_solo"])[0]) < 8
    assert served("after", requests="8")["equal_to_solo"] == "8/8"


def test_a_shared_row_of_scratch_gives_the_experts_the_last_rows_contents(folder: Path) -> None:
    metrics, rows = of_fault(folder, "scratch-shared")

    assert {row["first"] for row in rows.of("accesses", buffer="moe-scratch")} == {0}
    assert _overlapping_scratch(rows)
    assert metrics["equal_to_solo"] == "1/4"


def test_padding_that_stays_after_a_full_accept_changes_later_tokens(folder: Path) -> None:
    metrics, _ = of_fault(folder, "full-accept-not-trimmed")

    assert int(str(metrics["equal_to_solo"])[0]) < 4
    assert metrics["finished"] == 4
    assert (
        served("after", verify_width="4", prompt_len="8", max_tokens="32")["equal_to_solo"] == "4/4"
    )


def test_an_early_return_leaves_the_declared_path_unreached(folder: Path) -> None:
    metrics, rows = of_fault(folder, "path-never-reached")

    manifest = Trace.open(folder / "path-never-reached.trace").manifest
    assert manifest.config["declared_paths"]["decode"] == ["fused", "per-token"]
    assert {row["executed_path"] for row in rows.of("steps", kind="decode")} == {
        "decode: per-token"
    }
    assert metrics["equal_to_solo"] == "2/2"


def test_the_head_waits_for_a_slow_worker_in_the_all_reduces(folder: Path) -> None:
    metrics, rows = of_fault(folder, "slow-worker")

    waited_ns = [
        max(row["dur_ns"] for row in rows.of("collectives", rank=rank, op="all-reduce"))
        for rank in (0, 1)
    ]
    assert waited_ns[0] > 1_000 * waited_ns[1]
    assert metrics["equal_to_solo"] == "4/4"


@pytest.mark.parametrize("fault", EP_FAULTS, ids=lambda fault: fault.name)
def test_every_fault_changes_the_trace(folder: Path, fault: Fault) -> None:
    assert of_fault(folder, fault.name)[1].tables != plain(folder, fault).tables


@pytest.mark.parametrize("name", ["preambles-up-front", "scratch-shared"])
def test_without_a_fault_the_trace_is_the_plain_one(folder: Path, name: str) -> None:
    (fault,) = (each for each in EP_FAULTS if each.name == name)

    assert plain(folder, fault, "again").tables == plain(folder, fault).tables


def _is_as_alone(rows: Rows, request: str) -> bool:
    told = rows.of("outputs", request=request)
    return all(row["digest"] == row["solo_digest"] for row in told)


def _operations(rows: Rows, rank: int) -> list[tuple[object, ...]]:
    names = ("ordinal", "op", "dtype", "num_elements", "command", "slot")
    return [tuple(row[name] for name in names) for row in rows.of("collectives", rank=rank)]


def _read_of_others(rows: Rows) -> list[Row]:
    """Reads of logits whose last write was for another row of the batch."""
    written: dict[tuple[str, int], int] = {}
    others = []
    for row in rows.of("accesses", rank=0):
        key = row["buffer"], row["first"]
        if row["op"] == "write":
            written[key] = row["segment"]
        elif row["op"] == "read" and written[key] != row["segment"]:
            others.append(row)
    return [row for row in others if "logits" in row["buffer"]]


def _unordered(rows: Rows) -> list[Row]:
    """Reads on one stream of a write on another that nothing orders, by vector clocks."""
    clocks: dict[str, dict[str, int]] = {}
    events: dict[str, dict[str, int]] = {}
    written: dict[tuple[str, int], tuple[str, int]] = {}
    unordered = []
    for row in rows.of("accesses", rank=0):
        mine = clocks.setdefault(row["stream"], {})
        mine[row["stream"]] = mine.get(row["stream"], 0) + 1
        key = row["buffer"], row["first"]
        if row["op"] == "record":
            events[row["event"]] = dict(mine)
        elif row["op"] == "wait":
            for stream, count in events[row["event"]].items():
                mine[stream] = max(mine.get(stream, 0), count)
        elif row["op"] == "write":
            written[key] = row["stream"], mine[row["stream"]]
        elif mine.get(written[key][0], 0) < written[key][1]:
            unordered.append(row)
    return unordered


def _overlapping_scratch(rows: Rows) -> list[Row]:
    """Reads of a row of scratch that another sequence wrote last."""
    written: dict[int, int] = {}
    overlapping = []
    for row in rows.of("accesses", buffer="moe-scratch", rank=0):
        if row["op"] == "write":
            written[row["first"]] = row["segment"]
        elif written[row["first"]] != row["segment"]:
            overlapping.append(row)
    return overlapping
