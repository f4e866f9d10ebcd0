"""What happens to vLLM's requests: who is admitted, preempted, put back, or ends.

Each is told by the two calls of a step, or by what was called outside of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepscope.ingest.attach.recorded import RecordedScheduler
from stepscope.ingest.attach.vllm.formed_batches import Batches
from stepscope.ingest.attach.vllm.preemptions import Preemptions
from stepscope.ingest.attach.vllm.waiting.left_behind import LeftBehind
from stepscope.ingest.attach.vllm.waiting.line import WaitingLine
from stepscope.ingest.attach.vllm.waiting.why_left_out import SKIPPED

ENDS = {"FINISHED_ABORTED": "abort", "FINISHED_ERROR": "error"}
_ENDED: dict[int, tuple[Any, str, str]] = {}
"""Statuses by their ids, and the event and cause that each is told as; they are kept, so that no
other gets the id. A status is one of few, and both its name and its hash are functions of Python's.
"""


class RequestEvents:
    """Keeps what happened to requests until it is told."""

    def __init__(
        self, scheduler: Any, recording: RecordedScheduler, line: WaitingLine, left: LeftBehind,
        batches: Batches, preemptions: Preemptions,
    ) -> None:  # fmt: skip
        self.ended: list[tuple[Any, Any]] = []
        """Requests that ended, and with which status."""
        self.put_back: list[tuple[Any, int | None]] = []
        """Sessions that wait for more input, and where in the queue."""
        self.preempted, self._lost = preemptions.found, preemptions.lost
        self.num_disturbed = 0
        """Counts who went in another way than by its last output."""
        self._preemptions = preemptions
        self._scheduler, self._recording = scheduler, recording
        self._line, self._left, self._prefilling = line, left, batches.prefilling

    def was_preempted(self, _: object, request: Any) -> None:
        """A request that was preempted stands in the queue."""
        if not self._preemptions.has_begun:
            return
        self._preemptions.end(self._line.enter(request, at_front=True))
        self.num_disturbed += 1
        self._prefilling.pop(request.request_id, None)
        self._left.came(request.request_id)

    def was_stopped(self, is_finished: bool, request: Any) -> None:
        """A request ended, or is a session whose input has not, and goes back to the queue."""
        if not is_finished:
            self.put_back.append((request, self._line.enter(request)))

    def find(self, name: str) -> Any:
        """Give a request that is open, or has ended and was not told of yet."""
        gone = (each for each, _ in self.ended if each.request_id == name)
        return self._scheduler.requests.get(name) or next(gone, None)

    def tell_preempted(self, ts_ns: int) -> None:
        """Tell who was preempted, and why."""
        for reason, by_request, place in self.preempted:
            self._recording.event(
                "preempt", reason.request, ts_ns, cause=reason.reason, by_request=by_request,
                queue_index=place, num_generated=self._num_generated(reason.request),
            )  # fmt: skip
            self._recording.decided(ts_ns, "preempted", reason)
        self.preempted.clear()

    def _num_generated(self, name: str) -> int | None:
        request = self._scheduler.requests.get(name)
        return None if request is None else request.num_output_tokens

    def tell_admitted(self, ts_ns: int, admitted: Sequence[Any]) -> None:
        """Tell who was admitted: again, where it had been preempted."""
        told: list[tuple[str, str, int | None, str | None]] = []
        left, line = self._left.left([each.request_id for each in admitted]), self._line
        for request in admitted:
            name = request.request_id
            if line.is_sorted:
                line.leave(name)
            if name in left and left[name].resource in SKIPPED:
                told.append((name, "ready", None, None))
            event = "resume" if self._lost.pop(name, None) is not None else "admit"
            told.append((name, event, request.num_output_tokens, None))
        self._recording.events(ts_ns, told)

    def tell_ended(self, ts_ns: int) -> None:
        """Tell who ended, and how."""
        told: list[tuple[str, str, int | None, str | None]] = []
        names, prefilling, lost = [], self._prefilling, self._lost
        for request, status in self.ended:
            name = request.request_id
            _, event, cause = _ENDED.get(id(status)) or _end_of(status)
            self.num_disturbed += event != "finish"
            if self._line.is_sorted:
                self._line.leave(name)
            prefilling.pop(name, None)
            lost.pop(name, None)
            names.append(name)
            told.append((name, event, request.num_output_tokens, cause))
        self.ended.clear()
        self._left.left(names)
        self._recording.events(ts_ns, told)

    def tell_put_back(self, ts_ns: int, passed: list[str]) -> None:
        """Tell who was put back, behind those that the scheduler `passed` by."""
        for request, place in self.put_back:
            name = request.request_id
            self._prefilling.pop(name, None)
            self._recording.event(
                "defer", name, ts_ns, cause="it waits for the next part of its input",
                queue_index=len(self._line) - 1 if place is None else place,
            )  # fmt: skip
            self._left.came(name)
        self.put_back.clear()
        self._left.tell_order(ts_ns, passed)


def _end_of(status: Any) -> tuple[Any, str, str]:
    name: str = status.name
    cause = name.removeprefix("FINISHED_").lower()
    told = _ENDED[id(status)] = status, ENDS.get(name, "finish"), cause
    return told
