"""What a client works at: a debugger, what it was shown, its stops, and what to tell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepscope.analyzers.findings.finding_table import FINDINGS
from stepscope.analyzers.findings.wording import times
from stepscope.app.dap.shown_state import Shown
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops.stop import Does, Hit
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

OpenTrace = Callable[[Path], Trace]
REASONS = {"functions": "function breakpoint", "data": "data breakpoint", "findings": "exception"}
"""Why it stopped, by the group of a stop; at one that was typed, or at a line: a breakpoint."""


class Desk:
    """State of one client; `events` are told behind the answer.

    `first_line` and `first_column` are the numbers that it counts from, `finding` is the one that
    it stopped at.
    """

    def __init__(self, open_trace: OpenTrace, path: Path | None) -> None:
        self._open_trace = open_trace
        self._path = path
        self._debugger: Debugger | None = None
        self._groups: dict[str, list[int]] = {}
        self.first_line = self.first_column = 1
        self.finding: Mapping[str, Any] | None = None
        self.shown = Shown()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.has_ended = False

    @property
    def debugger(self) -> Debugger:
        """The debugger; raises ConfigError before `launch`."""
        if self._debugger is None:
            raise ConfigError("no trace is open", todo="send launch or attach first")
        return self._debugger

    def launch(self, path: Path | None, rank: int | None) -> None:
        """Open a trace, by default the one of the command line; StepscopeError if it cannot be."""
        wanted = self._path if path is None else path
        if wanted is None:
            raise ConfigError("launch names no trace", todo='give it "trace"')
        self._debugger = Debugger(self._open_trace(wanted), rank)
        self._groups.clear()
        self._forget()
        self.tell("initialized")

    def tell(self, event: str, **body: Any) -> None:
        """Tell the client of an event, behind the answer."""
        self.events.append((event, body))

    def stopped(self, reason: str, text: str = "", stops: tuple[int, ...] = ()) -> None:
        """Tell where the debugger stands now; what was shown before is not so any more."""
        self._forget()
        told: dict[str, Any] = {"description": text, "text": text} if text else {}
        if stops:
            told["hitBreakpointIds"] = list(stops)
        thread = self.debugger.rank + 1
        self.tell("stopped", reason=reason, threadId=thread, allThreadsStopped=True, **told)

    def stopped_at(self, hit: Hit, text: str) -> None:
        """Tell of a stop that was hit, and keep the finding if it was at one."""
        stop = self.debugger.stops[hit.stop]
        typed = "data breakpoint" if stop.does == "watch" else "breakpoint"
        reasons = (REASONS.get(name) for name, own in self._groups.items() if hit.stop in own)
        self.stopped(next(filter(None, reasons), typed), text, (hit.stop,))
        if stop.sources[hit.source].table == FINDINGS:
            self.finding = stop.row(hit, self.debugger.tables)

    def _forget(self) -> None:
        self.shown.clear()
        self.finding = None

    def replace(self, group: str, wanted: Sequence[Callable[[], str]], does: Does) -> list[Any]:
        """Put stops in place of those of a group, and tell of each whether it can be met."""
        for number in self._groups.pop(group, ()):
            self.debugger.stops.pop(number, None)
        kept: list[int] = []
        self._groups[group] = kept
        return [self._stop(each, does, kept) for each in wanted]

    def _stop(self, wanted: Callable[[], str], does: Does, kept: list[int]) -> dict[str, Any]:
        try:
            stop = self.debugger.add(does, wanted())
        except ConfigError as error:
            return {"verified": False, "message": str(error)}
        kept.append(stop.number)
        hits = times(len(stop), "hit")
        return {"id": stop.number, "verified": True, "message": hits}
