from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepscope.engine.faults import fault
from stepscope.engine.runs.scenario import RunResult, parse_settings
from stepscope.engine.scenarios.fcfs_preemption import FcfsPreemption
from stepscope.engine.workloads.workload import Workload, identical
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Rows
from tests.engine.state_of_rows import state_at
from tests.tiers import sampled, slow

SCENARIO = FcfsPreemption()


def run(variant: str, settings: Mapping[str, str] | None = None, seed: int = 0) -> RunResult:
    return SCENARIO.record(variant, None, asked(settings or {}, seed=seed))


SEEDS = range(3)
BURSTS = {
    "burst": "16", "gap_ms": "4000", "prompt_len": "64", "num_kv_blocks": "120", "block_size": "32",
}  # fmt: skip
BUCKETED = {"completions": "bucketed"}
SIXTEEN_FIT = {"prompt_len": "512", "block_size": "16", "num_kv_blocks": "624"}


def test_forty_come_at_once_and_the_pool_is_half_of_what_they_need_at_their_end() -> None:
    values = parse_settings(SCENARIO.settings, {})
    needed = -(-(values["prompt_len"] + values["max_tokens"] - 1) // values["block_size"])
    assert (values["requests"], values["burst"], values["gap_ms"]) == (40, 40, 0)
    assert values["num_kv_blocks"] * 2 == 40 * needed


@pytest.mark.parametrize("seed", sampled(SEEDS, [0]))
@pytest.mark.parametrize("variant", ["before", "order-only"])
def test_most_requests_are_late_and_turning_the_order_round_does_not_help(
    variant: str, seed: int
) -> None:
    metrics = run(variant, seed=seed).metrics
    assert int(metrics["late"]) >= 24
    assert int(metrics["recomputed_tokens"]) > 10 * 4000


@slow
@pytest.mark.parametrize("variant", ["before", "order-only"])
def test_where_sixteen_fit_they_are_served_and_the_other_twenty_four_starve(variant: str) -> None:
    metrics = run(variant, SIXTEEN_FIT).metrics
    assert (metrics["late"], metrics["cohorts"]) == (24, "16 at 8.5 s")
    assert run("after", SIXTEEN_FIT).metrics["late"] == 0


@pytest.mark.parametrize("seed", sampled(SEEDS, [0]))
def test_repaired_all_finish_in_time_and_in_cohorts_of_as_many_as_fit(seed: int) -> None:
    metrics = run("after", seed=seed).metrics
    assert (metrics["late"], metrics["finished"]) == (0, 40)
    sizes, ends_s = _cohorts(str(metrics["cohorts"]))
    assert sizes == [20, 10, 10]
    assert ends_s == sorted(ends_s)


def test_bursts_of_sixteen_every_four_seconds_are_an_option() -> None:
    assert int(run("before", BURSTS).metrics["late"]) >= 24
    metrics = run("after", BURSTS).metrics
    assert (metrics["late"], metrics["makespan_s"]) == (0, 13.714)
    assert str(metrics["cohorts"]).startswith("16 at 6.2 s, ")


def test_repaired_requests_finish_in_the_order_in_which_they_came() -> None:
    snapshots: list[dict[str, Any]] = []
    SCENARIO.record("after", None, asked(observer=snapshots.append))
    running = [request for snapshot in snapshots for request, _, _ in snapshot["batch"]]
    last_seen = {request: i for i, request in enumerate(running)}
    assert sorted(last_seen, key=lambda request: last_seen[request]) == sorted(last_seen)


def test_it_is_preempting_the_incompatible_that_costs_the_time() -> None:
    buckets = {**BURSTS, "completions": "bucketed"}
    assert int(run("after", {**buckets, "incompatible": "preempt"}).metrics["late"]) >= 24
    assert run("defer-only", BURSTS).metrics["late"] == 0


@slow
def test_deferring_alone_still_lets_the_first_wait_for_the_last() -> None:
    fair, unfair = (
        _cohorts(str(run(each, BURSTS).metrics["cohorts"])) for each in ("after", "defer-only")
    )
    assert unfair[1][0] > 1.5 * fair[1][0]


# The report's throughput: completions of any length together, against those of one bucket a step.
ACCELERATED = {
    "as it is": ({}, 15.8, 13.98),
    "bursts": (BURSTS, 17.24, 13.71),
    "long prompts": (
        {"prompt_len": "600", "block_size": "16", "num_kv_blocks": "420"}, 49.58, 35.24,
    ),
}  # fmt: skip


@slow
@pytest.mark.parametrize("name", sampled(ACCELERATED, [*ACCELERATED][:1]))
def test_jagged_completions_are_served_sooner_than_those_in_buckets_and_than_by_deferring_alone(
    name: str,
) -> None:
    settings, bucketed_s, jagged_s = ACCELERATED[name]
    bucketed = run("after", {**settings, "completions": "bucketed"}).metrics
    jagged = run("after", settings).metrics
    deferred = run("defer-only", settings).metrics
    assert bucketed["makespan_s"] == pytest.approx(bucketed_s, abs=0.01)
    assert jagged["makespan_s"] == pytest.approx(jagged_s, abs=0.01)
    assert float(jagged["makespan_s"]) < float(deferred["makespan_s"])
    assert jagged["late"] == 0


@slow
@pytest.mark.parametrize("num_kv_blocks", sampled(["560", "624", "780"], ["624"]))
def test_repaired_is_never_slower_than_deferring_alone(num_kv_blocks: str) -> None:
    settings = {**SIXTEEN_FIT, "num_kv_blocks": num_kv_blocks}
    repaired, deferred = (run(each, settings).metrics for each in ("after", "defer-only"))
    for name in ("makespan_s", "mean_latency_s"):
        assert float(repaired[name]) <= float(deferred[name])


def test_repaired_no_completion_is_left_out_of_a_step_of_completions(
    recorded_once: RecordedOnce,
) -> None:
    runs: tuple[dict[str, str], ...] = ({}, {**BURSTS, **BUCKETED})
    left_out = [
        _left_out(recorded_once.trace(SCENARIO.name, "after", asked(settings))) for settings in runs
    ]
    assert [sum(each > 0 for each in steps) for steps in left_out] == [0, 100]


def _left_out(trace: Trace) -> list[int]:
    steps = Rows.read(trace).of("steps", kind="decode")
    return [row["num_running"] - row["num_decode_reqs"] for row in steps]


@slow
@pytest.mark.parametrize("every", sampled([2, 4, 7], [4]))
def test_every_nth_request_has_an_image_and_all_of_them_finish(tmp_path: Path, every: int) -> None:
    told = asked({"images": f"every-{every}"})
    result = SCENARIO.record("after", tmp_path / "run.trace", told)
    manifest = Trace.open(tmp_path / "run.trace").manifest
    modalities = [spec.modality for spec in Workload.from_dict(manifest.workload or {}).specs]
    assert [index for index, each in enumerate(modalities, 1) if each == "image"] == [
        *range(every, 41, every)
    ]
    assert (result.metrics["finished"], result.metrics["late"]) == (40, 0)


def test_images_that_are_not_every_nth_are_refused() -> None:
    for images in ("4", "every-0", "every-", "all", "every--1"):
        with pytest.raises(ConfigError, match="choose none or every-N"):
            run("after", {"images": images})


def test_images_among_text_put_back_on_the_drained_queue_spin_and_nobody_is_served() -> None:
    requeued = run("after", {"images": "every-4", "incompatible": "requeue"}).metrics
    assert (requeued["finished"], requeued["late"]) == (0, 40)
    assert run("after", {"incompatible": "requeue"}).metrics["finished"] == 20


@slow
def test_the_same_seed_gives_the_same_numbers_and_another_seed_others() -> None:
    assert run("after", seed=0) == run("after", seed=0)
    assert run("after", seed=0) != run("after", seed=1)


@slow
@pytest.mark.parametrize("variant", sampled(SCENARIO.variants, ["before"]))
def test_a_recording_is_small_and_the_same_each_time(
    recorded_once: RecordedOnce, tmp_path: Path, variant: str
) -> None:
    first, second = recorded_once.run("fcfs-preemption", variant).path, tmp_path / "second"
    SCENARIO.record(variant, second)
    assert first is not None
    assert sum(path.stat().st_size for path in first.rglob("*") if path.is_file()) < 300_000
    for table in BY_NAME:
        told, again = (Trace.open(path).table(table).collect() for path in (first, second))
        assert told.equals(again)


@slow
@pytest.mark.parametrize("variant", ["before", "after"])
def test_the_recording_tells_the_state_at_every_step(tmp_path: Path, variant: str) -> None:
    held: list[dict[str, Any]] = []
    SCENARIO.record(variant, tmp_path / "run.trace", asked(observer=held.append))
    rows = Rows.read(Trace.open(tmp_path / "run.trace"))
    assert [state_at(rows, snapshot["step"]) for snapshot in held] == held


def test_a_livelock_leaves_everybody_late_and_not_only_those_who_had_come() -> None:
    metrics = run("after", {**BURSTS, **BUCKETED, "incompatible": "requeue"}).metrics
    assert (metrics["requests"], metrics["late"]) == (40, 40)


def test_a_recording_holds_what_is_needed_to_run_it_again(recorded_once: RecordedOnce) -> None:
    result = recorded_once.run(SCENARIO.name, "before")
    manifest = recorded_once.trace(SCENARIO.name, "before").manifest
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
        run("after", {"buckets": "oldest"})


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
    needed = {**fault("victim-popped-instead-of-admitted").settings, **BUCKETED}
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
