"""Writes what an adapter tells into a trace: `Telling` over a `Recorder`."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from itertools import repeat
from typing import Any

from stepscope.ingest.attach.row_batches import Batches
from stepscope.ingest.attach.telling import BatchRow, BlockChange, LeftOut, Step
from stepscope.ingest.recorder import Recorder

_TOLD_OF_BLOCKS = (
    "step", "ts_ns", "resource", "id", "op", "owner", "group", "block_hash", "source",
)  # fmt: skip
_TOLD_OF_REQUESTS = (
    "step", "ts_ns", "subject_kind", "subject", "verdict", "reason", "resource", "needed",
    "available", "holder",
)  # fmt: skip


class RecordedStep:
    """A step whose batch was formed; it is on record when it has begun to run."""

    __slots__ = ("batch", "began_ns", "columns", "formed_ns", "number")

    def __init__(self, number: int, formed_ns: int, batch: Any, columns: dict[str, Any]) -> None:
        self.number = number
        self.formed_ns = formed_ns
        self.batch = batch
        self.columns = columns
        self.began_ns: int | None = None


class RecordedScheduler:
    """One scheduler, told to one recorder.

    `overlaps` says that steps run beside each other, as the stages of a pipeline do: such a step
    begins when its batch was formed. Else it begins when the one before it has ended.
    """

    def __init__(self, recorder: Recorder, *, overlaps: bool = False) -> None:
        self.recorder = recorder
        self.now_ns = recorder.now_ns
        self._overlaps = overlaps
        self._number = 0
        self._under_way: deque[RecordedStep] = deque()
        self._batches = Batches(recorder)
        self._block = recorder.narrow("allocations", *_TOLD_OF_BLOCKS)
        self._decision = recorder.narrow("decisions", *_TOLD_OF_REQUESTS)

    @property
    def num_steps(self) -> int:
        """How many steps were told so far."""
        return self._number

    def event(self, event: str, request: str, ts_ns: int, **columns: Any) -> None:
        """Record an event of a request."""
        self.recorder.lifecycle(
            step=self._number, ts_ns=ts_ns, request=request, event=event, **columns
        )

    def blocks(self, ts_ns: int, changes: Iterable[BlockChange]) -> None:
        """Record KV blocks that change hands."""
        for op, ids, owner, group, hashes, source in changes:
            for number, found_by in zip(ids, hashes or repeat(None), strict=False):
                self._block(
                    self._number, ts_ns, "kv-block", number, op, owner, group, found_by, source
                )

    def left_out(self, ts_ns: int, left: Iterable[LeftOut]) -> None:
        """Record why requests are left out."""
        for each in left:
            self.decided(ts_ns, "deferred", each)

    def decided(self, ts_ns: int, verdict: str, left: LeftOut) -> None:
        """Record another decision about a request."""
        request, resource, reason, needed, available, holder = left
        self._decision(
            self._number, ts_ns, "request", request, verdict, reason, resource, needed, available,
            holder,
        )  # fmt: skip

    def queue_order(self, ts_ns: int, requests: Sequence[str]) -> None:
        """Record the order of a queue that was sorted anew."""
        for index, request in enumerate(requests):
            self.recorder.queue_order(step=self._number, ts_ns=ts_ns, index=index, request=request)

    def formed_again(self, ts_ns: int, **columns: Any) -> RecordedStep:
        """Record the batch of the step before, one token on."""
        self._number += 1
        return self._formed(ts_ns, self._batches.again(self._number, ts_ns), columns)

    def formed(self, ts_ns: int, rows: Sequence[BatchRow], **columns: Any) -> RecordedStep:
        """Record a batch."""
        self._number += 1
        return self._formed(ts_ns, self._batches.whole(self._number, ts_ns, rows), columns)

    def formed_from(
        self, ts_ns: int, left: Collection[str], rows: Sequence[BatchRow], **columns: Any
    ) -> RecordedStep:
        """Record the batch of the step before, with changes."""
        self._number += 1
        batch = self._batches.formed(self._number, ts_ns, left, rows)
        return self._formed(ts_ns, batch, columns)

    def ended(
        self,
        step: Step,
        ts_ns: int,
        without: Collection[str] = (),
        accepted: Sequence[tuple[str, int, int, int | None]] | None = None,
        **columns: Any,
    ) -> None:
        """Record that a step ended, and its outputs."""
        ended = next((each for each in self._under_way if each is step), None)
        if ended is None:
            return
        self._under_way.remove(ended)
        if accepted is None:
            self._batches.outputs(ended.batch, ts_ns, without=without)
        else:
            self._several(ended, ts_ns, accepted)
        self._begin(ended, ended.formed_ns)
        self._write(ended, ts_ns, columns)
        if self._under_way:
            self._begin(self._under_way[0], ts_ns)

    def dummy(self, began_ns: int, ended_ns: int) -> None:
        """Record a step of nothing."""
        self._number += 1
        self.recorder.steps(
            step=self._number, ts_ns=began_ns, dur_ns=ended_ns - began_ns, kind="dummy"
        )

    def failed(self, error: Exception) -> None:
        """Record that the adapter failed, and close: what follows in the engine is not told."""
        self.recorder.spans(
            step=self._number, ts_ns=self.now_ns(), track="stepscope", form="instant",
            name=f"the adapter stopped: {type(error).__name__}: {error}",
        )  # fmt: skip
        self.close()

    def close(self) -> None:
        """Close the recorder; steps that never ended are told without an end."""
        for step in self._under_way:
            self._begin(step, step.formed_ns)
            self._write(step, None, {})
        self._under_way.clear()
        self.recorder.close()

    def _formed(self, ts_ns: int, batch: Any, columns: dict[str, Any]) -> RecordedStep:
        step = RecordedStep(self._number, ts_ns, batch, columns)
        if self._overlaps or not self._under_way:
            self._begin(step, ts_ns)
        self._under_way.append(step)
        return step

    def _begin(self, step: RecordedStep, ts_ns: int) -> None:
        if step.began_ns is None:
            step.began_ns = max(ts_ns, step.formed_ns)

    def _write(self, step: RecordedStep, ended_ns: int | None, columns: dict[str, Any]) -> None:
        began = step.began_ns or step.formed_ns
        self.recorder.steps(
            step=step.number,
            ts_ns=began,
            dur_ns=None if ended_ns is None else ended_ns - began,
            formed_ns=step.formed_ns,
            **step.columns,
            **columns,
        )

    def _several(
        self, step: RecordedStep, ts_ns: int, accepted: Sequence[tuple[str, int, int, int | None]]
    ) -> None:
        for request, first, count, _ in accepted:
            for position in range(first, first + count):
                self.recorder.outputs(
                    step=self._number, ts_ns=ts_ns, request=request, position=position,
                    source_step=step.number,
                )  # fmt: skip
