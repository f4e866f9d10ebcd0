from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.engine.device.admission import ADMISSIONS
from stepscope.engine.device.decision_log import DecisionLog
from stepscope.engine.device.lowering.workloads import WORKLOADS
from stepscope.engine.workloads.workload import identical
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Rows
from tests.engine.scenarios.cores_of_rows import core_states
from tests.engine.scenarios.mix_runs import SCENARIO, recorded, run
from tests.engine.state_of_rows import state_at
from tests.tiers import slow

POLICIES = tuple(policy.name for policy in ADMISSIONS)
OTHERS = tuple(each.name for each in WORKLOADS[1:])


HOLDING: list[tuple[str, dict[str, str]]] = [
    ("before", {}),
    ("per-core-slot", {"groups": "5", "workload": "moe-layer"}),
    ("uniform", {"workload": "mix-starvation"}),
    ("reserve-group", {"workload": "qwen3-layer"}),
]


@pytest.fixture(scope="module")
def before(recorded_once: RecordedOnce) -> Trace:
    return recorded_once.trace("mix-admission", "before", asked({"steps": "1"}))


@slow
def test_before_and_after_are_the_reported_policy_and_the_guard() -> None:
    names = {variant: run(variant).metrics["policy"] for variant in ("before", "after")}

    assert names == {"before": "aic-free", "after": "all-free"}
    assert SCENARIO.variants == ("before", "after", *POLICIES)


@slow
def test_the_table_tells_the_policies_apart() -> None:
    rows = {policy: run(policy).metrics for policy in POLICIES}

    split = {policy for policy, row in rows.items() if row["admission_conflicts"]}
    assert split == {"aic-free", "all-idle-or-pending", "per-core-slot"}
    makespan = {policy: float(row["makespan_us"]) for policy, row in rows.items()}
    assert makespan["reserve-group"] > makespan["barrier"] > makespan["all-free"]
    held_us = {policy: float(row["aic_held_us"]) for policy, row in rows.items()}
    assert held_us["aic-free"] > 100
    assert held_us["all-free"] == held_us["barrier"] == held_us["reserve-group"] == 0


@slow
def test_a_setting_overrides_the_policy_of_the_variant() -> None:
    assert run("before", admission="uniform").metrics == run("uniform").metrics


@slow
def test_a_run_that_nobody_records_notes_no_decisions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted: list[object] = []
    monkeypatch.setattr(DecisionLog, "_note", lambda *told: noted.append(told))

    SCENARIO.record("before", None, asked({"steps": "1", "requests": "2"}))
    assert noted == []

    recorded(tmp_path / "run.trace", "before", requests="2")
    assert noted != []


def cannot_run(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    found = []
    for workload, policy in pairs:
        metrics = run(policy, workload=workload, groups="6").metrics
        if not (float(metrics["makespan_us"]) > 0 and 0 < float(metrics["aic_use"]) < 1):
            found.append((workload, policy))
    return found


def test_each_workload_runs_and_each_policy_runs_one() -> None:
    num = max(len(OTHERS), len(POLICIES))

    assert cannot_run(islice(zip(cycle(OTHERS), cycle(POLICIES), strict=False), num)) == []


@slow
@pytest.mark.parametrize("workload", OTHERS)
def test_every_workload_runs_under_every_policy(workload: str) -> None:
    assert cannot_run((workload, policy) for policy in POLICIES) == []


def test_a_setting_that_makes_no_sense_is_refused() -> None:
    settings = (
        {"admission": "all"},
        {"groups": "0"},
        {"steps": "many"},
        {"fault": "x"},
        {"cores": "3"},
    )
    for each in settings:
        with pytest.raises(ConfigError):
            run("before", **each)


def test_an_unknown_variant_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ConfigError, match="all-free"):
        run("all-fre")


def test_an_all_or_nothing_task_wider_than_the_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs 6 MIX at once"):
        run("after", workload="mix-starvation", groups="4")


def test_requests_of_ones_own_are_run_instead() -> None:
    requests = identical(num_requests=2, prompt_len=40, max_tokens=4)
    seen: list[int] = []

    SCENARIO.record(
        "after",
        None,
        asked(
            {"workload": "moe-layer"},
            workload=requests,
            observer=lambda snapshot: seen.append(snapshot["step"]),
        ),
    )

    assert sorted(set(seen)) == [1, 2, 3, 4]


@slow
def test_the_same_seed_gives_the_same_trace_and_another_seed_another(
    before: Trace, tmp_path: Path
) -> None:
    second = recorded(tmp_path / "second", "before")

    for table in BY_NAME:
        assert before.table(table).collect().equals(second.table(table).collect())
    assert run("after", seed=1).metrics != run("after", seed=0).metrics


def test_a_recording_of_default_size_stays_small(recorded_once: RecordedOnce) -> None:
    path = recorded_once.run("mix-admission", "before").path

    assert path is not None
    assert sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) < 350_000


def test_device_tables_lie_within_the_steps_that_they_belong_to(before: Trace) -> None:
    steps = before.steps.select(
        "step", began=pl.col("ts_ns"), ended=pl.col("ts_ns") + pl.col("dur_ns")
    )
    spans = before.core_spans.join(steps, on="step").collect()
    tasks = before.tasks.join(steps, on="step").collect()

    assert spans.height > 4000
    assert spans.filter(
        (pl.col("dispatch_ns") < pl.col("began")) | (pl.col("end_ns") > pl.col("ended"))
    ).is_empty()
    assert tasks.filter(~pl.col("retired_ns").is_between("began", "ended")).is_empty()
    assert tasks["task"].is_unique().all()
    assert set(tasks["outcome"]) == {"run", "skipped"}


def test_no_block_starts_before_the_tasks_on_its_recorded_edges_have_ended(before: Trace) -> None:
    ends = before.core_spans.group_by(from_task="task").agg(ended=pl.col("end_ns").max())
    starts = before.core_spans.group_by(to_task="task").agg(began=pl.col("ts_ns").min())
    kept = before.task_edges.join(ends, on="from_task").join(starts, on="to_task").collect()

    assert kept.height > 500
    assert kept.filter(pl.col("ended") > pl.col("began")).is_empty()


def test_admissions_over_a_busy_core_are_written_down_with_who_held_it(before: Trace) -> None:
    about = pl.col("task") == pl.col("subject").cast(pl.Int64)
    mixes = before.tasks.filter(pl.col("shape") == "MIX").select("task")
    made = (
        before.decisions.filter(pl.col("subject_kind") == "task").join_where(mixes, about).collect()
    )

    assert set(made["verdict"]) == {"admitted", "put-back"}
    assert set(made["resource"]) == {"core-group"}
    over = made.filter((pl.col("verdict") == "admitted") & (pl.col("available") < 3))
    assert over.height > 0
    assert over["holder"].null_count() == over["core"].null_count() == 0
    assert over["reason"].str.contains("AIC free, AIVs not consulted", literal=True).all()


def test_whoever_waits_for_a_single_core_is_told_with_who_has_it_and_is_told_it_seldom(
    before: Trace,
) -> None:
    tasks = before.tasks.collect()
    made = before.decisions.filter(pl.col("subject_kind") == "task").collect()
    made = made.with_columns(pl.col("subject", "holder").cast(pl.Int64))
    single = made.join(tasks.filter(pl.col("shape") != "MIX"), left_on="subject", right_on="task")

    ran = tasks.filter(pl.col("outcome") == "run", pl.col("shape") != "MIX")
    assert set(ran["task"]) == set(single["subject"])
    assert single.height < 3 * ran.height
    deferred = single.filter(pl.col("verdict") == "deferred")
    assert set(deferred["resource"]) == {"core", "queue"}
    assert set(deferred["holder"].drop_nulls()) <= set(tasks["task"])
    assert deferred.filter(pl.col("resource") == "queue")["holder"].null_count() == 0
    assert made.filter(pl.col("core").is_not_null())["holder"].null_count() == 0


@slow
@pytest.mark.parametrize(
    ("variant", "settings"),
    [HOLDING[0], *(pytest.param(*case, marks=slow) for case in HOLDING[1:])],
)
def test_the_recorded_blocks_tell_what_every_core_held_at_every_event(
    tmp_path: Path, variant: str, settings: dict[str, str]
) -> None:
    held: list[tuple[int, str]] = []
    SCENARIO.record(
        variant,
        tmp_path / "run.trace",
        asked(
            {"steps": "1", **settings},
            observer=lambda snapshot: held.append((snapshot["ts_ns"], str(snapshot["cores"]))),
        ),
    )

    spans = Rows.read(Trace.open(tmp_path / "run.trace")).of("core_spans")
    groups = int(settings.get("groups", "8"))
    told = {ts_ns: str(cores) for ts_ns, cores in core_states(spans, 3 * groups)}
    idle = str({core: {"running": None, "pending": None} for core in range(3 * groups)})
    assert len(held) > len(told) > 100
    last = idle
    for ts_ns, cores in held:
        last = told.get(ts_ns, last)
        assert cores == last
    assert told.keys() <= {ts_ns for ts_ns, _ in held} | {spans[-1]["end_ns"]}


@slow
def test_the_rows_tell_the_engines_own_state_at_every_step(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    SCENARIO.record(
        "after",
        tmp_path / "run.trace",
        asked({"workload": "moe-layer", "steps": "3"}, observer=seen.append),
    )

    held = {snapshot["step"]: snapshot for snapshot in reversed(seen)}
    rows = Rows.read(Trace.open(tmp_path / "run.trace"))
    for step, snapshot in held.items():
        for of_device in ("cores", "ready", "threads"):
            del snapshot[of_device]
        assert state_at(rows, step) == snapshot
    assert sorted(held) == [1, 2, 3, 4]
