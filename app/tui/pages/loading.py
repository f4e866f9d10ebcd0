"""The first thing on the screen: reads the trace in threads, and says how far it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from textual import on, work
from textual.message import Message
from textual.widgets import Static

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.app.debug import Session
from stepscope.app.live.opener import Begun, Opener
from stepscope.app.timeline import Composition, Timeline
from stepscope.app.tui.pages.overview_words import About, about
from stepscope.app.widths import fit
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace

PLAIN = Opener()


@dataclass(frozen=True, slots=True)
class Models:
    """What the overview and the timeline draw of a trace."""

    timeline: Timeline
    composition: Composition
    about: About


class Opening(Static):
    """Shown until the trace is laid out; its threads only post messages."""

    @dataclass
    class Progressed(Message):
        """Slow work came this far; an empty text means that it is done."""

        text: str

    @dataclass
    class Opened(Message):
        """The trace was laid out."""

        models: Models

    @dataclass
    class Stepped(Message):
        """State can be looked up, step by step."""

        session: Session

    @dataclass
    class Checked(Message):
        """The rules have run."""

        result: CheckResult

    @dataclass
    class Reread(Message):
        """What lies on the disk was opened anew, or why it cannot be."""

        read: Trace | StepscopeError

    @dataclass
    class Another(Message):
        """Another trace was opened, or why it cannot be."""

        path: Path
        begun: Begun | StepscopeError

    @dataclass
    class Failed(Message):
        """Slow work could not be done: to lay out, to step through, or to check."""

        work: str
        error: StepscopeError

    def __init__(self, trace: Trace, opener: Opener = PLAIN, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.trace, self.opener = trace, opener

    @work(thread=True)
    def reread(self, trace: Trace) -> None:
        """Open what lies on the disk where a trace was opened."""
        try:
            if trace.path is None:
                raise StepscopeError("it was not opened from a file", where=trace.name)
            self.trace = self.opener.read(trace.path, self._report_read)
            self.post_message(self.Reread(self.trace))
        except StepscopeError as error:
            self.post_message(self.Reread(error))

    @work(thread=True, exclusive=True, group="another")
    def open_another(self, path: Path) -> None:
        """Open another trace, and tell how far it is."""
        try:
            self.post_message(self.Another(path, self.opener.begin(path, self._report_read)))
        except StepscopeError as error:
            self.post_message(self.Another(path, error))
        except Exception as error:
            what = f"cannot open it: {type(error).__name__}: {error}"
            known = StepscopeError(what, where=str(path), todo="report this as a bug")
            self.post_message(self.Another(path, known))

    @work(thread=True)
    def read(self) -> None:
        """Lay the trace out, then make its states ready to be looked up."""
        trace = self.trace
        self._attempt(trace, "lay out", lambda: self.Opened(read_models(trace, self._report)))
        self._attempt(trace, "step through", lambda: self.Stepped(Session(trace)))

    @work(thread=True)
    def check(self) -> None:
        """Run the rules."""
        trace = self.trace
        checked = functools.partial(check, trace, progress=self._report_rule)
        self._attempt(trace, "check", lambda: self.Checked(checked()))
        self._report("")

    def _attempt(self, trace: Trace, work: str, make: Callable[[], Message]) -> None:
        """Post what is made of a trace, or why it cannot be; nothing where another is open."""
        came = self._made(trace, work, make)
        if trace is self.trace:
            self.post_message(came)

    def _made(self, trace: Trace, work: str, make: Callable[[], Message]) -> Message:
        try:
            return make()
        except StepscopeError as error:
            return self.Failed(work, error)
        except Exception as error:
            # A traceback over the screen would tell a user nothing.
            what = f"cannot {work} the trace: {type(error).__name__}: {error}"
            known = StepscopeError(what, where=trace.name, todo="report this as a bug")
            return self.Failed(work, known)

    def _report(self, text: str) -> None:
        self.post_message(self.Progressed(text))

    def _report_read(self, what: str, done: int, total: int | None) -> None:
        self._report(f"{what} {100 * done // total} %" if total else f"{what} {done:,}")

    def _report_rule(self, rule: str, done: int, total: int | None) -> None:
        self._report(f"{rule}, {done} of {total} rules")

    @on(Progressed)
    def _show_progress(self, event: Progressed) -> None:
        self.update(fit(f"{self.trace.name}: {event.text} …", max(self.size.width, 1)))

    @on(Failed)
    def _show_failure(self, event: Failed) -> None:
        self.update(str(event.error))


def read_models(trace: Trace, progress: Callable[[str], None]) -> Models:
    """Lay out a trace; `progress` is told what comes next."""
    progress("laying out lanes")
    timeline = Timeline.of(trace)
    progress("naming what is in them")
    _warm(timeline)
    progress("adding up batches")
    composition = Composition.of(trace)
    progress("counting rows")
    return Models(timeline, composition, about(trace, composition))


def _warm(timeline: Timeline) -> None:
    """Have the timeline make its indexes here, not when the first screen is drawn."""
    timeline.find("")
    for lane in {each.section: each.id for each in timeline.lanes}.values():
        timeline.next_span(lane, timeline.bounds[0] - 1)
