"""Slots on both sides of `ep-multiplexing`: claimed, freed, and what a slot remembers."""

from __future__ import annotations

import pytest

from tests.engine.ep_runs import recorded, served
from tests.engine.recorded_once import RecordedOnce
from tests.tiers import slow

KEPT = {"fault": "state-not-cleared"}


@slow
def test_a_worker_claims_its_slots_as_the_head_does_generation_by_generation(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "after", requests="8")

    head, worker = (
        {(row["id"], row["generation"]) for row in rows.of("allocations", rank=rank, op="claim")}
        for rank in (0, 1)
    )
    assert head == worker == {(slot, owner) for slot in range(4) for owner in range(2)}
    assert all(row["owner"] == f"slot {row['id']}" for row in rows.of("allocations", rank=1))


def test_a_slot_is_freed_when_its_sequence_has_ended_and_allocated_for_the_next(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "after", requests="5")

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


def test_a_sequence_whose_prompt_fails_frees_its_slot_for_the_next_which_gets_its_own(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "after", requests="6", failing_prompts="2", max_tokens="4")

    failed = rows.of("lifecycle", event="abort")
    assert [row["request"] for row in failed] == ["req-01", "req-03", "req-05"]
    assert {row["cause"] for row in failed} == {"error: its prompt failed"}
    said = [
        (row["command"], row["slot"])
        for row in rows.of("collectives", rank=1)
        if row["command"] in {"free", "allocate"}
    ]
    assert said[:4] == [("free", 1), ("free", 3), ("allocate", 1), ("allocate", 3)]
    assert {row["request"] for row in rows.of("lifecycle", event="finish")} == {
        "req-00", "req-02", "req-04",
    }  # fmt: skip
    assert (
        served("after", requests="6", failing_prompts="2", max_tokens="4")["equal_to_solo"] == "3/6"
    )


def test_under_v1_a_slot_goes_from_one_to_the_next_by_allocate_alone(
    recorded_once: RecordedOnce,
) -> None:
    said = {row["command"] for row in recorded(recorded_once, "before").of("collectives")}

    assert "allocate" in said
    assert not {"free", "slot"} & said


def test_what_a_worker_still_holds_at_shutdown_it_frees(recorded_once: RecordedOnce) -> None:
    rows = recorded(recorded_once, "after")

    ops = [row["op"] for row in rows.of("allocations", rank=1)]
    assert ops.count("claim") == ops.count("release") == 4


def test_each_row_reads_and_writes_the_recurrent_state_of_its_own_slot(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "after")

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
    recorded_once: RecordedOnce, settings: dict[str, str], first: str
) -> None:
    rows = recorded(recorded_once, "after", requests="8", **settings)

    (begun,) = rows.of("steps", rank=0, kind="prefill", step=9)
    states = rows.of("accesses", rank=0, buffer="recurrent-state", step=begun["step"])
    assert next(row["op"] for row in states if row["first"] == 0) == first
