"""`stepscope cache`, and the options that commands which open traces share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.ingest import opening
from tests.app.cli.conftest import Command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opening, "WORTH_BYTES", 0)
    return tmp_path / "cache"


def test_what_is_kept_is_counted_and_cleared(
    stepscope: Command, sample_traces: Path, folder: Path
) -> None:
    stepscope("info", sample_traces / "torch_profiler_cpu.json.gz")
    told = json.loads(stepscope("cache", "--format", "json").out)
    assert told["folder"] == str(folder)
    assert told["entries"] == 1
    assert 0 < told["bytes"] < told["most_bytes"]
    assert told["unusable"] is None
    assert f"{told['bytes']:,} of at most" in stepscope("cache").out

    cleared = stepscope("cache", "clear")

    assert cleared.out == f"dropped 1 entries, {told['bytes']:,} bytes\n"
    assert list(folder.iterdir()) == []


def test_no_cache_keeps_nothing(stepscope: Command, sample_traces: Path, folder: Path) -> None:
    run = stepscope("info", "--no-cache", sample_traces / "torch_profiler_cpu.json.gz")

    assert run.code == 0
    assert not folder.exists()


def test_a_cache_that_cannot_be_used_says_why(stepscope: Command, folder: Path) -> None:
    folder.write_text("a file")

    assert "not used: File exists" in stepscope("cache").out


def test_a_cache_that_is_off_says_so(stepscope: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")

    assert stepscope("cache").out == "nothing is kept: STEPSCOPE_CACHE is off\n"
    assert stepscope("cache", "clear").code == 0


def test_a_wrong_limit_is_wrong_usage(stepscope: Command, sample_traces: Path) -> None:
    run = stepscope("info", "--max", "deep=3", sample_traces / "torch_profiler_cpu.json.gz")

    assert run.code == 2
    assert "no limit is called 'deep'; limits: ratio, " in run.err


@pytest.mark.parametrize(
    "command", ["info", "check", "blame", "diff", "tui", "web", "sql", "convert"]
)
def test_every_command_that_opens_traces_has_the_options(stepscope: Command, command: str) -> None:
    shown = stepscope(command, "--help").out

    assert "--no-cache" in shown
    assert "--max NAME=N" in shown
