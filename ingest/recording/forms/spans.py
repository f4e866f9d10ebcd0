"""`with rec.span("schedule"):` - how long a block of the engine's code takes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from stepscope.ingest.recording.forms.rows import Row

SPAN_COLUMNS = ("step", "ts_ns", "track", "name", "category", "dur_ns")


class Span(Protocol):
    """A slice of time that is recorded when its block ends, also by an exception."""

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class SpanFunction(Protocol):
    """Begins a span of that name on a track."""

    def __call__(
        self, name: str, track: str = "engine", category: str | None = None, step: int | None = None
    ) -> Span:
        """Give the context manager whose block is timed."""


def span_function(record: Row, now_ns: Callable[[], int]) -> SpanFunction:
    """Build `Recorder.span`: bound to one recorder, so that a span costs no look-ups.

    The span begins where it is made. `with` must enter it all the same: by a function of the
    interpreter's own that does next to nothing, which takes a third of the time of one of ours.
    """

    class _Span:
        __slots__ = ("category", "name", "start_ns", "step", "track")
        category: str | None
        name: str
        start_ns: int
        step: int | None
        track: str

        __enter__ = threading.get_ident

        def __exit__(self, kind: object, error: object, traceback: object) -> None:
            start_ns = self.start_ns
            dur_ns = now_ns() - start_ns
            record(self.step, start_ns, self.track, self.name, self.category, dur_ns)

    def span(
        name: str, track: str = "engine", category: str | None = None, step: int | None = None
    ) -> Span:
        begun = _Span()
        begun.name = name
        begun.track = track
        begun.category = category
        begun.step = step
        begun.start_ns = now_ns()
        return begun

    return span
