"""Rules on logs of the core-group runtime, of which the times are mostly an order."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.ingest.trace import Trace
from tests.ingest.log_files import open_log
from tests.ingest.readers.core_runtime.logs import (
    DEADLOCK,
    RING,
    STALLED,
    WHOLE,
    WRONG_CORE,
    timed_out,
)
from tests.looped import looped

LENGTHS = {"COR003", "COR005", "COR006", "COR009"}


def found(result: CheckResult, code: str) -> list[Finding]:
    return [each for each in result.findings if each.code == code]


def loud(result: CheckResult) -> set[str]:
    return {each.code for each in result.findings if each.severity is not Severity.INFO}


def test_rules_that_measure_time_do_not_apply_to_an_order(tmp_path: Path) -> None:
    result = check(open_log(tmp_path, WHOLE))

    assert set(result.not_applicable) >= LENGTHS
    assert loud(result) == set()
    assert result.counts["COR001"] == result.counts["COR002"] == 0


def test_a_mix_pending_behind_its_aic_beside_idle_aivs_is_admitted_in_part(
    tmp_path: Path,
) -> None:
    result = check(open_log(tmp_path, STALLED))

    (partial,) = found(result, "COR001")
    assert partial.message == (
        "kernel 1+2+3 r1 t2 0/1 took AIV0 AIV1 of group 1 while kernel 0 r1 t0 0/1 held AIC"
    )
    assert not {name for name in partial.evidence if name.endswith("_ns")}
    assert loud(result) == {"COR001", "COR010"}


def test_a_stall_names_the_block_that_never_ended(tmp_path: Path) -> None:
    (stalled,) = found(check(open_log(tmp_path, STALLED)), "COR010")

    assert stalled.evidence["class"] == "a block never ended"
    assert stalled.evidence["recorded"] == "S1:running-stalled"
    assert stalled.message.startswith("step 1 stalled with 8 of 9 tasks left")
    assert (stalled.evidence["cores idle"], stalled.evidence["cores"]) == (3, 6)


def test_an_aic_part_on_an_aiv_is_on_a_wrong_core(tmp_path: Path) -> None:
    result = check(open_log(tmp_path, WRONG_CORE))

    (wrong,) = found(result, "COR011")
    assert (wrong.core, wrong.group) == (3, None)
    assert wrong.evidence["meant for"] == "AIC of a group that is not recorded"
    assert wrong.evidence["that core is"] == "AIV1 of group 0"
    (stalled,) = found(result, "COR010")
    assert stalled.evidence["class"] == "a block never ended"


def test_a_ring_that_is_full_by_structure_leaves_a_task_unsubmitted(tmp_path: Path) -> None:
    result = check(open_log(tmp_path, DEADLOCK))

    (stalled,) = found(result, "COR010")
    assert stalled.evidence["class"] == "not submitted"
    assert stalled.evidence["first task"] == "task r1 t3"
    assert stalled.evidence["stall_ns"] == 9_000_000
    assert stalled.evidence["recorded"] == "SCOPE_DEADLOCK"
    assert loud(result) == {"COR010"}


# -- real ones -----------------------------------------------------------------------------------


@looped(
    ("name", "codes", "what"),
    [
        ("livebug_mix_shift_24clusters_1sched", {"COR010", "COR011"}, "a block never ended"),
        ("scope_deadlock_code1", {"COR010"}, "not submitted"),
        ("stall_S1_qwen2l", {"COR001", "COR010"}, "a block never ended"),
    ],
)
def test_a_real_hang_is_told_as_what_it_was(
    shared_data: Path, name: str, codes: set[str], what: str
) -> None:
    result = check(Trace.open(shared_data / "logs" / f"{name}.log"))

    assert loud(result) == codes
    (stalled,) = found(result, "COR010")
    assert stalled.evidence["class"] == what


def test_the_shift_that_wrapped_put_an_aic_part_on_core_25(shared_data: Path) -> None:
    result = check(Trace.open(shared_data / "logs" / "livebug_mix_shift_24clusters_1sched.log"))

    (wrong,) = found(result, "COR011")
    assert (wrong.core, wrong.evidence["that core is"]) == (25, "AIV1 of group 0")
    assert found(result, "COR010")[0].core == 25


def test_all_eight_blocks_of_the_real_stall_were_admitted_in_part(shared_data: Path) -> None:
    """Every line of its MIX says `pending aic` and `idle aiv0`, `idle aiv1`: the first report."""
    result = check(Trace.open(shared_data / "logs" / "stall_S1_qwen2l.log"))

    partial = found(result, "COR001")
    assert [each.evidence["took"] for each in partial] == ["AIV0 AIV1"] * 8
    assert {each.group for each in partial} == set(range(8))


def test_a_real_run_that_ended_is_clean(shared_data: Path) -> None:
    result = check(Trace.open(shared_data / "logs" / "mixed_example_debug_dispatch.log"))

    assert loud(result) == set()
    cores = {rule.code for rule in RULES if rule.code.startswith("COR")}
    assert cores & set(result.not_applicable) == LENGTHS | {
        "COR004", "COR007", "COR008", "COR010", "COR013",
    }  # fmt: skip


def test_the_hosts_line_alone_tells_the_stall_its_task_and_its_core(tmp_path: Path) -> None:
    (stalled,) = found(check(open_log(tmp_path, timed_out())), "COR010")

    assert stalled.message == (
        "step 1 stalled with 4 of 311 tasks left, a block never ended: task r2 t35 on core 26 is "
        "the first; the runtime gave it up (S1:running-stalled), at a time that is not recorded"
    )
    assert (stalled.task, stalled.core) == (2 * RING + 35, 26)
    told = ("class", "tasks over", "tasks", "tasks left", "recorded")
    assert [stalled.evidence[name] for name in told] == [
        "a block never ended", 307, 311, 4, "S1:running-stalled",
    ]  # fmt: skip
    assert "stall_ns" not in stalled.evidence


def test_a_stall_of_which_no_task_is_named_is_of_the_class_that_the_runtime_says(
    tmp_path: Path,
) -> None:
    classes = {
        "S3:ready-but-all-idle": "ready and not dispatched",
        "S4:dependency-deadlock": "waits for others that wait",
        "S5:orchestrator-starvation": "not submitted",
    }
    for sub_class, state in classes.items():
        log = timed_out(sub_class, task=-1, core=-1)
        (stalled,) = found(check(open_log(tmp_path, log)), "COR010")
        assert stalled.evidence["class"] == state
        assert "4 of 311 tasks left" in stalled.message
        assert "the log names none of them" in stalled.message


def test_a_run_that_the_host_says_is_over_did_not_stall(tmp_path: Path) -> None:
    log = timed_out().replace("307/311", "311/311").replace("stuck_task_id=8", "stuck_task_id=-8")
    assert found(check(open_log(tmp_path, log)), "COR010") == []


CODES = "[ERROR] validate_runtime_impl: simpler runtime failed: orch_error_code={} "
CODES += "sched_error_code={} runtime_status=-{}\n"


@looped(("codes", "error"), [
    ((4, 0, 4), "DEP_POOL_OVERFLOW"), ((9, 0, 9), "EXPLICIT_ORCH_FATAL"),
    ((0, 104, 104), "READY_QUEUE_OVERFLOW"), ((77, 0, 77), "error 77"),
])  # fmt: skip
def test_a_failure_that_names_no_task_is_the_verdict_of_the_runtime(
    tmp_path: Path, codes: tuple[int, int, int], error: str
) -> None:
    result = check(open_log(tmp_path, CODES.format(*codes)))

    (died,) = found(result, "STV023")
    assert died.severity is Severity.ERROR
    assert error in died.message
    assert f"orch_error_code={codes[0]}" in died.message


def test_the_failure_of_a_second_run_is_found_and_that_of_a_stall_is_told_once(
    tmp_path: Path,
) -> None:
    result = check(open_log(tmp_path, timed_out() + CODES.format(5, 0, 5)))

    assert loud(result) >= {"COR010", "STV023"}
    (died,) = found(result, "STV023")
    assert "INVALID_ARGS" in died.message
    assert "STV023" not in loud(check(open_log(tmp_path, timed_out())))
