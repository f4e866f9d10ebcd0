"""The formats that a trace can be written in: a module each, one line in `WRITERS`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace


class Writer(Protocol):
    """A format that others read; the ending of a name chooses it."""

    @property
    def endings(self) -> tuple[str, ...]:
        """What the names of its files end in; the first is the usual one."""
        ...

    def write(self, trace: Trace, out: Path) -> None:
        """Write a trace to `out`, whole or not at all; the same trace gives the same bytes.

        Raises `WriteError` where something else is in the way, or it cannot be written.
        """
        ...


WRITERS = (
    "native.NativeWriter",
    "perfetto.PerfettoWriter",
    "chrome.ChromeWriter",
)
"""Module and class of each, in the order in which they are named to users."""


def writers() -> Iterator[Writer]:
    """Give each in its turn."""
    for name in WRITERS:
        module, _, writer = name.rpartition(".")
        yield getattr(import_module(f"{__name__}.{module}"), writer)()


def writer_of(out: Path) -> Writer:
    """Find what writes the format that a name ends in; raises ConfigError where there is none."""
    known = tuple(writers())
    for writer in known:
        if out.name.endswith(writer.endings):
            return writer
    *others, last = (ending for writer in known for ending in writer.endings)
    todo = f"use {', '.join(others)} or {last}"
    raise ConfigError("no format has this extension", where=str(out), todo=todo)
