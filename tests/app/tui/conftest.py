"""Lets tests of the terminal front be coroutines, and keeps the environment out of the picture."""

from __future__ import annotations

import asyncio
import inspect

import pytest


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
