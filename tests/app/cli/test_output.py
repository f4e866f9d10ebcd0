"""What is there already is overwritten only with --force, by each command that writes a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.cli.output import make_room, refuse_existing
from stepscope.ingest.errors import ConfigError
from tests.app.cli.conftest import Command
from tests.ingest.merging.pairs import profiled, recorded
from tests.looped import looped
from tests.tiers import slow


def commands(folder: Path) -> list[tuple[object, ...]]:
    """Each command that writes a trace where it is told to, but for its `-o`."""
    return [
        ("record", "fcfs-preemption", "--set", "requests=2"),
        ("convert", folder / "run.trace"),
        ("merge", folder / "run.trace", folder / "profile.json"),
        ("listen", "tcp://127.0.0.1:1"),
        ("replay", folder / "run.trace"),
    ]


@slow
@looped("number", range(5))
def test_what_is_there_is_refused_without_force(
    stepscope: Command, tmp_path: Path, number: int
) -> None:
    recorded(tmp_path)
    profiled(tmp_path)
    out = tmp_path / "there.trace"
    out.write_text("a year's work")

    run = stepscope(*commands(tmp_path)[number], "-o", out)

    assert run.code == 2
    assert run.err == f"stepscope: {out}: it already exists; name another, or add --force\n"
    assert out.read_text() == "a year's work"


@slow
@looped("number", [1, 2, 4])
def test_what_is_read_is_not_overwritten_even_with_force(
    stepscope: Command, tmp_path: Path, number: int
) -> None:
    recorded(tmp_path)
    profiled(tmp_path)
    run = tmp_path / "run.trace"

    refused = stepscope(*commands(tmp_path)[number], "-o", run, "--force")

    assert (refused.code, "would overwrite an input" in refused.err) == (2, True)
    assert stepscope("info", run).code == 0


@looped("command", ["convert", "summary", "report"])
def test_nothing_is_written_into_a_trace(stepscope: Command, tmp_path: Path, command: str) -> None:
    recorded(tmp_path)
    run = tmp_path / "run.trace"
    held = sorted(run.rglob("*"))
    ending = {"convert": "json", "summary": "csv", "report": "html"}[command]

    refused = stepscope(command, run, "-o", run / f"out.{ending}")

    assert (refused.code, "it lies in a trace" in refused.err) == (2, True)
    assert sorted(run.rglob("*")) == held


@looped("name", ["out.json", "out.pftrace", "out.trace"])
def test_force_writes_over_what_was_converted_before(
    stepscope: Command, tmp_path: Path, name: str
) -> None:
    recorded(tmp_path)
    command = ("convert", tmp_path / "run.trace", "-o", tmp_path / name)

    codes = [stepscope(*command).code, stepscope(*command).code]

    assert [*codes, stepscope(*command, "--force").code] == [0, 2, 0]


def test_a_folder_that_is_no_trace_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("a year's work")

    for refuse in (refuse_existing, make_room):
        with pytest.raises(ConfigError, match="it is not a trace"):
            refuse(tmp_path, force=True)

    assert (tmp_path / "thesis.txt").exists()


def test_room_is_made_by_removing_a_trace_and_no_file(tmp_path: Path) -> None:
    recorded(tmp_path)
    (tmp_path / "run.json").write_text("{}")

    make_room(tmp_path / "run.trace", force=True)
    with pytest.raises(ConfigError, match="it is not a trace"):
        make_room(tmp_path / "run.json", force=True)

    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]
