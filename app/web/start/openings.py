"""Traces that are being opened for the page, each in a thread of its own, and those that are."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.analyzers.summary.slo import Slo
from stepscope.app.kept import recent
from stepscope.app.live.opener import Opener
from stepscope.app.printable import plain
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.page import build
from stepscope.app.web.source import Source, followed
from stepscope.ingest.errors import ConfigError, StepscopeError
from stepscope.ingest.progress import Progress

if TYPE_CHECKING:
    from flask import Flask

MOST_OPEN = 8
"""Traces that are open at a time; for one more, that which was asked for longest ago is closed."""
MOST_OPENING = 4
"""Traces that are being opened at a time."""


@dataclass(slots=True)
class Opening:
    """One that is being opened: how far it is, why it cannot be, or the page that it has."""

    path: Path
    what: str = "opening"
    done: int = 0
    total: int | None = None
    failed: str = ""
    server: Flask | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it is still being opened."""
        return self.server is None and not self.failed


class Openings:
    """What was opened here, by number; `ready` is given the server of each page before it is."""

    def __init__(
        self, opener: Opener, slo: Slo | None, prefix: str, ready: Callable[[Flask], None]
    ) -> None:
        self._opener, self._slo, self._prefix, self._ready = opener, slo, prefix, ready
        self._all: OrderedDict[int, Opening] = OrderedDict()
        self._last = 0
        self._lock = threading.Lock()

    def begin(self, path: Path, *, is_kept: bool = True) -> int:
        """Begin to open a trace, and give its number; raises ConfigError where it is not there.

        It is among the recent ones from then on where it `is_kept`.
        """
        if not path.exists():
            raise ConfigError("there is no such file", where=str(path), todo="check the path")
        with self._lock:
            if sum(each.is_under_way for each in self._all.values()) >= MOST_OPENING:
                todo = "wait until one of them is there"
                raise ConfigError(f"{MOST_OPENING} traces are being opened already", todo=todo)
            self._last += 1
            number, opening = self._last, Opening(path)
            self._all[number] = opening
        work = (number, opening, is_kept)
        threading.Thread(target=self._open, args=work, daemon=True).start()
        return number

    def get(self, number: int) -> Opening | None:
        """One that is open or being opened; None where there is none, or none any more."""
        with self._lock:
            found = self._all.get(number)
            if found:
                self._all.move_to_end(number)
            return found

    def _open(self, number: int, opening: Opening, is_kept: bool) -> None:
        def told(what: str, done: int, total: int | None) -> None:
            opening.what, opening.done, opening.total = plain(what), done, total

        try:
            source = self._source(opening.path, told)
            server = build(source, f"{self._prefix}{number}/").server
            self._ready(server)
            if is_kept:
                recent.opened(opening.path)
            opening.server = server
            self._close_oldest()
        except StepscopeError as error:
            opening.failed = plain(str(error))
        except Exception as error:
            # Nobody reads a traceback in the server's log; the page says what happened.
            told_of_it = f"cannot open the trace: {type(error).__name__}: {error}"
            opening.failed = plain(f"{told_of_it}; report this as a bug")

    def _source(self, path: Path, told: Progress) -> Source:
        """What the page looks at: a recording that goes on is followed, as by the command line."""
        begun = self._opener.begin(path, told)
        if begun.follower is None:
            loaded = LoadedTrace(begun.trace, None, self._slo)
        else:
            told("checking what was recorded by now", 0, None)
            loaded = followed(begun.follower, self._slo)
        return Source(
            loaded, begun.follower, lambda each: self._opener.read(each, told), self._slo,
            opens_others=True,
        )  # fmt: skip

    def _close_oldest(self) -> None:
        with self._lock:
            opened = [number for number, each in self._all.items() if each.server]
            for number in opened[:-MOST_OPEN]:
                del self._all[number]
