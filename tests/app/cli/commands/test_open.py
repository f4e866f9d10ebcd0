"""`stepscope open` takes the front that fits, and knows what was opened last."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.app.cli.opening import OpenTrace
from stepscope.app.live.opener import Opener
from stepscope.app.tui import hang_up
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.tui.both_app import BothApp
from stepscope.app.web import server
from tests.app.cli.conftest import Command
from tests.conftest import ROOT

SAMPLE = ROOT / "sample_traces" / "mix-admission-before.trace"
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@pytest.fixture
def fronts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Which front was opened on what; none of them really is."""
    shown: list[str] = []
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "platform", "linux")
    for name in DISPLAYS:
        monkeypatch.delenv(name, raising=False)

    def run(self: StepscopeApp) -> None:
        shown.append(f"terminal {self.trace.name}")

    def serve(trace: Any, _result: Any, **options: Any) -> None:
        assert options == {
            "browse": True,
            "follower": None,
            "opener": Opener(OpenTrace()),
        }
        shown.append(f"browser {trace.name}")

    def serve_app(_app: Any, *_where: Any, **options: Any) -> None:
        assert options == {
            "browse": True,
            "token": True,
            "slo": None,
            "opener": Opener(OpenTrace()),
        }
        shown.append("browser of two")

    terminal = SimpleNamespace(isatty=lambda: True, fileno=lambda: 0)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(hang_up, "end_with_terminal", lambda _fileno: shown.append("watched"))
    monkeypatch.setattr(StepscopeApp, "run", run)
    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(server, "serve_app", serve_app)
    monkeypatch.setattr(BothApp, "run", run)
    return shown


@pytest.mark.parametrize("display", DISPLAYS)
def test_where_there_is_a_display_it_is_the_browser(
    stepscope: Command, fronts: list[str], monkeypatch: pytest.MonkeyPatch, display: str
) -> None:
    monkeypatch.setenv(display, ":0")

    assert stepscope("open", SAMPLE).code == 0
    assert fronts == [f"browser {SAMPLE.name}"]


def test_without_a_display_it_is_the_terminal(stepscope: Command, fronts: list[str]) -> None:
    assert stepscope("open", SAMPLE).code == 0
    assert fronts == ["watched", f"terminal {SAMPLE.name}"]


def test_without_a_terminal_none_is_taken(
    stepscope: Command, fronts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)

    assert stepscope("open", SAMPLE, "--in", "terminal").code == 2
    assert fronts == []


def test_without_either_it_says_what_to_use(
    stepscope: Command, fronts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    run = stepscope("open", SAMPLE)

    assert run.code == 2
    assert "neither a display nor a terminal" in run.err
    assert fronts == []


def test_the_front_can_be_chosen(stepscope: Command, fronts: list[str]) -> None:
    assert stepscope("open", SAMPLE, "--in", "browser").code == 0
    assert stepscope("open", SAMPLE, "--in", "terminal").code == 0
    assert fronts == [f"browser {SAMPLE.name}", "watched", f"terminal {SAMPLE.name}"]


def test_what_was_opened_is_listed_and_opened_again_by_its_number(
    stepscope: Command, fronts: list[str]
) -> None:
    before = stepscope("open")
    stepscope("open", SAMPLE, "--in", "terminal")
    after = stepscope("open")
    again = stepscope("open", "1", "--in", "browser")

    assert (before.code, before.out) == (0, "")
    assert "nothing was opened before" in before.err
    assert after.out == f" 1  {SAMPLE}\n"
    assert again.code == 0
    assert fronts[-1] == f"browser {SAMPLE.name}"


def test_a_number_that_stands_for_nothing_is_refused(stepscope: Command, fronts: list[str]) -> None:
    run = stepscope("open", "7", "--in", "browser")

    assert run.code == 2
    assert "neither a file nor a trace that was opened last" in run.err
    assert fronts == []


def test_what_cannot_be_read_is_not_listed(
    stepscope: Command, fronts: list[str], tmp_path: Path
) -> None:
    (tmp_path / "noise").write_bytes(b"\x00\x01")

    assert stepscope("open", tmp_path / "noise", "--in", "browser").code == 3
    assert stepscope("open").out == ""
    assert fronts == []


@pytest.mark.parametrize(
    ("front", "shown"),
    [("browser", ["browser of two"]), ("terminal", ["watched", f"terminal {SAMPLE.name}"])],
)
def test_two_are_opened_side_by_side_and_numbers_stand_for_them_as_well(
    stepscope: Command, fronts: list[str], front: str, shown: list[str]
) -> None:
    after = SAMPLE.with_name("mix-admission-after.trace")

    assert stepscope("open", SAMPLE, after, "--in", front).code == 0
    assert fronts == shown
    assert stepscope("open", "2", "1", "--in", front).code == 0


def test_more_than_two_are_a_line(stepscope: Command, fronts: list[str]) -> None:
    run = stepscope("open", SAMPLE, SAMPLE, SAMPLE)

    assert run.code == 2
    assert "one trace is looked at, or two side by side." in run.err
    assert fronts == []
