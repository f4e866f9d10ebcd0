"""The scenario `slot-recycling`: the counts of the report, and what its accesses tell."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from stepscope.engine.workloads.workload import Workload, identical
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Row, Rows
from tests.engine.scenarios.slot_runs import (
    LARGE,
    MIB,
    SCENARIO,
    counts,
    ending_at_once,
    read_of_others,
    recorded,
    went_back,
    without_times,
)
from tests.engine.state_of_rows import state_at
from tests.tiers import slow


def test_the_reports_small_run_has_its_counts() -> None:
    assert counts("before") == (26, 6, 3, 3, 2, 82)
    assert counts("after") == (26, 6, 3, 0, 2, 82)


def test_the_reports_large_run_has_its_counts() -> None:
    assert counts("before", **LARGE) == (65, 8, 4, 4, 60, 208)
    assert counts("after", **LARGE) == (65, 8, 4, 0, 60, 208)


def test_each_admission_beside_live_ones_has_a_refresh_and_every_one_a_commit(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "before")

    assert _round_trips(rows, "host-mirror") == {12: 1, 14: 2}
    assert _round_trips(rows, "device-kv") == {1: 3, 12: 1, 14: 2}


def test_those_who_are_let_in_together_can_share_a_round_trip(recorded_once: RecordedOnce) -> None:
    rows = recorded(recorded_once, "before", round_trip="per-step")

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


def test_both_ways_schedule_the_same(recorded_once: RecordedOnce) -> None:
    before, after = (recorded(recorded_once, each) for each in ("before", "after"))

    for table in ("batch_rows", "lifecycle", "allocations", "decisions", "outputs"):
        assert without_times(before.of(table)) == without_times(after.of(table))


def test_masked_rows_are_slots_without_a_row_and_the_counter_counts_them(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "before")

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

    specs = [*identical(1, 8, 1).specs, *Workload.of(ending_at_once()).specs]
    metrics = SCENARIO.record("before", None, asked(workload=Workload(specs))).metrics
    assert (metrics["steps"], metrics["masked_rows"], metrics["tokens"]) == (2, 4, 5)


def test_a_live_slots_epoch_goes_to_the_mirror_and_back(recorded_once: RecordedOnce) -> None:
    rows = recorded(recorded_once, "before")

    live = rows.of("accesses", step=12, first=4 * MIB, last=8 * MIB)
    assert [(row["op"], row["buffer"]) for row in live] == [
        ("read", "device-kv"), ("write", "host-mirror"),
        ("read", "host-mirror"), ("write", "device-kv"),
    ]  # fmt: skip
    assert len({row["epoch"] for row in live}) == 1


def test_an_admitted_slot_is_written_between_refresh_and_commit(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "before")

    admitted = rows.of("accesses", step=12, first=0, last=4 * MIB)
    old, refreshed, written, read, committed = (row["epoch"] for row in admitted)
    assert old == refreshed < written == read == committed
    assert admitted[2]["buffer"] == "host-mirror"


@pytest.mark.parametrize("variant", ["before", "after"])
def test_clean_slots_never_go_back_in_time_and_nobody_reads_another_owner(
    recorded_once: RecordedOnce, variant: str
) -> None:
    rows = recorded(recorded_once, variant)

    assert went_back(rows) == []
    assert read_of_others(rows) == []


def test_a_device_write_touches_the_admitted_slots_region_alone(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "after")

    assert rows.of("accesses", buffer="host-mirror") == []
    admitted = [row["id"] for row in rows.of("allocations", op="claim")]
    prompts = [row for row in rows.of("accesses", op="write") if row["last"] - row["first"] > MIB]
    assert [row["first"] // (4 * MIB) for row in prompts] == admitted


@slow
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


def _round_trips(rows: Rows, buffer: str) -> dict[int, int]:
    """How often, by step, all three slots of a buffer were written from the other one."""
    found: Counter[int] = Counter()
    accesses = rows.of("accesses")
    for one, other in pairwise(accesses):
        is_copy = (one["op"], other["op"]) == ("read", "write") and one["first"] == other["first"]
        found[one["step"]] += is_copy and one["buffer"] != other["buffer"] == buffer
    return {step: copies // 3 for step, copies in found.items() if copies}
