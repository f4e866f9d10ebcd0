"""`stepscope check` is green only when it looked, and at what is required."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from stepscope.analyzers.check.registry import select
from stepscope.ingest.recorder import Recorder
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow

FORMS = ["text", "json", "sarif", "junit", "github"]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository to work in, outside GitHub."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A recording into which nothing was written."""
    with Recorder(tmp_path / "empty.trace", producer="test"):
        pass
    return tmp_path / "empty.trace"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A profile of something that is not an engine: one slice."""
    file = tmp_path / "foreign.json"
    slices = [{"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]
    file.write_text(json.dumps({"traceEvents": slices}))
    return file


@looped("form", FORMS)
def test_nothing_read_is_exit_code_3_whatever_fails(
    stepscope: Command, empty: Path, form: str
) -> None:
    for more in ((), ("--fail-on", "never"), ("--select", "TRC")):
        assert stepscope("check", empty, "--format", form, *more).code == 3


def test_a_file_in_which_no_event_is_was_not_read(stepscope: Command, project: Path) -> None:
    (project / "none.json").write_text('{"traceEvents": []}')
    (project / "header.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")

    assert stepscope("check", "none.json").code == 3
    assert stepscope("check", "header.csv").code == 3


@slow
@looped("form", FORMS)
def test_what_no_rule_could_judge_does_not_pass(
    stepscope: Command, foreign: Path, form: str
) -> None:
    assert stepscope("check", foreign, "--format", form).code == 3
    assert stepscope("check", foreign, "--format", form, "--fail-on", "never").code == 0


def test_selected_rules_of_which_none_applies_do_not_pass(
    stepscope: Command, repaired: Path
) -> None:
    run = stepscope("check", repaired, "--select", "COR")

    assert run.code == 3
    assert run.out.splitlines()[0] == f"{repaired}: ○ no rule could judge what ran"
    num = len(select(["COR"]))
    assert run.out.splitlines()[1].startswith(f"0 of {num} rules could judge; record ")
    assert "nothing found" not in run.out


def test_text_says_first_that_no_rule_could_judge(stepscope: Command, foreign: Path) -> None:
    first, second, *_ = stepscope("check", foreign).out.splitlines()

    assert first == f"{foreign}: ○ no rule could judge what ran"
    assert "rules could judge (its recording alone); record steps" in second


def test_json_says_first_that_no_rule_could_judge_and_what_each_lacks(
    stepscope: Command, foreign: Path
) -> None:
    said = json.loads(stepscope("check", foreign, "--format", "json").out)

    assert list(said)[:2] == ["trace", "unjudged"]
    assert said["unjudged"] == "no rule could judge what ran"
    assert said["not_applicable"]["COR002"] == ["core_spans"]
    assert said["not_applicable"]["STV006"] == ["lifecycle.request", "steps.dur_ns", "batch_rows"]


def test_sarif_is_no_success_where_no_rule_could_judge(stepscope: Command, foreign: Path) -> None:
    log = json.loads(stepscope("check", foreign, "--format", "sarif").out)

    (invocation,) = log["runs"][0]["invocations"]
    first = invocation["toolExecutionNotifications"][0]
    assert invocation["executionSuccessful"] is False
    assert first["level"] == "error"
    assert first["message"]["text"] == f"{foreign}: no rule could judge what ran"


def test_junit_begins_with_an_error_where_no_rule_could_judge(
    stepscope: Command, foreign: Path
) -> None:
    (suite,) = JUnitXml.fromstring(stepscope("check", foreign, "--format", "junit").out.encode())

    (first, *_) = suite
    assert suite.errors == 1
    assert first.name == "a rule could judge"
    assert first.result[0].message == "no rule could judge what ran"


def test_github_is_told_first_that_no_rule_could_judge(
    stepscope: Command, foreign: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))

    run = stepscope("check", foreign, "--format", "github")

    assert run.out.startswith("::error title=no rule could judge what ran::")
    heading, _, first, *_ = (project / "summary.md").read_text().splitlines()
    assert (heading, "no rule could judge what ran" in first) == ("### stepscope", True)


def test_findings_of_the_recording_do_not_hide_that_no_rule_could_judge(
    stepscope: Command, project: Path
) -> None:
    with Recorder(project / "run.trace", producer="test") as recorder:
        with recorder.span("work"):
            pass
        shutil.copytree(project / "run.trace", torn := project / "torn.trace")

    run = stepscope("check", torn)

    assert run.out.splitlines()[0] == f"{torn}: ○ no rule could judge what ran  ▲ 1 warning"
    assert run.code == 3
    assert stepscope("check", torn, "--fail-on", "warning").code == 1


def test_one_of_several_traces_that_no_rule_could_judge_is_said_and_does_not_pass(
    stepscope: Command, repaired: Path, foreign: Path
) -> None:
    run = stepscope("check", repaired, foreign)

    assert run.code == 3
    assert run.out.splitlines()[-1] == "2 traces: ○ in 1, no rule could judge what ran"


@slow
def test_a_finding_that_fails_comes_before_a_trace_that_no_rule_could_judge(
    stepscope: Command, starved: Path, foreign: Path
) -> None:
    assert stepscope("check", starved, foreign).code == 1


def test_one_of_several_traces_of_which_nothing_was_read_is_as_one_that_cannot_be(
    stepscope: Command, starved: Path, empty: Path
) -> None:
    assert stepscope("check", starved, empty).code == 3


@slow
def test_the_share_of_rules_that_could_judge_is_one_line(
    stepscope: Command, repaired: Path
) -> None:
    run = stepscope("check", repaired)

    assert run.out.splitlines()[0] == f"{repaired}: nothing found"
    assert " rules could judge; record " in run.out.splitlines()[1]


@slow
@looped("form", ["text", "json"])
def test_info_says_the_same_line_as_check(stepscope: Command, repaired: Path, form: str) -> None:
    line = stepscope("check", repaired).out.splitlines()[1]

    assert line in stepscope("info", repaired, "--format", form).out


# ── what is required ─────────────────────────────────────────────────────────────────────────


@slow
def test_a_required_rule_that_could_judge_changes_nothing(
    stepscope: Command, starved: Path, repaired: Path
) -> None:
    assert stepscope("check", repaired, "--require", "STV001,kvb003").code == 0
    assert stepscope("check", starved, "--require", "STV001").code == 1


@slow
@looped("form", FORMS)
def test_a_required_rule_that_is_not_applicable_fails_in_every_format(
    stepscope: Command, repaired: Path, form: str
) -> None:
    run = stepscope("check", repaired, "--require", "COR002", "--format", form)

    assert run.code == 1
    assert "COR002" in run.out
    assert form == "json" or "required, and not applicable: the trace lacks core_spans" in run.out


@slow
def test_a_required_family_is_every_rule_of_it(stepscope: Command, repaired: Path) -> None:
    said = stepscope("check", repaired, "--require", "COR", "--format", "json").out

    assert json.loads(said)["unmet"] == [rule.code for rule in select(["COR"])]


@slow
def test_what_is_required_has_to_judge_each_trace(
    stepscope: Command, repaired: Path, sample_traces: Path
) -> None:
    device = sample_traces / "mix-admission-after.trace"

    assert stepscope("check", device, "--require", "COR002").code == 0
    assert stepscope("check", device, repaired, "--require", "COR002").code == 1


@slow
def test_what_is_required_fails_even_where_no_finding_does(
    stepscope: Command, repaired: Path
) -> None:
    run = stepscope("check", repaired, "--require", "COR002", "--fail-on", "never")

    assert run.code == 1


def test_formats_for_machines_fail_what_is_required(stepscope: Command, repaired: Path) -> None:
    stepscope(
        "check", repaired, "--require", "COR002", "--also", "sarif=a.sarif", "--also", "junit=a.xml"
    )

    invocation = json.loads(Path("a.sarif").read_text())["runs"][0]["invocations"][0]
    failed = [case for suite in JUnitXml.fromfile("a.xml") for case in suite if _failed(case)]
    assert invocation["executionSuccessful"] is False
    assert [case.name for case in failed] == ["COR002 core-double-booked"]


def _failed(case: Any) -> bool:
    return any(type(each).__name__ == "Failure" for each in case.result)


def test_the_project_requires_what_no_option_does(
    stepscope: Command, repaired: Path, project: Path
) -> None:
    (project / "stepscope.toml").write_text('require = ["COR002"]\n')

    assert stepscope("check", repaired).code == 1
    assert stepscope("check", repaired, "--require", "").code == 0
    assert 'require = ["COR002"]' in stepscope("check", "--show-config").out


@looped(
    "options",
    [
        ("--require", "COR999"),
        ("--require", "COR001", "--ignore", "COR"),
        ("--select", "COR", "--ignore", "COR"),
    ],
)
def test_rules_that_cannot_run_are_wrong_usage(
    stepscope: Command, repaired: Path, options: tuple[str, ...]
) -> None:
    run = stepscope("check", repaired, *options)

    assert run.code == 2
    assert len(run.err.splitlines()) == 1


# ── baselines ────────────────────────────────────────────────────────────────────────────────


def test_a_baseline_does_not_make_a_trace_pass_that_no_rule_could_judge(
    stepscope: Command, starved: Path, foreign: Path
) -> None:
    stepscope("check", starved, "--baseline", "known.json", "--update-baseline")

    assert stepscope("check", foreign, "--baseline", "known.json").code == 3


def test_a_baseline_is_not_replaced_by_a_check_that_looked_at_nothing(
    stepscope: Command, starved: Path, foreign: Path, empty: Path
) -> None:
    stepscope("check", starved, "--baseline", "known.json", "--update-baseline")
    before = Path("known.json").read_bytes()

    for blind in (foreign, empty):
        run = stepscope("check", blind, "--baseline", "known.json", "--update-baseline")
        assert run.code == 3
        assert "the baseline stays as it is" in run.err
    assert Path("known.json").read_bytes() == before
