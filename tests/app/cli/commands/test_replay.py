from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stepscope.app.cli.main import cli, main
from stepscope.app.replay import launch
from stepscope.ingest.replay.script import Script
from tests.analyzers.replay.small_scheduler import recorded, run_small


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(script: Script, _python: str, out: Path, _report: object) -> dict[str, Any]:
        return run_small(script, out)

    monkeypatch.setattr(launch, "run", run)


@pytest.mark.usefixtures("small")
def test_the_same_decisions_are_said_in_one_line_and_exit_0(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    done = CliRunner().invoke(cli, ["replay", str(trace)])

    assert done.exit_code == 0, done.output
    assert "the same decisions at every step: " in done.output


@pytest.mark.usefixtures("small")
def test_a_divergence_is_said_with_both_sides_costs_and_times_and_exits_4(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    done = CliRunner().invoke(
        cli, ["replay", str(trace), "--set", "max_num_seqs=1", "-o", str(tmp_path / "b.trace")]
    )

    assert done.exit_code == 4, done.output
    assert "with max_num_seqs 1" in done.output
    assert "first divergence: step " in done.output
    assert "percentile" in done.output
    assert "TTFT mean" in done.output
    assert (tmp_path / "b.trace").is_dir()


@pytest.mark.usefixtures("small")
def test_a_program_gets_json(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    done = CliRunner().invoke(cli, ["replay", str(trace), "--format", "json"])

    assert json.loads(done.stdout)["is_same"] is True


def test_an_environment_without_vllm_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")

    code = main(["replay", str(trace), "--python", sys.executable])

    assert code == 2
    told = capsys.readouterr().err
    assert "there is no module 'vllm'" in told
    assert "--python ENV" in told


def test_an_environment_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")

    assert main(["replay", str(trace), "--python", str(tmp_path / "nowhere")]) == 2
    assert "no Python was found" in capsys.readouterr().err


def test_what_ends_without_a_result_is_told_with_its_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho too old >&2\nexit 1\n")
    program.chmod(0o755)

    assert main(["replay", str(trace), "--python", str(program)]) == 2
    assert "too old" in capsys.readouterr().err


def test_an_out_that_exists_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")

    assert main(["replay", str(trace), "-o", str(trace)]) == 2
    assert "it already exists" in capsys.readouterr().err
