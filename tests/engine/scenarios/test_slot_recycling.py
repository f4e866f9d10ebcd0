"""The scenario `slot-recycling`: the report's counts, what its accesses tell, and each fault."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from stepscope.engine.faults import Fault, faults_of
from stepscope.engine.runs.scenario import Metric
from stepscope.engine.scenarios.slot_recycling import SlotRecycling
from stepscope.engine.workloads.workload import Workload, identical
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.rows import Row, Rows
from tests.engine.state_of_rows import state_at

SCENARIO = SlotRecycling()
LARGE = {"slots": "4", "requests": "8", "max_cap": "48"}
COUNTS = ("steps", "admits", "midstream", "refreshes", "masked_rows", "tokens")
MIB = 1 << 20


def counts(variant: str, **settings: str) -> tuple[Metric, ...]:
    metrics = SCENARIO.record(variant, None, asked(settings)).metrics
    return tuple(metrics[name] for name in COUNTS)


@cache
def recorded(folder: Path, variant: str, **settings: str) -> Rows:
    SCENARIO.record(variant, folder / "run.trace", asked(settings))
    return Rows.read(Trace.open(folder / "run.trace"))


def test_the_reports_small_run_has_its_counts() -> None:
    assert counts("before") == (26, 6, 3, 3, 2, 82)
    assert counts("after") == (26, 6, 3, 0, 2, 82)


def test_the_reports_large_run_has_its_counts() -> None:
    assert counts("before", **LARGE) == (65, 8, 4, 4, 60, 208)
    assert counts("after", **LARGE) == (65, 8, 4, 0, 60, 208)


def test_each_admission_beside_live_ones_has_a_refresh_and_every_one_a_commit(
    tmp_path: Path,
) -> None:
    rows = recorded(tmp_path, "before")

    assert _round_trips(rows, "host-mirror") == {12: 1, 14: 2}
    assert _round_trips(rows, "device-kv") == {1: 3, 12: 1, 14: 2}


def test_those_who_are_let_in_together_can_share_a_round_trip(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before", round_trip="per-step")

    assert _round_trips(rows, "host-mirror") == {12: 1, 14: 1}
    assert _round_trips(rows, "device-kv") == {1: 1, 12: 1, 14: 1}
    assert counts("before", round_trip="per-step") == (26, 6, 3, 2, 2, 82)


@pytest.mark.parametrize(("settings", "slots"), [({}, 3), (LARGE, 4)])
def test_one_request_beside_live_ones_costs_the_whole_mirror_twice_or_its_own_slot(
    settings: dict[str, str], slots: int
) -> None:
    before, after = (
        SCENARIO.record(variant, None, asked(settings)).metrics["max_bytes_per_admit"]
        for variant in ("before", "after")
    )

    assert (before, after) == (2 * slots * 4 * MIB, 4 * MIB)


def test_before_and_after_are_the_two_ways_to_admit() -> None:
    assert SCENARIO.variants == ("before", "after", "host-mirror", "device-write")
    for one, other in (("before", "host-mirror"), ("after", "device-write")):
        assert SCENARIO.record(one, None).metrics == SCENARIO.record(other, None).metrics


def test_both_ways_schedule_the_same(tmp_path: Path) -> None:
    before, after = (recorded(tmp_path / each, each) for each in ("before", "after"))

    for table in ("batch_rows", "lifecycle", "allocations", "decisions", "outputs"):
        assert _without_times(before.of(table)) == _without_times(after.of(table))


def test_masked_rows_are_slots_without_a_row_and_the_counter_counts_them(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before")

    for step in rows.of("steps"):
        (counter,) = rows.of("counters", step=step["step"], name="masked rows")
        live = {row["slot"] for row in rows.of("batch_rows", step=step["step"])}
        assert counter["value"] == len({0, 1, 2} - live)
    assert [row["step"] for row in rows.of("counters", value=1.0)] == [25, 26]


def test_a_row_that_ends_with_its_first_token_is_masked_and_a_step_of_none_decodes_nothing() -> (
    None
):
    requests = identical(2, 8, 1)
    assert SCENARIO.record("before", None, asked(workload=requests)).metrics["masked_rows"] == 0

    specs = [*identical(1, 8, 1).specs, *Workload.of(_ending_at_once()).specs]
    metrics = SCENARIO.record("before", None, asked(workload=Workload(specs))).metrics
    assert (metrics["steps"], metrics["masked_rows"], metrics["tokens"]) == (2, 4, 5)


def test_a_live_slots_epoch_goes_to_the_mirror_and_back(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before")

    live = rows.of("accesses", step=12, first=4 * MIB, last=8 * MIB)
    assert [(row["op"], row["buffer"]) for row in live] == [
        ("read", "device-kv"), ("write", "host-mirror"),
        ("read", "host-mirror"), ("write", "device-kv"),
    ]  # fmt: skip
    assert len({row["epoch"] for row in live}) == 1


def test_an_admitted_slot_is_written_between_refresh_and_commit(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before")

    admitted = rows.of("accesses", step=12, first=0, last=4 * MIB)
    old, refreshed, written, read, committed = (row["epoch"] for row in admitted)
    assert old == refreshed < written == read == committed
    assert admitted[2]["buffer"] == "host-mirror"


@pytest.mark.parametrize("variant", ["before", "after"])
def test_clean_slots_never_go_back_in_time_and_nobody_reads_another_owner(
    tmp_path: Path, variant: str
) -> None:
    rows = recorded(tmp_path, variant)

    assert _went_back(rows) == []
    assert _read_of_others(rows) == []


def test_a_device_write_touches_the_admitted_slots_region_alone(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "after")

    assert rows.of("accesses", buffer="host-mirror") == []
    admitted = [row["id"] for row in rows.of("allocations", op="claim")]
    prompts = [row for row in rows.of("accesses", op="write") if row["last"] - row["first"] > MIB]
    assert [row["first"] // (4 * MIB) for row in prompts] == admitted


@pytest.mark.parametrize("variant", ["before", "after"])
@pytest.mark.parametrize("settings", [{}, LARGE], ids=["small", "large"])
def test_the_rows_tell_the_state_at_every_step_and_the_same_each_time(
    tmp_path: Path, variant: str, settings: dict[str, str]
) -> None:
    held: list[Row] = []
    for name in ("first", "second"):
        held.clear()
        SCENARIO.record(variant, tmp_path / name, asked(settings, observer=held.append))
    first, second = (Trace.open(tmp_path / name) for name in ("first", "second"))
    rows = Rows.read(first)

    told = [state_at(rows, each["step"], has_slots=True, has_blocks=False) for each in held]
    assert told == held
    for table in BY_NAME:
        assert first.table(table).collect().equals(second.table(table).collect())
    assert sum(path.stat().st_size for path in (tmp_path / "first").rglob("*.parquet")) < 300_000


def test_a_recording_holds_what_is_needed_to_run_it_again(tmp_path: Path) -> None:
    settings = {"eos_after": "14"}
    result = SCENARIO.record("before", tmp_path / "run.trace", asked(settings))
    manifest = Trace.open(tmp_path / "run.trace").manifest

    again = Workload.from_dict(manifest.workload or {})
    assert SCENARIO.record("before", None, asked(workload=again)).metrics == result.metrics
    assert (manifest.scenario, manifest.variant) == ("slot-recycling", "before")


@pytest.mark.parametrize("settings", [{"slots": "0"}, {"fault": "x"}, {"slot": "3"}])
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        SCENARIO.record("before", None, asked(settings))


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ConfigError, match="try device-write"):
        SCENARIO.record("device-writes", None)


# ── faults ───────────────────────────────────────────────────────────────────────────────────


def test_without_its_refresh_a_commit_takes_live_slots_back_in_time(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before", fault="skip-mirror-refresh")

    gone_back = _went_back(rows)
    assert [(row["step"], row["first"] // (4 * MIB)) for row in gone_back] == [
        (12, 1), (12, 2), (14, 0),
        (14, 2),  # nobody's any more, and about to be written
    ]  # fmt: skip
    assert counts("before", fault="skip-mirror-refresh") == (26, 6, 3, 0, 2, 82)


def test_a_slot_that_is_not_cleared_is_read_beyond_what_its_owner_wrote(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before", fault="recycle-without-clearing")

    dirty = _read_of_others(rows)
    assert {(row["step"], row["first"] // (4 * MIB)) for row in dirty} == {
        (step, 1) for step in range(14, 27)
    }
    assert _went_back(rows) == []


def test_an_idle_rows_token_is_kept_by_who_had_the_slot_last(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before", fault="masked-row-leak")

    leaked = [
        (row["request"], row["step"], row["position"])
        for row in rows.of("outputs")
        if not rows.of("batch_rows", step=row["step"], request=row["request"])
    ]
    assert leaked == [("req-03", 25, 14), ("req-03", 26, 15)]
    assert len(rows.of("outputs")) == 84


def test_refilling_when_drained_leaves_slots_idle_with_a_queue(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before", fault="refill-when-drained", **LARGE)

    idle = [row for row in rows.of("steps") if row["num_waiting"] and row["num_running"] < 4]
    assert [row["step"] for row in idle] == list(range(12, 34))
    assert counts("before", fault="refill-when-drained", **LARGE) == (71, 8, 0, 0, 84, 208)
    (told,) = {row["reason"] for row in rows.of("decisions", resource="slot")} - {
        "every slot is taken"
    }
    assert told == "slots are filled when all are free"


def test_a_cap_that_is_compared_too_late_gives_a_token_too_many(tmp_path: Path) -> None:
    rows = recorded(tmp_path, "before", fault="token-past-cap")

    caps = {row["request"]: row["max_tokens"] for row in rows.of("lifecycle", event="arrive")}
    for request, cap in caps.items():
        assert len(rows.of("outputs", request=request)) == cap + 1


def test_an_end_that_is_not_looked_for_is_followed_by_tokens(tmp_path: Path) -> None:
    clean, faulty = (
        recorded(tmp_path / fault, "before", eos_after="5", fault=fault)
        for fault in ("none", "token-after-eos")
    )

    for request in ("req-01", "req-03", "req-05"):
        assert [row["token"] for row in clean.of("outputs", request=request)] == [None] * 4 + [2]
        assert [row["token"] for row in faulty.of("outputs", request=request)][4:] == [
            2,
            *[None] * 9,
        ]
    assert {row["cause"] for row in clean.of("lifecycle", event="finish")} == {"eos", None}


def test_a_cap_that_goes_before_the_end_tells_that_the_output_was_cut(tmp_path: Path) -> None:
    clean, faulty = (
        recorded(tmp_path / fault, "before", eos_after="14", fault=fault)
        for fault in ("none", "cap-before-eos")
    )

    ended = [row["request"] for row in clean.of("lifecycle", event="finish", cause="eos")]
    assert sorted(ended) == ["req-01", "req-03", "req-05"]
    assert faulty.of("lifecycle", event="finish", cause="eos") == []
    assert faulty.of("outputs") == clean.of("outputs")


@pytest.mark.parametrize("fault", faults_of("slot-recycling"), ids=lambda fault: fault.name)
def test_every_fault_changes_the_trace_and_nothing_else_does(tmp_path: Path, fault: Fault) -> None:
    plain, same = (recorded(tmp_path / x, fault.variant, **fault.settings) for x in ("a", "b"))
    faulty = recorded(tmp_path / "c", fault.variant, fault=fault.name)

    assert plain.tables == same.tables
    assert faulty.tables != plain.tables


def _ending_at_once() -> Workload:
    return Workload.from_dict(
        {
            "requests": [
                {"id": "x", "arrival_ns": 0, "prompt_len": 8, "max_tokens": 9, "eos_after": 1},
                {"id": "y", "arrival_ns": 0, "prompt_len": 8, "max_tokens": 3},
            ]
        }
    )


def _without_times(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "ts_ns"} for row in rows]


def _round_trips(rows: Rows, buffer: str) -> dict[int, int]:
    """How often, by step, all three slots of a buffer were written from the other one."""
    found: Counter[int] = Counter()
    accesses = rows.of("accesses")
    for one, other in pairwise(accesses):
        is_copy = (one["op"], other["op"]) == ("read", "write") and one["first"] == other["first"]
        found[one["step"]] += is_copy and one["buffer"] != other["buffer"] == buffer
    return {step: copies // 3 for step, copies in found.items() if copies}


def _went_back(rows: Rows) -> list[Row]:
    """Writes to a slot of the device of an older epoch than it had."""
    newest: dict[int, int] = {}
    gone_back = []
    for row in rows.of("accesses", op="write", buffer="device-kv"):
        slot = row["first"] // (4 * MIB)
        if row["epoch"] < newest.get(slot, 0):
            gone_back.append(row)
        newest[slot] = row["epoch"]
    return gone_back


def _read_of_others(rows: Rows) -> list[Row]:
    """Reads of an epoch from before the first write for the slot's owner."""
    claims = {(row["step"], row["id"]) for row in rows.of("allocations", op="claim")}
    owned_since: dict[int, int] = {}
    newest, dirty = 0, []
    for row in rows.of("accesses"):
        slot = row["first"] // (4 * MIB)
        if row["epoch"] > newest:
            newest = row["epoch"]
            if (row["step"], slot) in claims:
                claims.remove((row["step"], slot))
                owned_since[slot] = newest
        elif row["op"] == "read" and row["epoch"] < owned_since.get(slot, 0):
            dirty.append(row)
    return dirty
