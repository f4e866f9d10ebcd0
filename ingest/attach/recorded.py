"""Writes what an adapter tells into a trace: `SchedulerRecording` over a `Recorder`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from stepscope.ingest.attach.scheduler_recording import BlockChange, Counts, Gave, LeftOut, Step
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.lasting import BatchRow

_OF_STEPS = ("step", "ts_ns", "formed_ns", *Counts._fields)
_OF_BLOCKS = "step", "ts_ns", "resource"
_OF_EACH_BLOCK = "op", "id", "owner", "group", "block_hash", "source"  # of a BlockChange
_OF_REQUESTS = (
    "step", "ts_ns", "subject_kind", "subject", "verdict", "reason", "resource", "needed",
    "available", "holder",
)  # fmt: skip
_OF_EACH_EVENT = "request", "event", "num_generated", "cause"
_OF_EVENTS = (
    "step", "ts_ns", *_OF_EACH_EVENT, "queue_index", "by_request", "deadline_ns", "alike",
    "num_alike", "ignore_eos",
)  # fmt: skip
_MORE_OF_EVENTS = frozenset(_OF_EVENTS)
_OF_ARRIVALS = (
    "step", "ts_ns", "request", "event", "num_generated", "queue_index", "prompt_len",
    "max_tokens", "priority", "external_id", "lora",
)  # fmt: skip
_OF_ROWS = (
    "step", "ts_ns", "row", "request", "phase", "num_tokens", "num_computed", "prompt_len",
    "num_cached", "num_draft", "is_final_chunk", "is_recompute",
)  # fmt: skip

_new_step = object.__new__
_NO_ROWS: dict[str, Any] = {}
_NOBODY: list[str] = []


class RequestRows:
    """What is told of requests one by one, or of several at once, into one recorder.

    Who has these functions in common has one set of them in the processor's caches: a front end in
    the process of its engine does (decision 0125).
    """

    def __init__(self, recorder: Recorder) -> None:
        self.event, self.events = recorder.several(
            "lifecycle", _OF_EVENTS, ("step", "ts_ns"), _OF_EACH_EVENT
        )
        self.arrival = recorder.narrow("lifecycle", *_OF_ARRIVALS)
        self.failed: Callable[[Exception], None] = lambda _: recorder.close()
        """Called where who tells of requests failed, so that no more is told."""
        self.received: dict[str, tuple[int, str | None]] = {}
        """When a front end in this process took a request from its client, and the client's own id
        of it: told as it arrives, with that.
        """

    def tell_received(self, name: str) -> None:
        """Tell that a front end took a request from its client, unless that has been told."""
        if (received := self.received.pop(name, None)) is not None:
            ts_ns, external = received
            self.arrival(None, ts_ns, name, "receive", None, None, None, None, None, external)


class RecordedStep:
    """A step whose batch was formed; it is on record from when it begins to run."""

    __slots__ = ("batch", "began_ns", "counts", "formed_ns", "number", "opened", "rows")

    number: int
    formed_ns: int
    began_ns: int
    counts: Sequence[Any]
    batch: Any
    rows: dict[str, Any]
    opened: Any


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
        self._batches = recorder.batches()
        self._record_batch = self._batches.record_batch
        self._record_outputs = self._batches.record_outputs
        self._begin_step, self._end_step = recorder.in_two(
            "steps", _OF_STEPS, ("dur_ns", "executed_path", "logits_rows")
        )
        self._begin_row, self._end_row = recorder.in_two("batch_rows", _OF_ROWS, ("num_accepted",))
        self._outputs = recorder.bulk(
            "outputs", "step", "ts_ns", "request", "position", "source_step"
        )
        self._record_blocks = recorder.several(
            "allocations", (*_OF_BLOCKS, *_OF_EACH_BLOCK), _OF_BLOCKS, _OF_EACH_BLOCK
        )[1]
        self.requests = requests = RequestRows(recorder)
        requests.failed = self.failed
        self._record_event, self._record_events = requests.event, requests.events
        self._record_arrival, self._received = requests.arrival, requests.received
        self._decision = recorder.narrow("decisions", *_OF_REQUESTS)

    @property
    def num_steps(self) -> int:
        """How many steps were told so far."""
        return self._number

    def event(self, event: str, request: str, ts_ns: int, **columns: Any) -> None:
        """Record an event of a request."""
        record = self._record_event
        if not columns.keys() <= _MORE_OF_EVENTS:  # such as an arrival with all that was asked for
            record = self.recorder.lifecycle
        record(step=self._number, ts_ns=ts_ns, request=request, event=event, **columns)

    def arrived(
        self, ts_ns: int, request: str, queue_index: int | None, prompt_len: int,
        max_tokens: int | None, priority: int | None, external_id: str | None, lora: str | None,
    ) -> None:  # fmt: skip
        """Record that a request arrived, and that a front end had received it."""
        if self._received:
            self.requests.tell_received(request)
        self._record_arrival(
            self._number, ts_ns, request, "arrive", 0, queue_index, prompt_len, max_tokens,
            priority, external_id, lora,
        )  # fmt: skip

    def events(self, ts_ns: int, told: Iterable[tuple[str, str, int | None, str | None]]) -> None:
        """Record what happened to several requests."""
        self._record_events(self._number, ts_ns, told)

    def blocks(self, ts_ns: int, changes: Iterable[BlockChange]) -> None:
        """Record KV blocks that change hands."""
        self._record_blocks(self._number, ts_ns, "kv-block", changes)

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

    def formed_again(
        self, ts_ns: int, counts: Sequence[Any], left: Sequence[int] = (),
        requests: list[str] = _NOBODY,
    ) -> RecordedStep:  # fmt: skip
        """Record the batch of the step before, one token on, without the rows of those who left."""
        # What `_formed` does, without a call of it: this runs in most steps of an engine.
        self._number = number = self._number + 1
        step = _new_step(RecordedStep)
        step.number, step.formed_ns, step.began_ns = number, ts_ns, ts_ns
        step.counts, step.rows, step.opened = counts, _NO_ROWS, None
        batches = self._batches
        if left:
            step.batch = batches.without(number, ts_ns, left, requests)
        elif batches.batch:  # what `again` does
            batches.counter = counter = batches.counter + 1
            self._record_batch(number, ts_ns, counter, batches.batch, len(batches.requests))
            step.batch = number, counter, batches.batch, batches.requests
        else:
            step.batch = batches.again(number, ts_ns)
        if self._overlaps or not self._under_way:
            step.opened = self._begin_step(number, ts_ns, ts_ns, *counts)
        self._under_way.append(step)
        return step

    def formed(self, ts_ns: int, rows: Sequence[BatchRow], counts: Counts) -> RecordedStep:
        """Record a batch."""
        self._number += 1
        return self._formed(ts_ns, counts, self._batches.whole(self._number, ts_ns, rows))

    def formed_from(
        self, ts_ns: int, left: Collection[str], rows: Sequence[BatchRow], counts: Counts
    ) -> RecordedStep:
        """Record the batch of the step before, with changes."""
        self._number += 1
        batch = self._batches.formed(self._number, ts_ns, left, rows)
        return self._formed(ts_ns, counts, batch)

    def formed_drafts(self, ts_ns: int, rows: Sequence[BatchRow], counts: Counts) -> RecordedStep:
        """Record a batch row by row: how many drafts were accepted is known later."""
        self._number += 1
        opened = {
            row.request: self._begin_row(
                self._number, ts_ns, place, row.request, row.phase, row.num_tokens,
                row.num_computed, row.prompt_len, row.num_cached, row.num_draft,
                row.is_final_chunk, row.is_recompute,
            )
            for place, row in enumerate(rows)
        }  # fmt: skip
        return self._formed(ts_ns, counts, None, opened)

    def ended(
        self, step: Step, ts_ns: int, without: Collection[str] = (), path: str | None = None,
        logits_rows: int | None = None,
    ) -> None:  # fmt: skip
        """Record that a step ended, and its outputs."""
        under_way = self._under_way
        is_first = bool(under_way) and under_way[0] is step
        ended = under_way.popleft() if is_first else self._taken(step)
        if ended is None:
            return
        if without or ended.batch is None:
            self._batches.outputs(ended.batch, ts_ns, without)
        else:  # what `outputs` does
            number, counter, batch, requests = ended.batch
            self._record_outputs(number, ts_ns, counter, batch, 0, len(requests))
        if ended.opened is None or under_way:
            self._end(ended, ts_ns, path, logits_rows)
        else:
            self._end_step(ended.opened, ts_ns - ended.began_ns, path, logits_rows)

    def ended_drafts(
        self, step: Step, ts_ns: int, gave: Iterable[Gave], path: str | None = None,
        logits_rows: int | None = None,
    ) -> None:  # fmt: skip
        """Record that a step with drafts ended, and its outputs."""
        if (ended := self._taken(step)) is None:
            return
        requests: list[str] = []
        positions: list[int] = []
        for request, first, count, num_accepted in gave:
            requests += [request] * count
            positions += range(first, first + count)
            if num_accepted is not None and request in ended.rows:
                self._end_row(ended.rows[request], num_accepted)
        self._outputs(self._number, ts_ns, requests, positions, ended.number)
        self._end(ended, ts_ns, path, logits_rows)

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
        """Close the recorder; steps that never ended stay without an end."""
        for step in self._under_way:
            self._begin(step, step.formed_ns)
        self._under_way.clear()
        self.recorder.close()

    def _formed(
        self, ts_ns: int, counts: Sequence[Any], batch: Any, rows: dict[str, Any] = _NO_ROWS
    ) -> RecordedStep:
        number = self._number
        step = _new_step(RecordedStep)
        step.number, step.formed_ns, step.began_ns = number, ts_ns, ts_ns
        step.counts, step.batch, step.rows, step.opened = counts, batch, rows, None
        if self._overlaps or not self._under_way:
            step.opened = self._begin_step(number, ts_ns, ts_ns, *counts)
        self._under_way.append(step)
        return step

    def _begin(self, step: RecordedStep, ts_ns: int) -> None:
        if step.opened is None:
            step.began_ns = max(ts_ns, step.formed_ns)
            step.opened = self._begin_step(step.number, step.began_ns, step.formed_ns, *step.counts)

    def _taken(self, step: Step) -> RecordedStep | None:
        """Take a step from those under way; None where it is none of them."""
        for place, each in enumerate(self._under_way):
            if each is step:
                del self._under_way[place]
                return each
        return None

    def _end(
        self, step: RecordedStep, ts_ns: int, path: str | None, logits_rows: int | None
    ) -> None:
        if step.opened is None:  # it was not first in line, or could not be recorded
            self._begin(step, step.formed_ns)
        self._end_step(step.opened, ts_ns - step.began_ns, path, logits_rows)
        if self._under_way:
            self._begin(self._under_way[0], ts_ns)
