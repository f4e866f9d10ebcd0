"""Each fault of `ep-multiplexing`: what it does to the run that shows it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stepscope.engine.faults import EP_FAULTS, Fault
from stepscope.engine.runs.scenario import Metric, Options
from stepscope.ingest.trace import Trace
from tests.engine.ep_runs import (
    SCENARIO,
    STAGGERED,
    is_as_alone,
    operations,
    overlapping_scratch,
    read_of_others,
    served,
    unordered,
)
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Rows
from tests.tiers import slow


def trace_of(runs: RecordedOnce, name: str) -> Trace:
    (fault,) = (each for each in EP_FAULTS if each.name == name)
    return runs.trace(SCENARIO.name, fault.variant, options_of(name))


def options_of(name: str) -> Options:
    return Options(faults=frozenset({name}))


@cache
def of_fault(runs: RecordedOnce, name: str) -> tuple[dict[str, Metric], Rows]:
    (fault,) = (each for each in EP_FAULTS if each.name == name)
    trace = trace_of(runs, name)
    assert not trace.manifest.dropped
    metrics = runs.run(SCENARIO.name, fault.variant, options_of(name)).metrics
    return metrics, Rows.read(trace)


def plain(runs: RecordedOnce, fault: Fault) -> Rows:
    """The run that shows a fault, without it."""
    options = Options(settings=dict(fault.settings))
    return Rows.read(runs.trace(SCENARIO.name, fault.variant, options))


def test_preambles_up_front_deadlock_at_the_first_operation_that_differs(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "preambles-up-front")

    head, worker = (rows.of("collectives", rank=rank) for rank in (0, 1))
    assert operations(rows, 0)[:-1] == operations(rows, 1)[:-1]
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


def test_rows_that_stay_in_row_0_are_all_sampled_from_the_last_one_there(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "every-row-samples-row-0")

    read = read_of_others(rows)
    assert metrics["equal_to_solo"] == "1/4"
    assert {(row["buffer"], row["first"]) for row in read} == {("logits", 0)}
    assert {row["segment"] for row in read} == {1, 2, 3}


def test_a_copy_on_a_stream_that_does_not_wait_takes_what_was_there_before(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "copy-on-unordered-stream")

    found = unordered(rows)
    assert metrics["equal_to_solo"] == "0/4"
    assert {(row["stream"], row["buffer"], row["op"]) for row in found} == {
        ("copy", "logits", "read")
    }


def test_slots_claimed_in_another_order_differ_from_the_heads(recorded_once: RecordedOnce) -> None:
    metrics, rows = of_fault(recorded_once, "slot-order-differs")

    worker = rows.of("allocations", rank=1, op="claim")
    assert [(row["owner"], row["id"]) for row in worker] == [
        ("slot 3", 0), ("slot 2", 1), ("slot 1", 2), ("slot 0", 3),
    ]  # fmt: skip
    assert (metrics["finished"], metrics["outcome"]) == (4, "served")
    assert metrics["equal_to_solo"] == "0/4"


def test_slots_claimed_in_another_order_are_refused_by_a_worker_that_compares(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "slot-order-refused")

    assert metrics["outcome"] == (
        "rank 1 has left: it refused: the head's slot 3 would be the worker's slot 0"
    )
    (claim,) = rows.of("allocations", rank=1)
    assert (claim["owner"], claim["id"]) == ("slot 3", 0)
    assert metrics["finished"] == 0


def test_a_command_for_a_slot_that_nobody_has_ends_the_worker(recorded_once: RecordedOnce) -> None:
    metrics, rows = of_fault(recorded_once, "slots-not-allocated")

    assert metrics["outcome"] == (
        "rank 1 has left: it refused: prefill for slot 1, which is not allocated"
    )
    assert [row["id"] for row in rows.of("allocations", rank=1)] == [0]
    assert rows.of("collectives", rank=1)[-1]["slot"] == 1
    assert rows.of("collectives", rank=1)[-1]["dur_ns"] is not None
    assert metrics["finished"] == 0


def test_compaction_on_one_side_gives_the_other_side_another_sequences_slot(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "compaction-on-one-side")

    moves = rows.of("allocations", op="move")
    assert [(row["rank"], row["owner"], row["id"]) for row in moves] == [
        (0, "req-03", 0), (0, "req-02", 1), (0, "req-03", 0),
    ][: len(moves)]  # fmt: skip
    assert moves
    assert metrics["finished"] == 4
    assert int(str(metrics["equal_to_solo"])[0]) < 4
    assert served("after", **STAGGERED)["equal_to_solo"] == "4/4"


def test_a_mark_for_no_slot_goes_over_the_wire_as_the_word_shutdown(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "sentinel-as-slot")

    assert rows.of("collectives", rank=1)[-2]["slot"] == -1
    assert rows.of("collectives", rank=1)[-2]["command"] == "slot"
    assert str(metrics["outcome"]).startswith(
        "rank 1 has left: it refused: slot 0xffffffff is out of range"
    )
    assert metrics["finished"] == 1


def test_a_v1_head_and_a_v2_worker_do_not_get_past_the_first_command(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "v1-head-v2-worker")

    told = rows.of("counters", name="protocol version")
    assert [(row["rank"], row["value"]) for row in told] == [(0, 1.0), (1, 2.0)]
    assert rows.of("collectives", rank=0)[0]["command"] == "prefill"
    assert rows.of("collectives", rank=1)[0]["command"] == "slot"
    assert "slot 0xfffffff0 is out of range" in str(metrics["outcome"])


def test_a_v2_head_and_a_v1_worker_deadlock_at_the_first_command(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "v2-head-v1-worker")

    told = rows.of("counters", name="protocol version")
    assert [(row["rank"], row["value"]) for row in told] == [(0, 2.0), (1, 1.0)]
    assert [row["command"] for row in rows.of("collectives", rank=0)] == ["slot", "prefill"]
    assert [row["command"] for row in rows.of("collectives", rank=1)] == ["decode", "decode"]
    assert metrics["outcome"] == "deadlock at operation 1: broadcast faces all-reduce"
    assert metrics["finished"] == 0


def test_a_rank_that_is_alone_and_does_not_ask_dies_of_its_first_broadcast(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "collective-at-world-size-1")

    (last,) = rows.of("collectives")
    assert (last["op"], last["expected_ranks"], last["dur_ns"]) == ("broadcast", "0", None)
    assert metrics["outcome"] == "rank 0 died: ep_broadcast_u32 without comm"
    assert metrics["finished"] == 0
    assert {row["cause"] for row in rows.of("lifecycle", event="abort")} == {metrics["outcome"]}


@slow
def test_a_recurrent_state_that_stays_in_its_slot_goes_on_in_the_next_sequence(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "state-not-cleared")

    assert [is_as_alone(rows, f"req-{i:02d}") for i in range(4)] == [True] * 4
    assert int(str(metrics["equal_to_solo"])[0]) < 8
    assert served("after", requests="8")["equal_to_solo"] == "8/8"


def test_a_shared_row_of_scratch_gives_the_experts_the_last_rows_contents(
    recorded_once: RecordedOnce,
) -> None:
    metrics, rows = of_fault(recorded_once, "scratch-shared")

    assert {row["first"] for row in rows.of("accesses", buffer="moe-scratch")} == {0}
    assert overlapping_scratch(rows)
    assert metrics["equal_to_solo"] == "1/4"


@slow
def test_padding_that_stays_after_a_full_accept_changes_later_tokens(
    recorded_once: RecordedOnce,
) -> None:
    metrics, _ = of_fault(recorded_once, "full-accept-not-trimmed")

    assert int(str(metrics["equal_to_solo"])[0]) < 4
    assert metrics["finished"] == 4
    assert (
        served("after", verify_width="4", prompt_len="8", max_tokens="32")["equal_to_solo"] == "4/4"
    )


def test_an_early_return_leaves_the_declared_path_unreached(recorded_once: RecordedOnce) -> None:
    metrics, rows = of_fault(recorded_once, "path-never-reached")

    manifest = trace_of(recorded_once, "path-never-reached").manifest
    assert manifest.config["declared_paths"]["decode"] == ["fused", "per-token"]
    assert {row["executed_path"] for row in rows.of("steps", kind="decode")} == {
        "decode: per-token"
    }
    assert metrics["equal_to_solo"] == "2/2"


def test_the_head_waits_for_a_slow_worker_in_the_all_reduces(recorded_once: RecordedOnce) -> None:
    metrics, rows = of_fault(recorded_once, "slow-worker")

    waited_ns = [
        max(row["dur_ns"] for row in rows.of("collectives", rank=rank, op="all-reduce"))
        for rank in (0, 1)
    ]
    assert waited_ns[0] > 1_000 * waited_ns[1]
    assert metrics["equal_to_solo"] == "4/4"


@slow
def test_every_fault_changes_the_trace(recorded_once: RecordedOnce) -> None:
    unchanged = [
        fault.name
        for fault in EP_FAULTS
        if of_fault(recorded_once, fault.name)[1].tables == plain(recorded_once, fault).tables
    ]

    assert unchanged == []


@slow
def test_without_a_fault_the_trace_is_the_plain_one(
    recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    (fault,) = (each for each in EP_FAULTS if each.name == "scratch-shared")
    SCENARIO.record(fault.variant, tmp_path / "again", Options(settings=dict(fault.settings)))

    again = Rows.read(Trace.open(tmp_path / "again"))
    assert again.tables == plain(recorded_once, fault).tables
