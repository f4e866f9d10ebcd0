"""`stepscope check`: CI fails on a conflict, and on nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow

KEYS = (
    "code", "name", "severity", "rank", "step", "ts_ns", "end_ns", "request", "task", "core",
    "group", "message", "evidence", "fix",
)  # fmt: skip


@slow
def test_an_error_fails_ci(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", starved)

    assert run.code == 1
    assert "STV001 request-starved" in run.out


@slow
def test_a_clean_trace_passes_even_at_warning(stepscope: Command, repaired: Path) -> None:
    run = stepscope("check", repaired, "--fail-on", "warning")

    assert run.code == 0
    assert "nothing found" in run.out


@slow
def test_never_means_never(stepscope: Command, starved: Path) -> None:
    assert stepscope("check", starved, "--fail-on", "never").code == 0


def test_warnings_fail_only_where_they_are_asked_to(stepscope: Command, starved: Path) -> None:
    at_error = stepscope("check", starved, "--select", "KVB003")
    at_warning = stepscope("check", starved, "--select", "KVB003", "--fail-on", "warning")

    assert (at_error.code, at_warning.code) == (0, 1)


@slow
def test_json_holds_every_key_that_programs_rely_on(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", starved, "--format", "json")

    result = json.loads(run.out)
    assert set(result) == {
        "trace", "unjudged", "unmet", "coverage", "findings", "not_applicable", "counts",
    }  # fmt: skip
    assert all(set(KEYS) <= set(finding) for finding in result["findings"])
    assert result["counts"]["STV001"] == 40


@slow
def test_several_traces_give_a_list(stepscope: Command, starved: Path, repaired: Path) -> None:
    run = stepscope("check", starved, repaired, "--format", "json")

    names = [result["trace"] for result in json.loads(run.out)]
    assert names == [str(starved), str(repaired)]
    assert run.code == 1


@slow
def test_several_traces_are_summed_up_in_text(
    stepscope: Command, starved: Path, repaired: Path
) -> None:
    assert "2 traces: " in stepscope("check", starved, repaired).out.splitlines()[-1]


def test_a_family_is_selected_by_its_letters(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", starved, "--select", "kvb", "--format", "json")

    codes = {finding["code"] for finding in json.loads(run.out)["findings"]}
    assert {code[:3] for code in codes} == {"KVB"}
    assert "KVB003" in codes


def test_what_is_selected_again_is_checked_too(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", starved, "--select", "KVB003", "--select", "STV", "--ignore", "STV002",
                    "--ignore", "STV003", "--format", "json")  # fmt: skip

    codes = set(json.loads(run.out)["counts"])
    assert {"KVB003", "STV001"} < codes
    assert not {"STV002", "STV003", "KVB004"} & codes


def test_what_is_required_again_is_required_too(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", starved, "--require", "COR001", "--require", "KVB003",
                    "--fail-on", "warning", "--select", "COR001,KVB003")  # fmt: skip

    assert run.code == 1
    assert "COR001" in run.out


@slow
def test_an_ignored_rule_says_nothing(stepscope: Command, starved: Path) -> None:
    assert "STV001" not in stepscope("check", starved, "--ignore", "STV001").out


@looped("option", ["--select", "--ignore"])
def test_an_unknown_rule_is_wrong_usage(stepscope: Command, starved: Path, option: str) -> None:
    run = stepscope("check", starved, option, "COR999")

    assert run.code == 2
    assert "COR999" in run.err


@slow
def test_output_goes_to_a_file(stepscope: Command, starved: Path, tmp_path: Path) -> None:
    report = tmp_path / "findings.json"

    run = stepscope("check", starved, "--format", "json", "--output", report)

    assert run.out == ""
    assert json.loads(report.read_text())["trace"] == str(starved)


def test_an_output_that_cannot_be_written_is_wrong_usage(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    run = stepscope("check", starved, "--output", tmp_path / "absent" / "findings.txt")

    assert run.code == 2
    assert len(run.err.splitlines()) == 1


def test_a_real_torch_profiler_trace_is_checked(stepscope: Command, shared_data: Path) -> None:
    run = stepscope("check", shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz")

    assert run.code == 0
    assert "TRC003 inferred" in run.out
    assert "not applicable" in run.out
