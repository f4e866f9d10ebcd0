"""Start-up, help and failures of the `stepscope` command."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import click
import pytest

from stepscope.app.cli import commands
from stepscope.app.cli import main as entry
from stepscope.app.cli.main import COMMANDS, cli
from stepscope.app.tui.pages import PAGES
from stepscope.app.web.panes import PANES
from tests.app.cli.conftest import Command
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow


def test_every_command_that_help_lists_can_be_imported_and_has_help(stepscope: Command) -> None:
    for name in COMMANDS:
        run = stepscope(name, "--help")

        assert run.code == 0
        assert "Usage: stepscope" in run.out


def test_help_lists_every_command_with_what_it_does(stepscope: Command) -> None:
    run = stepscope("--help")

    assert all(name in run.out for name in COMMANDS)


def test_the_fronts_offer_the_pages_and_panes_that_there_are(stepscope: Command) -> None:
    tui, web = stepscope("tui", "--help").out, stepscope("web", "--help").out

    assert f"[{'|'.join(tab.name for tab in PAGES)}]" in tui
    assert ", ".join(tab.name for tab in PAGES) in " ".join(tui.split())
    assert f"[{'|'.join(tab.name for tab in PANES)}]" in web


def test_the_help_of_a_front_imports_no_front() -> None:
    code = (
        "import sys; from stepscope.app.cli import main; "
        "main(['tui', '--help']); main(['web', '--help']); print(*sys.modules)"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not {"polars", "textual", "dash"} & set(run.stdout.split())


def test_garbage_is_looked_for_seldom_where_the_process_is_the_commands_own() -> None:
    code = (
        "import gc, sys; from stepscope.app.cli import main; usual = gc.get_threshold()[0]; "
        "main(['--version']); print(gc.get_threshold()[0] == usual); "
        "sys.argv = ['stepscope', '--version']; main(); print(gc.get_threshold()[0] > usual)"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.split("\n")[1::2] == ["True", "True"]


def test_a_command_is_a_module_and_a_line(
    stepscope: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("notes")
    module.notes = click.Command("notes", callback=lambda: click.echo("noted"))  # type: ignore[attr-defined]  # a module that is made here
    monkeypatch.setitem(sys.modules, "stepscope.app.cli.commands.notes", module)
    monkeypatch.setitem(COMMANDS, "notes", "Show what was noted.")

    assert "Show what was noted." in stepscope("--help").out
    assert stepscope("notes").out == "noted\n"


def test_every_file_of_a_command_has_its_line() -> None:
    files = {file.stem for file in Path(commands.__path__[0]).glob("*.py")} - {"__init__"}

    assert files == set(COMMANDS)


def test_version_imports_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys; from stepscope.app.cli import main; main(['--version']); print(*sys.modules)"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not {"polars", "numpy", "textual", "dash", "torch"} & set(run.stdout.split())


@slow
def test_a_check_of_our_own_trace_imports_only_what_it_needs(sample_traces: Path) -> None:
    trace = sample_traces / "mix-admission-after.trace"
    code = (
        "import sys; from stepscope.app.cli import main; "
        f"main(['check', {str(trace)!r}]); print(*sys.modules)"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    imported = set(run.stdout.split())
    assert "stepscope.analyzers.check.registry" in imported
    assert not {"numpy", "textual", "stepscope.ingest.readers.chrome.reader"} & imported


def test_an_unknown_command_is_wrong_usage(stepscope: Command) -> None:
    run = stepscope("chekc")

    assert run.code == 2
    assert "No such command" in run.err


def test_the_tui_says_so_where_there_is_no_terminal(stepscope: Command, starved: Path) -> None:
    run = stepscope("tui", starved)

    assert run.code == 2
    assert "needs a terminal" in run.err


@looped("command", ["info", "check", "web"])
def test_a_missing_trace_is_one_clear_line(
    stepscope: Command, command: str, tmp_path: Path
) -> None:
    run = stepscope(command, tmp_path / "absent.trace")

    assert run.code == 3
    assert "absent.trace" in run.err
    assert len(run.err.splitlines()) == 1


@looped("content", [b"", b"\x00\xff garbage", b"{", b"\x1f\x8bnot gzip"])
def test_an_unreadable_trace_is_one_clear_line(
    stepscope: Command, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)

    run = stepscope("check", path)

    assert run.code == 3
    assert "bad.json" in run.err
    assert len(run.err.splitlines()) == 1


@looped("command", ["info", "check"])
def test_a_trace_damaged_behind_its_footers_is_one_clear_line(
    stepscope: Command, starved: Path, tmp_path: Path, command: str
) -> None:
    damaged = tmp_path / "damaged.trace"
    shutil.copytree(starved, damaged)
    for file in damaged.rglob("*.parquet"):
        content = bytearray(file.read_bytes())
        content[40 : len(content) // 2] = bytes(len(content) // 2 - 40)
        file.write_bytes(content)

    run = stepscope(command, damaged)

    assert run.code == 3
    assert "damaged" in run.err
    assert len(run.err.splitlines()) == 1


SAMPLE = str(ROOT / "sample_traces" / "vllm_crowd.trace")


@looped(
    "command",
    [("explain",), ("explain", "COR001"), ("sql", SAMPLE, "select * from batch_rows")],
    ids=["a list", "a page", "a large table"],
)
def test_a_reader_that_goes_away_is_not_an_error(command: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    run = subprocess.run(
        [sys.executable, "-m", "stepscope.app", *command],
        stdout=writing, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(writing)

    assert (run.returncode, run.stderr) == (0, b"")


def on_a_terminal(*command: str, **environment: str) -> str:
    """What a command prints where a person looks."""
    ours, its = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "stepscope.app", *command], stdout=its, check=True,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **environment},
    )  # fmt: skip
    os.close(its)
    printed = b""
    with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as file:  # the end of a pty
        while some := file.read(4096):
            printed += some
    return printed.decode()


@slow
def test_colours_are_left_out_where_they_are_not_wanted() -> None:
    command = ("blame", SAMPLE, "--limit", "1")

    assert "\x1b" in on_a_terminal(*command)
    assert "\x1b" not in on_a_terminal(*command, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(*command, TERM="dumb")


def test_a_bug_of_ours_is_one_line_that_says_how_to_see_more(
    stepscope: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_kwargs: object) -> None:
        raise ValueError("nobody\x1b[31m expected this")

    monkeypatch.setattr(cli, "main", broken)
    monkeypatch.delenv("STEPSCOPE_DEBUG", raising=False)

    run = stepscope("info")

    assert run.code == 70
    assert "STEPSCOPE_DEBUG=1" in run.err
    assert "\x1b" not in run.err


def test_an_interrupt_ends_with_the_shells_code(
    stepscope: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)

    assert stepscope("info").code == 130


def test_the_console_script_and_the_module_are_the_same_command() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "stepscope.app", "--version"], capture_output=True, text=True,
        check=True,
    )  # fmt: skip

    assert run.stdout.startswith("stepscope ")
    assert callable(entry)


@looped(
    "words",
    [
        ("check", "x.trace", "--fail-on", "never", "--fail-on", "error"),
        ("check", "x.trace", "--output", "a", "--output=b"),
        ("check", "x.trace", "--also", "json=a", "--also", "sarif=a"),
        ("check", "x.trace", "--also", "json=a", "--output", "a"),
        ("blame", "x.trace", "--limit", "3", "--limit", "4"),
        ("info", "x.trace", "--max", "depth=3", "--max", "depth=4"),
        ("convert", "x.trace", "-o", "a.json", "--output", "b.json"),
        ("record", "mix-admission", "--seed", "1", "--seed", "2"),
        ("record", "mix-admission", "--set", "groups=1", "--set", "groups=2"),
    ],
    ids=" ".join,
)
def test_an_option_that_counts_once_is_not_given_twice(
    stepscope: Command, words: tuple[str, ...]
) -> None:
    run = stepscope(*words)

    assert (run.code, run.out) == (2, "")
    assert "more than once" in run.err or "to one file" in run.err
