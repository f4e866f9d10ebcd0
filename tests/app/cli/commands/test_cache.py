"""`stepscope cache`, and the options that commands which open traces share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.ingest import opening
from tests.app.cli.conftest import Command
from tests.looped import looped


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

    assert cleared.out == f"deleted 1 entries, {told['bytes']:,} bytes\n"
    assert list(folder.iterdir()) == []


def test_no_cache_keeps_nothing(stepscope: Command, sample_traces: Path, folder: Path) -> None:
    run = stepscope("info", "--no-cache", sample_traces / "torch_profiler_cpu.json.gz")

    assert run.code == 0
    assert not folder.exists()


def test_a_cache_that_cannot_be_used_says_why(stepscope: Command, folder: Path) -> None:
    folder.write_text("a file")

    assert "not used: Not a directory" in stepscope("cache").out


def test_a_cache_that_is_off_says_so(stepscope: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")

    assert stepscope("cache").out == "there is no cache: STEPSCOPE_CACHE is off\n"
    assert stepscope("cache", "clear").code == 0


def test_a_wrong_limit_is_wrong_usage(stepscope: Command, sample_traces: Path) -> None:
    run = stepscope("info", "--max", "deep=3", sample_traces / "torch_profiler_cpu.json.gz")

    assert run.code == 2
    assert "no limit is called 'deep'; limits: ratio, " in run.err


@looped("command", ["info", "check", "blame", "diff", "tui", "web", "sql", "convert"])
def test_every_command_that_opens_traces_has_the_options(stepscope: Command, command: str) -> None:
    shown = stepscope(command, "--help").out

    assert "--no-cache" in shown
    assert "--max NAME=N" in shown


def test_a_limit_that_leaves_something_out_is_named_and_what_was_before_is_shown(
    stepscope: Command, sample_traces: Path
) -> None:
    run = stepscope("info", "--max", "events=100", sample_traces / "torch_profiler_cpu.json.gz")

    assert run.code == 0
    assert "more than 100 events (--max events=N raises it)" in run.out


def test_a_limit_that_leaves_nothing_is_an_unreadable_trace(
    stepscope: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('{"traceEvents"' + " " * 5_000_000)

    run = stepscope("check", "--max", "event=1MiB", tmp_path / "a.json")

    assert run.code == 3
    assert run.err.count("\n") == 1
    assert "--max event=N raises it" in run.err
