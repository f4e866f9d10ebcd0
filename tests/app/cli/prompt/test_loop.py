"""Lines are run one after the other; what goes wrong in one leaves the session whole."""

from __future__ import annotations

import pytest

from stepscope.app.cli.prompt.loop import Loop
from stepscope.app.cli.prompt.printing import AsText
from stepscope.app.debug.debugger import Debugger
from tests.app.debug.small_traces import a_fight_for_a_block


@pytest.fixture
def loop() -> Loop:
    return Loop(Debugger(a_fight_for_a_block()), AsText())


def test_ctrl_c_gives_up_a_command_and_not_the_session(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stepscope.app.cli.prompt.loop.run", interrupted)
    loop.run_typed("all preempt")

    assert capsys.readouterr().out == "interrupted\n"
    assert not loop.has_ended


def test_a_bug_in_a_command_is_a_line_and_leaves_the_position_as_it_was(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("by\x1bzero")

    before = loop.debugger.position
    monkeypatch.setattr("stepscope.app.cli.prompt.loop.run", broken)
    loop.run_typed("all preempt")

    assert "a bug in stepscope: ZeroDivisionError: by·zero" in capsys.readouterr().err
    assert (loop.code, loop.debugger.position) == (70, before)
