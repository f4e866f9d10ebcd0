"""What each fault of slot-recycling does to its trace."""

from __future__ import annotations

from pathlib import Path

from stepscope.engine.faults import faults_of
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Rows
from tests.engine.scenarios.slot_runs import (
    LARGE,
    MIB,
    SCENARIO,
    counts,
    read_of_others,
    recorded,
    went_back,
)


def test_without_its_refresh_a_commit_takes_live_slots_back_in_time(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "before", fault="skip-mirror-refresh")

    gone_back = went_back(rows)
    assert [(row["step"], row["first"] // (4 * MIB)) for row in gone_back] == [
        (12, 1), (12, 2), (14, 0),
        (14, 2),  # nobody's any more, and about to be written
    ]  # fmt: skip
    assert counts("before", fault="skip-mirror-refresh") == (26, 6, 3, 0, 2, 82)


def test_a_slot_that_is_not_cleared_is_read_beyond_what_its_owner_wrote(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "before", fault="recycle-without-clearing")

    dirty = read_of_others(rows)
    assert {(row["step"], row["first"] // (4 * MIB)) for row in dirty} == {
        (step, 1) for step in range(14, 27)
    }
    assert went_back(rows) == []


def test_an_idle_rows_token_is_kept_by_who_had_the_slot_last(recorded_once: RecordedOnce) -> None:
    rows = recorded(recorded_once, "before", fault="masked-row-leak")

    leaked = [
        (row["request"], row["step"], row["position"])
        for row in rows.of("outputs")
        if not rows.of("batch_rows", step=row["step"], request=row["request"])
    ]
    assert leaked == [("req-03", 25, 14), ("req-03", 26, 15)]
    assert len(rows.of("outputs")) == 84


def test_refilling_when_drained_leaves_slots_idle_with_a_queue(recorded_once: RecordedOnce) -> None:
    rows = recorded(recorded_once, "before", fault="refill-when-drained", **LARGE)

    idle = [row for row in rows.of("steps") if row["num_waiting"] and row["num_running"] < 4]
    assert [row["step"] for row in idle] == list(range(12, 34))
    assert counts("before", fault="refill-when-drained", **LARGE) == (71, 8, 0, 0, 84, 208)
    held = rows.of("decisions", resource="slot", verdict="deferred")
    (told,) = {row["reason"] for row in held} - {"every slot is taken"}
    assert told == "slots are filled when all are free"


def test_a_cap_that_is_compared_too_late_gives_a_token_too_many(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "before", fault="token-past-cap")

    caps = {row["request"]: row["max_tokens"] for row in rows.of("lifecycle", event="arrive")}
    for request, cap in caps.items():
        assert len(rows.of("outputs", request=request)) == cap + 1


def test_an_end_that_is_not_looked_for_is_followed_by_tokens(recorded_once: RecordedOnce) -> None:
    clean, faulty = (
        recorded(recorded_once, "before", eos_after="5", fault=fault)
        for fault in ("none", "token-after-eos")
    )

    for request in ("req-01", "req-03", "req-05"):
        assert [row["token"] for row in clean.of("outputs", request=request)] == [None] * 4 + [2]
        assert [row["token"] for row in faulty.of("outputs", request=request)][4:] == [
            2,
            *[None] * 9,
        ]
    assert {row["cause"] for row in clean.of("lifecycle", event="finish")} == {"eos", None}


def test_a_cap_that_goes_before_the_end_tells_that_the_output_was_cut(
    recorded_once: RecordedOnce,
) -> None:
    clean, faulty = (
        recorded(recorded_once, "before", eos_after="14", fault=fault)
        for fault in ("none", "cap-before-eos")
    )

    ended = [row["request"] for row in clean.of("lifecycle", event="finish", cause="eos")]
    assert sorted(ended) == ["req-01", "req-03", "req-05"]
    assert faulty.of("lifecycle", event="finish", cause="eos") == []
    assert faulty.of("outputs") == clean.of("outputs")


def test_every_fault_changes_the_trace(recorded_once: RecordedOnce) -> None:
    unchanged = [
        fault.name
        for fault in faults_of("slot-recycling")
        if recorded(recorded_once, fault.variant, fault=fault.name).tables
        == recorded(recorded_once, fault.variant, **fault.settings).tables
    ]

    assert unchanged == []


def test_without_a_fault_the_trace_is_the_same_again(
    recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    SCENARIO.record("before", tmp_path / "again.trace")

    again = Rows.read(Trace.open(tmp_path / "again.trace"))
    assert again.tables == recorded(recorded_once, "before").tables
