"""A trace that cannot be read is named, and hides nothing of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from junitparser import JUnitXml

from tests.app.cli.conftest import Command
from tests.tiers import slow

HOSTILE = "\x1b[31m::error::evil\n.trace"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository to work in, outside GitHub, with a file that is no trace."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "broken.json").write_text('{"traceEvents": [')
    return tmp_path


@slow
def test_the_others_are_checked_all_the_same(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", "broken.json", starved, "absent.trace")

    assert run.code == 3
    assert "STV001 request-starved" in run.out
    assert [line.partition(": ")[2][:11] for line in run.err.splitlines()] == [
        "broken.json", "absent.trac",
    ]  # fmt: skip


def test_a_document_for_programs_names_it_too(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", starved, "absent.trace", "--format", "json", "--also",
                    "junit=a.xml", "--also", "sarif=a.sarif", "--also", "github=a.txt")  # fmt: skip

    first, second = json.loads(run.out)
    assert (first["trace"], second["trace"]) == (str(starved), "absent.trace")
    assert "no such file" in second["unread"]
    report = JUnitXml.fromfile("a.xml")
    assert (report.errors, [suite.name for suite in report][1]) == (1, "absent.trace")
    log = json.loads(Path("a.sarif").read_text())["runs"][0]["invocations"][0]
    assert not log["executionSuccessful"]
    assert "absent.trace" in log["toolExecutionNotifications"][0]["message"]["text"]
    assert Path("a.txt").read_text().startswith("::error title=not read::absent.trace: no such")


@slow
def test_a_name_of_a_file_cannot_begin_a_command(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", starved, HOSTILE, "--format", "github")

    assert [line for line in run.out.splitlines() if line.startswith("::error::")] == []
    assert "\x1b" not in run.out + run.err


def test_a_baseline_stays_as_it_is(stepscope: Command, starved: Path, project: Path) -> None:
    run = stepscope("check", starved, "absent.trace", "--baseline", "k.json", "--update-baseline")

    assert run.code == 3
    assert "the baseline stays as it is" in run.err
    assert not (project / "k.json").exists()


def test_where_no_trace_can_be_read_each_is_named(stepscope: Command) -> None:
    run = stepscope("check", "absent.trace", "broken.json")

    assert (run.code, run.out) == (3, "")
    assert all(name in run.err for name in ("absent.trace", "broken.json"))


def test_what_it_is_held_against_has_to_be_read(stepscope: Command, starved: Path) -> None:
    run = stepscope("check", starved, "--against", "absent.trace")

    assert (run.code, run.out) == (3, "")
    assert "absent.trace: no such file" in run.err
