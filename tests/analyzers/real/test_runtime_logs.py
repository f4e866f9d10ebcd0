"""What rules say of real logs of the core-group runtime, against the lines themselves."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from tests.analyzers.conftest import Real

STALLED, WRAPPED, DEADLOCK = (
    "stall_S1_qwen2l", "livebug_mix_shift_24clusters_1sched", "scope_deadlock_code1",
)  # fmt: skip
DISPATCHED = re.compile(
    r"Dispatched (\w+) (aic|aiv0|aiv1) task (\d+) kernel_id=\[([-\d,]+)\] block_idx=(\d+)/.*"
    r"core_id=(\d+)"
)
GIVEN_UP = re.compile(r"TIMEOUT_EXIT .*sub_class=(\S+) completed=(\d+)/(\d+) .*stuck_core=(\d+)")


@pytest.fixture
def text(shared_data: Path, name: str) -> str:
    return (shared_data / "logs" / f"{name}.log").read_text(encoding="utf-8")


@pytest.fixture
def found(real: Real, name: str) -> list[Finding]:
    return [each for each in _checked(real(f"logs/{name}.log")).findings if each.code != "TRC003"]


_checked = cache(check)


def of(found: list[Finding], code: str) -> list[Finding]:
    return [each for each in found if each.code == code]


@pytest.mark.parametrize("name", [STALLED])
def test_cor001_finds_the_blocks_of_which_one_part_is_pending_and_the_others_run(
    text: str, found: list[Finding]
) -> None:
    parts: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for how, core, task, _, block, _ in DISPATCHED.findall(text):
        parts.setdefault((task, block), set()).add((how, core))
    in_part = [each for each in parts.values() if {how for how, _ in each} == {"idle", "pending"}]

    assert len(of(found, "COR001")) == len(in_part) == 8
    assert all(each == {("pending", "aic"), ("idle", "aiv0"), ("idle", "aiv1")} for each in in_part)
    assert {each.evidence["took"] for each in of(found, "COR001")} == {"AIV0 AIV1"}


@pytest.mark.parametrize("name", [STALLED, WRAPPED])
def test_cor010_tells_the_stall_that_the_runtime_gave_up_on(
    text: str, found: list[Finding]
) -> None:
    """The report names some tasks only: how many are left is the watchdog's own count."""
    sub_class, completed, submitted, _ = GIVEN_UP.findall(text)[0]
    runs = re.findall(r"name=chip\.run\.runner_run ts=\d+ dur=(\d+)", text)

    (stalled,) = of(found, "COR010")

    assert stalled.evidence["recorded"] == sub_class
    num_left = int(submitted) - int(completed)
    assert stalled.evidence["tasks left"] == num_left
    assert f"stalled with {num_left} of {submitted} tasks left" in stalled.message
    assert 0 < int(stalled.evidence["stall_ns"] or 0) <= int(runs[0])


@pytest.mark.parametrize("name", [WRAPPED])
def test_cor011_finds_the_aic_part_on_the_core_that_the_report_calls_an_aiv(
    text: str, found: list[Finding]
) -> None:
    (core,) = re.findall(r"cores=\[core=(\d+)\(aic\)\]", text)
    is_called = re.findall(rf"(aic|aiv0|aiv1)=core{core}\(", text)

    (wrong,) = of(found, "COR011")

    assert (str(wrong.core), is_called) == (core, ["aiv1"])
    assert (wrong.evidence["that core is"], wrong.count) == ("AIV1 of group 0", 1)


@pytest.mark.parametrize("name", [DEADLOCK])
def test_cor010_says_nothing_of_cores_in_a_log_that_tells_of_no_block(
    text: str, found: list[Finding]
) -> None:
    """It has three tasks in the scope and one that it refuses; it does not tell what cores do."""
    (in_scope,) = re.findall(r"scope_task_count:\s+(\d+)", text)

    (stalled,) = of(found, "COR010")

    assert not DISPATCHED.findall(text)
    assert stalled.evidence["tasks left"] == int(in_scope) + 1
    assert "cores idle" not in stalled.evidence
    assert stalled.message == (
        "step 1 stalled with at least 4 tasks left, not submitted: task r1 t3 is the first; "
        "it ended 9.2 ms after it began"
    )
