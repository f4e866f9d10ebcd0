"""Lets tests of the terminal front be coroutines, and keeps the environment out of the picture."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from textual._context import active_app
from textual.app import App
from textual.pilot import Pilot

from tests.app.tui.stage import PATIENCE_S


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours and sizes are the test's, not the terminal's that it runs in."""
    for name in ("NO_COLOR", "COLUMNS", "LINES", "TEXTUAL_COLOR_SYSTEM", "UNICODE_VERSION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _no_idle_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a key, wait until every widget has handled it, not until the machine seems idle.

    What is notified stays, however long that takes.
    """

    async def handled(*_: float) -> None:
        await Pilot(active_app.get())._wait_for_screen()

    monkeypatch.setattr("textual.app.wait_for_idle", handled)
    monkeypatch.setattr(App, "NOTIFICATION_TIMEOUT", PATIENCE_S)
    monkeypatch.setattr(Pilot._wait_for_screen, "__defaults__", (PATIENCE_S,))
