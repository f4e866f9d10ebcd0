"""The proof on the reference engine: each fault fires its rules, each clean variant none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Severity
from stepscope.engine.faults.fcfs import BURSTS
from stepscope.engine.runs.scenario import RunResult
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.tiers import slow

Checked = tuple[RunResult, CheckResult]
CheckVariant = Callable[..., Checked]


@pytest.fixture(scope="module")
def checked(recorded_once: RecordedOnce) -> CheckVariant:
    """Records a variant and checks it; each variant once."""
    seen: dict[tuple[str, ...], Checked] = {}

    def record(name: str, variant: str, **settings: str) -> Checked:
        key = (name, variant, *settings.items().__str__())
        if key not in seen:
            run = recorded_once.run(name, variant, asked(settings))
            seen[key] = run, check(recorded_once.trace(name, variant, asked(settings)))
        return seen[key]

    return record


def loud(result: CheckResult) -> list[str]:
    """What an error or a warning says."""
    return [each.message for each in result.findings if each.severity is not Severity.INFO]


POLICIES = [
    pytest.param("before", True, id="aic-free"),
    pytest.param("all-idle-or-pending", True, id="all-idle-or-pending"),
    pytest.param("per-core-slot", True, id="per-core-slot"),
    pytest.param("after", False, id="all-free"),
    pytest.param("uniform", False, id="uniform"),
    pytest.param("barrier", False, id="barrier"),
    pytest.param("reserve-group", False, id="reserve-group"),
]


@slow
@looped(("variant", "conflicts"), POLICIES)
def test_cor001_finds_every_conflict_that_the_device_saw(
    checked: CheckVariant, variant: str, conflicts: bool
) -> None:
    run, result = checked("mix-admission", variant)

    assert result.counts["COR001"] == run.metrics["admission_conflicts"]
    assert (result.counts["COR001"] > 0) == conflicts


@slow
@looped("workload", ["paged-attention", "qwen3-layer", "mix-flood"])
@looped("variant", ["before", "per-core-slot", "uniform"])
def test_cor001_agrees_with_the_device_on_other_workloads(
    checked: CheckVariant, variant: str, workload: str
) -> None:
    run, result = checked("mix-admission", variant, workload=workload)

    if workload == "paged-attention":  # it has no MIX, so there is nothing to judge
        assert "COR001" in result.not_applicable
        assert run.metrics["admission_conflicts"] == 0
    else:
        assert result.counts["COR001"] == run.metrics["admission_conflicts"]


def test_cor001_names_the_holder_and_why_the_block_was_admitted(
    checked: CheckVariant,
) -> None:
    _, result = checked("mix-admission", "before")

    conflicts = [each for each in result.findings if each.code == "COR001"][:-1]
    assert all(each.evidence["holder"] and each.group is not None for each in conflicts)
    assert sum("admitted because" in each.evidence for each in conflicts) > 40


@looped("variant", ["before", "all-idle-or-pending", "per-core-slot", "uniform"])
def test_cor003_finds_skew_wherever_parts_are_queued(checked: CheckVariant, variant: str) -> None:
    _, result = checked("mix-admission", variant)

    assert result.counts["COR003"] > 0


@looped("variant", ["after", "barrier", "reserve-group"])
def test_cor003_is_silent_where_groups_are_free(checked: CheckVariant, variant: str) -> None:
    _, result = checked("mix-admission", variant)

    assert result.counts["COR003"] == 0


def test_cor002_finds_the_shift_that_wraps_on_the_23rd_group(checked: CheckVariant) -> None:
    wrapped = {"fault": "mix-shift-wrap", "steps": "1", "workload": "mix-flood"}

    _, faulty = checked("mix-admission", "after", **wrapped)

    assert faulty.counts["COR002"] > 0


@slow
def test_cor005_finds_blocks_pending_beside_idle_groups(checked: CheckVariant) -> None:
    _, pending = checked("mix-admission", "per-core-slot", workload="mix-starvation")
    _, clean = checked("mix-admission", "after", workload="mix-starvation")

    assert pending.counts["COR005"] > 0
    assert clean.counts["COR005"] == 0


def test_cor006_finds_what_reserving_groups_costs(checked: CheckVariant) -> None:
    _, result = checked("mix-admission", "reserve-group")

    worst = max(
        (each for each in result.findings if each.code == "COR006"),
        key=lambda each: float(each.evidence["idle_share"] or 0),
    )
    assert worst.message.startswith("AIV cores stood idle")


@slow
@looped("workload", ["moe-interleaved", "paged-attention", "qwen3-layer", "mix-starvation"])
def test_the_guard_is_clean_under_every_rule(checked: CheckVariant, workload: str) -> None:
    _, result = checked("mix-admission", "after", workload=workload)

    assert loud(result) == []


BUCKETS = {**BURSTS, "completions": "bucketed"}


@slow
def test_the_repaired_scheduler_is_clean_under_every_rule(checked: CheckVariant) -> None:
    run, result = checked("fcfs-preemption", "after")

    assert run.metrics["late"] == 0
    assert loud(result) == []


@looped("variant", ["before", "order-only"])
def test_the_reported_scheduler_fires_every_rule_about_it(
    checked: CheckVariant, variant: str
) -> None:
    sixteen_fit = {"prompt_len": "512", "block_size": "16", "num_kv_blocks": "624"}
    run, result = checked("fcfs-preemption", variant, **sixteen_fit)

    assert result.counts["STV001"] == run.metrics["late"] == 24
    assert result.counts["KVB003"] > 0.9 * int(run.metrics["preempted"])
    assert result.counts["STV002"] > 0


@slow
@looped("variant", ["before", "order-only"])
def test_stv001_names_each_of_the_forty_though_most_are_computed_again_and_again(
    checked: CheckVariant, variant: str
) -> None:
    run, result = checked("fcfs-preemption", variant)

    assert result.counts["STV001"] == run.metrics["late"] == 40


@slow
def test_deferring_alone_starves_the_bucket_of_the_oldest_and_leaves_decodes_out(
    checked: CheckVariant,
) -> None:
    run, result = checked("fcfs-preemption", "defer-only")

    assert run.metrics["late"] == result.counts["STV001"] == 0
    assert result.counts["STV003"] > 0
    assert result.counts["STV018"] > 0


@slow
@looped(
    ("knob", "fault", "fired"),
    [
        ("bucket", "shortest", {"STV003"}),
        ("order", "newest-first", {"STV002"}),
        ("incompatible", "preempt", {"KVB003"}),
    ],
)
def test_a_single_fault_fires_its_own_rule(
    checked: CheckVariant, knob: str, fault: str, fired: set[str]
) -> None:
    _, result = checked("fcfs-preemption", "after", **{**BUCKETS, knob: fault})

    assert fired <= {code for code, count in result.counts.items() if count}


@slow
def test_stv001_finds_that_everybody_starves_where_nobody_finishes(checked: CheckVariant) -> None:
    settings = {**BUCKETS, "incompatible": "preempt", "burst": "4", "gap_ms": "500"}

    run, result = checked("fcfs-preemption", "after", **settings)

    assert (run.metrics["late"], run.metrics["finished"]) == (40, 0)
    assert result.counts["STV001"] == 40
