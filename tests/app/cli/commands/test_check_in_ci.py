"""`stepscope check` in CI: formats for machines, baselines, configuration, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from junitparser import JUnitXml

from stepscope.app.formats import FORMATS
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository to work in, outside GitHub."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


@slow
@looped("form", FORMATS)
def test_the_exit_code_is_the_same_in_every_format(
    stepscope: Command, starved: Path, repaired: Path, form: str
) -> None:
    codes = [
        stepscope("check", starved, "--format", form).code,
        stepscope("check", starved, "--format", form, "--fail-on", "never").code,
        stepscope("check", repaired, "--format", form, "--fail-on", "warning").code,
        stepscope("check", starved, "--format", form, "--select", "?").code,
        stepscope("check", starved / "absent", "--format", form).code,
    ]

    assert codes == [1, 0, 0, 2, 3]


@slow
def test_one_check_writes_several_formats(stepscope: Command, starved: Path, project: Path) -> None:
    run = stepscope("check", starved, "--also", "sarif=a.sarif", "--also", "junit=a.xml")

    assert "STV001 request-starved" in run.out
    assert json.loads((project / "a.sarif").read_text())["version"] == "2.1.0"
    assert JUnitXml.fromfile("a.xml").failures > 0


@looped("wrong", ["sarif", "sarif=", "yaml=a.yaml"])
def test_a_format_without_a_file_is_wrong_usage(
    stepscope: Command, starved: Path, wrong: str
) -> None:
    run = stepscope("check", starved, "--also", wrong)

    assert run.code == 2
    assert "is not FORMAT=FILE" in run.err


@slow
def test_github_gets_annotations_and_its_job_summary(
    stepscope: Command, starved: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = project / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    run = stepscope("check", starved, "--format", "github")

    assert run.out.startswith("::error title=STV001 request-starved")
    assert summary.read_text().startswith("before\n### stepscope\n")


@slow
def test_other_formats_leave_the_job_summary_alone(
    stepscope: Command, starved: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))

    stepscope("check", starved)

    assert not (project / "summary.md").exists()


@slow
def test_what_the_baseline_knows_fails_no_more(stepscope: Command, starved: Path) -> None:
    written = stepscope("check", starved, "--baseline", "known.json", "--update-baseline")
    run = stepscope("check", starved, "--baseline", "known.json", "--fail-on", "warning")

    assert written.code == 0
    assert "known from now on" in written.out
    assert run.code == 0
    assert "nothing found" in run.out
    assert "in the baseline, and left out: " in run.out


@slow
def test_a_baseline_outlives_a_run_in_which_requests_come_at_slightly_other_times(
    stepscope: Command, starved: Path, project: Path
) -> None:
    stepscope("check", starved, "--baseline", "known.json", "--update-baseline")
    again = project / "again.trace"
    stepscope("record", "fcfs-preemption", "--variant", "before", "--seed", 1, "-o", again)

    run = stepscope("check", again, "--baseline", "known.json", "--fail-on", "warning")

    assert stepscope("check", again).code == 1
    assert run.code == 0


@slow
def test_what_the_baseline_does_not_know_fails(stepscope: Command, starved: Path) -> None:
    stepscope("check", starved, "--ignore", "STV001", "--baseline", "k.json", "--update-baseline")

    run = stepscope("check", starved, "--baseline", "k.json", "--format", "json")

    found = json.loads(run.out)
    assert run.code == 1
    assert {finding["code"] for finding in found["findings"]} == {"STV001"}
    assert found["known"] > 0
    assert found["counts"]["KVB003"] == 0


@slow
def test_a_baseline_that_is_not_there_is_wrong_configuration(
    stepscope: Command, starved: Path
) -> None:
    run = stepscope("check", starved, "--baseline", "absent.json")

    assert run.code == 2
    assert "--update-baseline" in run.err


def test_a_baseline_is_updated_only_where_one_is_named(stepscope: Command, starved: Path) -> None:
    assert stepscope("check", starved, "--update-baseline").code == 2


@slow
def test_the_project_decides_what_no_option_does(
    stepscope: Command, starved: Path, project: Path
) -> None:
    (project / "stepscope.toml").write_text('select = ["KVB003"]\nfail-on = "warning"\n')

    assert stepscope("check", starved).code == 1
    assert "STV001" not in stepscope("check", starved).out
    assert stepscope("check", starved, "--fail-on", "error").code == 0
    assert "STV001" in stepscope("check", starved, "--select", "").out


def test_a_threshold_of_the_project_reaches_its_rule(
    stepscope: Command, starved: Path, project: Path
) -> None:
    (project / "pyproject.toml").write_text("[tool.stepscope.rules.STV001]\nlimit = 2\n")

    run = stepscope("check", starved, "--select", "STV001", "--format", "json")

    messages = [finding["message"] for finding in json.loads(run.out)["findings"]]
    assert len(messages) == 3
    assert any("more, not listed one by one" in message for message in messages)


def test_a_wrong_configuration_is_one_line_and_no_finding(
    stepscope: Command, starved: Path, project: Path
) -> None:
    (project / "stepscope.toml").write_text('fail-on = "fatal"\n')

    run = stepscope("check", starved)

    assert run.code == 2
    assert len(run.err.splitlines()) == 1
    assert "stepscope.toml: fail-on" in run.err


def test_the_configuration_is_shown_without_a_trace(stepscope: Command) -> None:
    run = stepscope("check", "--show-config", "--fail-on", "warning", "--select", "cor003")

    assert run.code == 0
    assert 'fail-on = "warning"' in run.out
    assert "[rules.COR003]" in run.out
    assert "[rules.COR001]" not in run.out


def test_a_check_of_nothing_is_wrong_usage(stepscope: Command) -> None:
    assert stepscope("check").code == 2


@slow
def test_any_file_of_a_trace_stands_for_it_and_it_is_checked_once(
    stepscope: Command, starved: Path, project: Path
) -> None:
    shutil.copytree(starved, project / "run.trace")
    files = [path for path in Path("run.trace").rglob("*") if path.is_file()]

    run = stepscope("check", *files, "--format", "json")

    assert len(files) > 2
    assert run.code == 1
    assert json.loads(run.out)["trace"] == "run.trace"
