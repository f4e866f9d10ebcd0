"""What the server over stdin and stdout says of tasks that fail."""

from __future__ import annotations

import asyncio

import pytest

from stepscope.app import ending
from stepscope.app.mcp import transports


def failed_task(caplog: pytest.LogCaptureFixture) -> str:
    """What is logged where a task fails as the loop ends."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(transports._unless_ending)
    loop.call_exception_handler({"message": "a task failed", "exception": ending.Ended(2)})
    loop.close()
    return caplog.text


def test_a_task_that_fails_as_a_signal_ends_the_command_is_not_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "is_ending", lambda: True)

    assert failed_task(caplog) == ""


def test_a_task_that_fails_for_itself_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert not ending.is_ending()
    assert "a task failed" in failed_task(caplog)
