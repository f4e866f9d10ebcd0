"""The proof on core groups: each fault of the device fires its rule, each clean variant none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepscope.analyzers.check.registry import select
from stepscope.analyzers.check.run import CheckResult, check
from stepscope.engine.faults import fault
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.tiers import slow

RULES = select(["COR004", "COR007", "COR008", "COR009", "COR01", "TRC002", "TRC004", "TRC005"])
POLICIES = ("uniform", "per-core-slot", "all-idle-or-pending", "barrier", "reserve-group")
Checked = Callable[..., CheckResult]


@pytest.fixture(scope="module")
def checked(recorded_once: RecordedOnce) -> Checked:
    """Records a variant of `mix-admission`, or a fault, and checks it; each once."""
    seen: dict[str, CheckResult] = {}

    def record(variant: str, **settings: str) -> CheckResult:
        key = f"{variant} {settings}"
        if key not in seen:
            trace = recorded_once.trace("mix-admission", variant, asked(settings))
            seen[key] = check(trace, RULES)
        return seen[key]

    return record


def fired(result: CheckResult) -> set[str]:
    return {code for code, count in result.counts.items() if count}


@slow
@looped(
    ("name", "codes"),
    [
        ("left-over-mix-ignored", {"COR004"}),
        ("pop-returns-consumed-slot", {"COR007"}),
        ("sync-start-in-part", {"COR008"}),
        ("lost-ring-advance", {"COR010"}),
        ("deferred-completion-lost", {"COR010"}),
        ("stale-reservation", set()),
    ],
)
def test_a_fault_fires_its_own_rule_and_none_of_the_others(
    checked: Checked, name: str, codes: set[str]
) -> None:
    assert fired(checked(fault(name).variant, fault=name)) == codes


def test_the_shift_that_wraps_puts_blocks_on_wrong_cores_and_stalls(checked: Checked) -> None:
    result = checked("after", fault="mix-shift-wrap")

    assert {"COR010", "COR011"} <= fired(result)
    first = next(each for each in result.findings if each.code == "COR011")
    assert first.message.startswith(
        "AIC of group 22 is core 22, but its blocks ran on core 25, AIV1 of group 0"
    )


@looped(
    ("name", "state"),
    [
        ("lost-ring-advance", "not submitted"),
        ("deferred-completion-lost", "a completion was lost"),
        ("mix-shift-wrap", "a block never ended"),
    ],
)
def test_a_stall_is_named_by_its_class(checked: Checked, name: str, state: str) -> None:
    result = checked("after", fault=name)

    (stalled,) = [each for each in result.findings if each.code == "COR010"]
    assert stalled.evidence["class"] == state


@slow
def test_one_scheduler_thread_for_24_groups_is_dispatch_bound(checked: Checked) -> None:
    assert fired(checked("after", groups="24", threads="1", steps="1")) == {"COR009"}


@slow
@looped("variant", ["before", "after", *POLICIES])
def test_no_admission_policy_does_any_of_this(checked: Checked, variant: str) -> None:
    assert fired(checked(variant)) == set()


@looped("workload", ["paged-attention", "qwen3-layer", "mix-starvation", "mix-flood"])
def test_the_guard_is_clean_on_every_workload(checked: Checked, workload: str) -> None:
    assert fired(checked("after", workload=workload)) == set()


@looped(
    ("name", "variant"),
    [("fcfs-preemption", "before"), ("fcfs-preemption", "after"), ("slot-recycling", "after")],
)
def test_scenarios_without_a_device_have_one_clock_and_honest_labels(
    recorded_once: RecordedOnce, name: str, variant: str
) -> None:
    assert fired(check(recorded_once.trace(name, variant), RULES)) == set()
