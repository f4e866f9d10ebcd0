from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.engine.faults import fault
from stepscope.engine.scenario import RunResult
from stepscope.engine.scenarios.fcfs_preemption import FcfsPreemption
from stepscope.engine.workload import Workload, identical
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.fold import state_at
from tests.engine.rows import Rows

SCENARIO = FcfsPreemption()


def run(variant: str, seed: int = 0, **settings: str) -> RunResult:
    return SCENARIO.record(variant, None, asked(settings, seed=seed))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("variant", ["before", "order-only"])
def test_most_requests_are_late_and_turning_the_order_round_does_not_help(
    variant: str, seed: int
) -> None:
    metrics = run(variant, seed).metrics
    assert int(metrics["late"]) >= 24
    assert int(metrics["recomputed_tokens"]) > 10 * 4000


@pytest.mark.parametrize("seed", range(5))
def test_repaired_all_finish_in_time_and_in_cohorts_by_arrival(seed: int) -> None:
    metrics = run("after", seed).metrics
    assert (metrics["late"], metrics["finished"]) == (0, 40)
    sizes, ends_s = _cohorts(str(metrics["cohorts"]))
    assert sizes == [16, 16, 8]
    assert ends_s == sorted(ends_s)


def test_repaired_requests_finish_in_the_order_in_which_they_came() -> None:
    snapshots: list[dict[str, Any]] = []
    SCENARIO.record("after", None, asked(observer=snapshots.append))
    running = [request for snapshot in snapshots for request, _, _ in snapshot["batch"]]
    last_seen = {request: i for i, request in enumerate(running)}
    assert sorted(last_seen, key=lambda request: last_seen[request]) == sorted(last_seen)


def test_it_is_preempting_the_incompatible_that_costs_the_time() -> None:
    assert int(run("after", incompatible="preempt").metrics["late"]) >= 24
    assert run("defer-only").metrics["late"] == 0


def test_deferring_alone_still_lets_the_first_wait_for_the_last() -> None:
    fair, unfair = (_cohorts(str(run(each).metrics["cohorts"])) for each in ("after", "defer-only"))
    assert unfair[1][0] > 1.5 * fair[1][0]


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others() -> None:
    assert run("before", 1) == run("before", 1)
    assert run("before", 1) != run("before", 2)


@pytest.mark.parametrize("variant", SCENARIO.variants)
def test_a_recording_is_small_and_the_same_each_time(tmp_path: Path, variant: str) -> None:
    first, second = (_recorded(tmp_path / name, variant) for name in ("first", "second"))
    assert sum(path.stat().st_size for path in first.rglob("*") if path.is_file()) < 300_000
    for table in BY_NAME:
        told, again = (Trace.open(path).table(table).collect() for path in (first, second))
        assert told.equals(again)


@pytest.mark.parametrize("variant", ["before", "after"])
def test_the_recording_tells_the_state_at_every_step(tmp_path: Path, variant: str) -> None:
    held: list[dict[str, Any]] = []
    SCENARIO.record(variant, tmp_path / "run.trace", asked(observer=held.append))
    rows = Rows.read(Trace.open(tmp_path / "run.trace"))
    assert [state_at(rows, snapshot["step"]) for snapshot in held] == held


def test_a_livelock_leaves_everybody_late_and_not_only_those_who_had_come() -> None:
    metrics = run("after", incompatible="requeue").metrics
    assert (metrics["requests"], metrics["late"]) == (40, 40)


def test_a_recording_holds_what_is_needed_to_run_it_again(tmp_path: Path) -> None:
    result = SCENARIO.record("before", tmp_path / "first.trace")
    manifest = Trace.open(tmp_path / "first.trace").manifest
    assert (manifest.scenario, manifest.variant) == ("fcfs-preemption", "before")
    assert manifest.config["scheduler"]["bucket"] == "shortest"
    assert manifest.config["scheduler"]["mixed"] is False  # a bucket is of prompts or of decodes
    again = Workload.from_dict(manifest.workload or {})
    assert SCENARIO.record("before", None, asked(workload=again)).metrics == result.metrics


def test_a_workload_of_ones_own_is_served_from_a_file(tmp_path: Path) -> None:
    identical(3, 8, 5).save(tmp_path / "w.json")
    result = SCENARIO.record("after", None, asked(workload=tmp_path / "w.json"))
    assert result.metrics["finished"] == 3


def test_deadlines_of_a_workload_of_ones_own_are_kept() -> None:
    workload = identical(3, 8, 500).due(1_000_000_000)
    result = SCENARIO.record("after", None, asked(workload=workload))
    assert result.metrics["late"] == 3
    assert result.metrics["makespan_s"] == pytest.approx(1, rel=0.1)


def test_an_unknown_variant_or_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="try before"):
        run("befor")
    with pytest.raises(ConfigError, match="no setting is called 'buckets'"):
        run("after", buckets="oldest")


def _recorded(path: Path, variant: str) -> Path:
    SCENARIO.record(variant, path)
    return path


def _cohorts(text: str) -> tuple[list[int], list[float]]:
    pairs = [cohort.removesuffix(" s").split(" at ") for cohort in text.split(", ")]
    return [int(size) for size, _ in pairs], [float(end_s) for _, end_s in pairs]


def test_a_victim_popped_in_place_of_the_admitted_one_is_in_no_queue_any_more(
    tmp_path: Path,
) -> None:
    needed = fault("victim-popped-instead-of-admitted").settings
    settings = {**needed, "fault": "victim-popped-instead-of-admitted"}

    result = SCENARIO.record("after", tmp_path / "run.trace", asked(settings))

    rows = Rows.read(Trace.open(tmp_path / "run.trace"))
    (preempted,) = rows.of("lifecycle", event="preempt")
    victim, admitted = preempted["request"], preempted["by_request"]
    assert rows.of("lifecycle", request=victim)[-1]["event"] == "preempt"
    assert len(rows.of("lifecycle", request=admitted, event="admit")) == 2
    assert (result.metrics["finished"], result.metrics["late"]) == (11, 1)
    assert SCENARIO.record("after", None, asked(needed)).metrics["finished"] == 12


def test_an_urgent_request_does_not_wait_for_those_that_came_before_it() -> None:
    needed = fault("victim-popped-instead-of-admitted").settings
    seen: list[dict[str, Any]] = []

    SCENARIO.record("after", None, asked(needed, observer=seen.append))

    running = [request for snapshot in seen for request, _, _ in snapshot["batch"]]
    last_seen = {request: i for i, request in enumerate(running)}
    assert last_seen["req-10"] < last_seen["req-09"]


def test_requests_that_are_given_up_are_dropped_though_the_pool_could_hold_them(
    tmp_path: Path,
) -> None:
    settings = {**fault("one-victim-then-ignored").settings, "fault": "one-victim-then-ignored"}
    SCENARIO.record("after", tmp_path / "run.trace", asked(settings))

    rejected = Rows.read(Trace.open(tmp_path / "run.trace")).of("lifecycle", event="reject")
    assert rejected
    assert {row["cause"] for row in rejected} == {"ignored: too few KV blocks"}
