"""Why requests wait in an SGLang scheduler: what came of those that were to be admitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stepscope.ingest.attach.telling import LeftOut

NO_ROOM = "the KV cache has no room for its tokens and what those that run may still generate"
NO_BUDGET = "the batch has taken as many tokens or requests of prefill as it may"
BEHIND = "it stands behind a request that was not admitted"
HELD_BACK = "prefills are held back between decodes"
ALL_RUN = "as many requests run as may"
STILL_FULL = "the KV cache had no room for a request, and nobody who runs has left since"
UNKNOWN = "SGLang does not say why"


class Reasons:
    """What is known, in one call of the scheduler, of those who are left out."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._told: dict[str, LeftOut] = {}
        self._refused: dict[str, tuple[str, int | None]] = {}
        self._was_full = self._lacked_room = self.is_spent = False
        self.is_deferred = False

    def begin(self) -> None:
        """Begin a call."""
        self._was_full = self._scheduler.running_batch.batch_is_full
        self._refused.clear()
        self.is_deferred = self.is_spent = False

    def tried(self, adder: Any, req: Any, result: Any) -> None:
        """Note what came of a request."""
        if result.name == "NO_TOKEN":
            self._refused[req.rid] = "kv-token", int(adder.rem_total_tokens)
            self._lacked_room = True
        elif result.name == "OTHER":
            self._refused[req.rid] = "token-budget", None

    def forget(self, name: str) -> None:
        """A request waits no more, or anew."""
        self._told.pop(name, None)

    def of(self, queue: list[Any], running: Any) -> Iterator[LeftOut]:
        """Give why each request waits, where it is another reason than was told before."""
        behind: str | None = None
        for req in queue:
            found = self._of(req.rid, running, behind)
            if behind is None and found.resource in ("kv-token", "token-budget", "seat"):
                behind = req.rid
            last = self._told.get(req.rid)
            if last is None or _said(last) != _said(found):
                yield found
            self._told[req.rid] = found

    def _of(self, name: str, running: Any, behind: str | None) -> LeftOut:
        if self.is_deferred:
            return LeftOut(name, "phase", HELD_BACK)
        if name in self._refused:
            resource, available = self._refused[name]
            reason = NO_ROOM if resource == "kv-token" else NO_BUDGET
            return LeftOut(name, resource, reason, available=available)
        if behind is not None:
            return LeftOut(name, "queue", BEHIND, holder=behind)
        return self._of_first(name, running)

    def _of_first(self, name: str, running: Any) -> LeftOut:
        """Why the first in the queue was not looked at."""
        if self.is_spent:
            return LeftOut(name, "token-budget", NO_BUDGET)
        scheduler, num_running = self._scheduler, len(running.reqs)
        if scheduler.get_num_allocatable_reqs(num_running, running_batch=running) <= 0:
            return LeftOut(name, "seat", ALL_RUN, 1, 0)
        if self._was_full and self._lacked_room:
            return LeftOut(name, "kv-token", STILL_FULL)
        return LeftOut(name, None, UNKNOWN)


def _said(left: LeftOut) -> tuple[str | None, str, str | None]:
    return left.resource, left.reason, left.holder
