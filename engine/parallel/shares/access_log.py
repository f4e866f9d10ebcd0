"""Who reads and writes which rows of a shared buffer, on which stream, and what orders them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.engine.clock import Clock

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder

HOST, COPY, COMPUTE = "host", "copy", "compute"


class AccessLog:
    """Writes accesses of the rank's buffers; `segment` is the row of the batch they are for.

    An epoch numbers a write. A read tells the epoch that it found.
    """

    def __init__(self, clock: Clock, recorder: Recorder | None) -> None:
        self.step = 0
        self._clock = clock
        self._recorder = recorder
        self._num_epochs = 0
        self._num_events = 0
        self._epochs: dict[tuple[str, int], int] = {}

    def next_epoch(self) -> int:
        """Return the number of a new write."""
        self._num_epochs += 1
        return self._num_epochs

    def access(
        self, stream: str, op: str, buffer: str, row: int, segment: int | None, epoch: int
    ) -> None:
        """Note that `stream` reads, writes or copies one row of `buffer`."""
        if self._recorder:
            self._recorder.accesses(
                self.step, self._clock.now_ns(), buffer, row, row + 1, op, stream, segment, epoch
            )

    def update(self, stream: str, buffer: str, row: int) -> None:
        """Note that `stream` updates a row that outlives the batch; an empty one is not read."""
        found = self._epochs.get((buffer, row))
        if found is not None:
            self.access(stream, "read", buffer, row, None, found)
        made = self._epochs[buffer, row] = self.next_epoch()
        self.access(stream, "write", buffer, row, None, made)

    def forget(self, buffer: str, row: int) -> None:
        """Let a row hold nothing: who updates it next has nothing to read."""
        self._epochs.pop((buffer, row), None)

    def order(self, earlier: str, later: str, what: str) -> None:
        """Note that `later` waits for what `earlier` has been given so far."""
        self._num_events += 1
        if self._recorder:
            event = f"{what} {self._num_events}"
            for stream, op in ((earlier, "record"), (later, "wait")):
                self._recorder.accesses(
                    self.step, self._clock.now_ns(), None, None, None, op, stream, None, None, event
                )
