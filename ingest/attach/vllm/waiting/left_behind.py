"""Tells who was left out of a batch and why, each reason once for as long as it holds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, dropwhile, islice
from typing import Any

from stepscope.ingest.attach.scheduler_recording import LeftOut, SchedulerRecording
from stepscope.ingest.attach.vllm.waiting.line import WaitingLine
from stepscope.ingest.attach.vllm.waiting.why_left_out import (
    SKIPPED,
    Call,
    of_considered,
    of_head,
    of_pause,
    of_running,
)

BEHIND = "behind the head of the queue"
NEAR = 8
"""So many behind the head are told who it is; those further behind, when they come near."""


class LeftBehind:
    """Who waits, and what was told of each.

    A step costs as much as changed in it: who was looked at, who came, and the head. All others
    are behind the head, which was told of them when they came.
    """

    def __init__(self, scheduler: Any, line: WaitingLine, recording: SchedulerRecording) -> None:
        self._scheduler = scheduler
        self._line = line
        self._recording = recording
        self._told: dict[str, LeftOut] = {}
        self._fresh: dict[str, None] = {}
        self._heads: dict[str, None] = {}
        self._skipped_running: dict[str, LeftOut] = {}
        self.order: list[str] | None = None
        """The line as it was told last, where requests wait in several queues."""
        self._last_head: str | None = None
        self._has_moved = False

    def came(self, name: str) -> None:
        """A request came into the queue."""
        self._skipped_running.pop(name, None)
        self._fresh[name] = None
        self._has_moved = True

    def left(self, names: Iterable[str]) -> dict[str, LeftOut]:
        """Requests left the queue, or ended; gives what was last told of each while it waited."""
        self._has_moved = True
        told: dict[str, LeftOut] = {}
        if not (self._fresh or self._heads or self._skipped_running or self._told):
            return told  # nobody waits, and nothing was told of anybody: as at most ends
        for name in names:
            self._fresh.pop(name, None)
            self._heads.pop(name, None)
            self._skipped_running.pop(name, None)
            if (last := self._told.pop(name, None)) is not None:
                told[name] = last
        return told

    def was_unready(self, name: str) -> bool:
        """Whether it was last told that the request was not ready."""
        told = self._told.get(name)
        return told is not None and told.resource in SKIPPED

    def tell_waiting(self, ts_ns: int, call: Call) -> None:
        """Tell of those that wait after a call of the scheduler."""
        now = {
            looked.request.request_id: of_considered(self._scheduler, call, looked)
            for looked in call.looked
            if looked.request.status.name != "RUNNING"
        }
        head = self._head(now)
        if head is not None and head.request_id not in now:
            now[head.request_id] = of_head(self._scheduler, call, head)
        name = None if head is None else head.request_id
        if self._has_moved or name != self._last_head:
            self._tell_near(name, now)
        for other in chain(self._fresh, self._heads):  # in an order that no hash decides
            now.setdefault(other, LeftOut(other, "queue", BEHIND))
        self._fresh.clear()
        self._tell(ts_ns, now)

    def _tell_near(self, head: str | None, now: dict[str, LeftOut]) -> None:
        """Name the head to those right behind it."""
        self._last_head, self._has_moved = head, False
        names = (request.request_id for request in self._line)
        behind = islice(dropwhile(lambda name: name != head, names), 1, NEAR + 1)
        for name in behind if head is not None else ():
            if not self.was_unready(name):
                now.setdefault(name, LeftOut(name, "queue", BEHIND, holder=head))

    def tell_order(self, ts_ns: int, passed: list[str]) -> None:
        """Where there are two queues, requests move between them, and the line is told whole.

        Several that were `passed` by may have been put back in another order.
        """
        is_several = self._line.has_several()
        if not is_several and self.order is None and len(passed) < 2:
            return
        names = [request.request_id for request in self._line]
        as_ever = names[: len(passed)] == passed and not is_several and self.order is None
        if names != self.order and not as_ever:
            self._recording.queue_order(ts_ns, names)
        self.order = names if is_several else None

    def tell_paused(self, ts_ns: int) -> None:
        """Tell of the head that the engine was paused: no step follows that could say so."""
        head = self._head({})
        paused = of_pause(self._scheduler, head) if head is not None else None
        if paused is not None:
            self._tell(ts_ns, {paused.request: paused})

    def tell_running(self, ts_ns: int, call: Call, scheduled: dict[str, int]) -> None:
        """Tell of those that run and are not in the batch."""
        left = []
        for request in self._scheduler.running:
            name = request.request_id
            if name in scheduled:
                continue
            reason = of_running(self._scheduler, call, request)
            if self._skipped_running.get(name) != reason:
                self._skipped_running[name] = reason
                left.append(reason)
        self._recording.left_out(ts_ns, left)

    def _tell(self, ts_ns: int, now: dict[str, LeftOut]) -> None:
        changed = [reason for name, reason in now.items() if self._told.get(name) != reason]
        self._told.update((reason.request, reason) for reason in changed)
        for name, reason in now.items():
            if reason.resource == "queue" or reason.resource in SKIPPED:
                self._heads.pop(name, None)
            else:
                self._heads[name] = None
        if changed:
            self._recording.left_out(ts_ns, changed)

    def _head(self, now: dict[str, LeftOut]) -> Any:
        """The first in line that is not passed by because it is not ready."""
        for request in self._line:
            reason = now.get(request.request_id) or self._told.get(request.request_id)
            if reason is None or reason.resource not in SKIPPED:
                return request
        return None
