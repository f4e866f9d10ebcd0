"""The gate of docs/ci.md on an engine's repository: a commit that starves fails, another seed does
not.
"""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from junitparser import JUnitXml

from tests.app.cli.conftest import Command
from tests.app.cli.gate_story.engine_repository import record, repository_of_two_commits
from tests.looped import looped
from tests.tiers import slow

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
OTHERS = (100, 101)
GATE = ("--fail-on", "new-findings,makespan+5%")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of three seeds at each of the two commits, and of two other seeds at the first."""
    folder = tmp_path_factory.mktemp("gate")
    repository = repository_of_two_commits(folder / "engine")
    record(repository, "main", folder / "main", [*range(3), *OTHERS])
    (folder / "others").mkdir()
    for seed in OTHERS:
        (folder / "main" / f"{seed}.trace").rename(folder / "others" / f"{seed}.trace")
    record(repository, "head", folder / "head", range(3))
    return folder


def test_a_commit_that_starves_somebody_fails_and_the_comment_says_who_when_and_why(
    stepscope: Command, runs: Path
) -> None:
    run = stepscope("diff", runs / "main", runs / "head", *GATE, "--format", "markdown")

    comment = unescape(run.out)
    assert run.code == 1
    assert "### stepscope: 1 of 2 conditions failed" in comment
    seen = next(line for line in comment.splitlines() if "new-findings" in line)
    assert re.search(r"STV002 [\d,]+ times, never in A: step \d+: req-\d+ gave way", seen)
    assert "younger" in seen


@slow
def test_another_seed_alone_fails_nothing(stepscope: Command, runs: Path) -> None:
    check_others(stepscope, runs, runs / "others", len(OTHERS))


@slow
def test_none_of_twenty_other_seeds_fails_anything(
    stepscope: Command, runs: Path, tmp_path: Path
) -> None:
    record(runs / "engine", "main", tmp_path / "others", range(100, 120))
    check_others(stepscope, runs, tmp_path / "others", 20)


def check_others(stepscope: Command, runs: Path, folder: Path, num_seeds: int) -> None:
    """Hold each run of a folder against those of `main`: nothing is new in it."""
    others = sorted(folder.iterdir())
    codes = [
        stepscope("diff", runs / "main", other, "--fail-on", "new-findings").code
        for other in others
    ]
    against = [
        stepscope("check", other, "--fail-on", "warning", "--against", runs / "main").code
        for other in others
    ]

    assert codes == [0] * num_seeds
    assert against == [0] * num_seeds


@slow
def test_check_against_the_runs_before_reports_only_what_is_new(
    stepscope: Command, runs: Path
) -> None:
    head = sorted((runs / "head").iterdir())
    as_it_is = stepscope("check", *head, "--fail-on", "warning", "--against", runs / "head")
    new = stepscope("check", *head, "--fail-on", "warning", "--against", runs / "main")

    assert (as_it_is.code, new.code) == (0, 1)
    assert "as often as before, and left out: " in as_it_is.out
    assert "STV002" not in as_it_is.out.partition("not applicable")[0].partition("judge")[0]
    assert "STV002 fcfs-inversion" in new.out


@slow
def test_the_gate_for_junit_and_for_github_says_the_same(
    stepscope: Command, runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    as_github = stepscope("diff", runs / "main", runs / "head", *GATE, "--format", "github")
    as_junit = stepscope("diff", runs / "main", runs / "head", *GATE, "--format", "junit")
    passed = stepscope("diff", runs / "main", runs / "main", *GATE, "--format", "github")

    assert (as_github.code, as_junit.code, passed.code) == (1, 1, 0)
    assert as_github.out.startswith("::error title=new-findings::3 runs against 3: STV001")
    report = JUnitXml.fromstring(as_junit.out.encode())
    assert (report.tests, report.failures, report.errors) == (2, 1, 0)
    assert passed.out.startswith("::notice title=stepscope::3 runs against 3: nothing fails")
    assert (tmp_path / "summary.md").read_text().count("### stepscope: ") == 2


def test_a_condition_that_nobody_can_judge_is_an_error_in_junit(
    stepscope: Command, runs: Path
) -> None:
    gate = ("--fail-on", "divergence", "--format", "junit")
    run = stepscope("diff", runs / "main", runs / "head", *gate)

    report = JUnitXml.fromstring(run.out.encode())
    assert (run.code, report.failures, report.errors) == (1, 0, 1)


@looped("form", ["github", "junit"])
def test_a_format_of_conditions_without_one_is_wrong_usage(
    stepscope: Command, runs: Path, form: str
) -> None:
    run = stepscope("diff", runs / "main", runs / "head", "--format", form)

    assert run.code == 2
    assert "name one" in run.err
