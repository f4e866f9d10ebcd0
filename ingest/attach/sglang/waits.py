"""Why requests wait in an SGLang scheduler: what came of those that were to be admitted.

SGLang stores no reason. It looks at its queue in order, and stops at the first that it cannot
admit; what it asked and was answered on the way tells where it stopped, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from stepscope.ingest.attach.scheduler_recording import LeftOut

NO_ROOM = "the KV cache has no room for its tokens and what those that run may still generate"
ROOM_TAKEN = "those that were admitted took the room that the KV cache had"
NO_BUDGET = "the batch has taken as many tokens of prefill as it may"
MOST_PREFILLS = "the batch has taken as many requests of prefill as it may"
CHUNK_FIRST = "the chunk of a longer prompt takes what the batch may take of prefill"
BEHIND = "it stands behind a request that was not admitted"
HELD_BACK = "prefills are held back between decodes"
FEW_SLOTS = "prefills are held back until more requests may be run at once"
ALL_RUN = "as many requests run as may"
STILL_FULL = "the KV cache had no room for a request, and nobody who runs has left since"
PREFETCH = "its prefix is being loaded"
OTHER_POOLING = "the batch is of requests that are read out in another way"
COMPILING = "its grammar is being compiled"
PREFILLS_FIRST = "the batch is of prefills, which go before decodes"
NO_ROOM_MIXED = "the prefills left no room for its next token"
UNDER_WAY = "its last token is under way"
PAUSED = "the engine is paused"
UNKNOWN = "SGLang does not say why"


class Short(NamedTuple):
    """What a request that was tried, or the whole batch, was short of."""

    resource: str | None
    reason: str
    needed: int | None = None
    available: int | None = None
    holder: str | None = None

    def of(self, name: str) -> LeftOut:
        """The same, said of a request."""
        return LeftOut(name, *self)


FULL = Short("kv-token", STILL_FULL)
RUNNING_FULL = Short("seat", ALL_RUN, 1, 0)
DEFERRED = Short("phase", HELD_BACK)
QUEUED = ("kv-token", "token-budget", "seat")
"""What the first in the queue is short of, and makes the others wait behind it."""


class Reasons:
    """What is known, in one call of the scheduler, of those who are left out."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._told: dict[str, LeftOut] = {}
        self._full_of = Short(None, UNKNOWN)
        self.begin()

    def begin(self) -> None:
        """Begin a call."""
        self._put_back: dict[str, Short] = {}
        self._refused: dict[str, Short] = {}
        self._asked: tuple[int, int] | None = None
        self._stopped: Short | None = None
        self._last_tried: str | None = None
        self._first: Any = None
        self._loading: list[Any] = []
        self._is_looked_at = self._was_asked = self._is_full = self._has_stopped = False
        self._chunk = self._scheduler.chunked_req
        self.is_deferred = False

    # ── what SGLang asked, and was answered ──────────────────────────────────────────────────

    def sorted(self) -> None:
        """The queue was sorted: the scheduler looks at it."""
        self._is_looked_at = True

    def checked(self, adder: Any, total_tokens: int) -> None:
        """The room for a request was asked for, its cached prefix kept: it needs more than that."""
        self._asked = total_tokens + 1, int(adder.rem_total_tokens)

    def tried(self, adder: Any, req: Any, result: Any) -> None:
        """Note what came of a request."""
        asked, self._asked = self._asked, None
        self._last_tried = req.rid
        self._first = next(iter(adder.can_run_list), None)
        if result.name == "CONTINUE":
            return
        self._has_stopped = True
        is_admitted = any(req is each for each in adder.can_run_list[-1:])
        is_room = result.name == "NO_TOKEN"
        short = _room(adder, asked, is_admitted) if is_room else self._budget(adder)
        if is_admitted:
            self._stopped = short
        else:
            self._refused[req.rid] = short

    def looked_at_budget(self, adder: Any, result: Any) -> None:
        """Note whether the batch may take more prefills."""
        if result.name == "OTHER":
            self._has_stopped = True
            self._stopped = self._stopped or self._budget(adder)

    def lacks_adapter(self, name: str, short: Short) -> None:
        """Note whose adapter keeps it out."""
        self._refused[name] = short

    def loads(self, times: Any) -> None:
        """Note that what is cached of a request, known by its times, is not loaded yet."""
        self._loading.append(times)

    def looked(self, is_full: bool) -> None:
        """It has looked for prefills; `is_full`: it looks for no more until somebody leaves."""
        self._was_asked, self._is_full = True, is_full
        if self._is_looked_at and is_full:
            short_of = {each.resource for each in (*self._refused.values(), self._stopped) if each}
            self._full_of = FULL if "kv-token" in short_of else RUNNING_FULL
        elif is_full and self._full_of.resource is None:
            self._full_of = RUNNING_FULL

    def put_back(self, name: str, short: Short) -> None:
        """A request that ran waits again, for this."""
        self._told.pop(name, None)
        self._put_back[name] = short

    def forget(self, name: str) -> None:
        """A request waits no more."""
        self._told.pop(name, None)
        self._put_back.pop(name, None)

    def went_on(self, in_batch: Iterable[str]) -> list[str]:
        """Of those who are in the batch, whoever was told of before: that holds no longer."""
        return [name for name in in_batch if self._told.pop(name, None) is not None]

    # ── what follows ─────────────────────────────────────────────────────────────────────────

    def new(self, left: Iterable[LeftOut]) -> Iterator[LeftOut]:
        """Of these reasons, those that were not told of a request before."""
        for found in left:
            last = self._told.get(found.request)
            if last is None or _said(last) != _said(found):
                yield found
            self._told[found.request] = found

    def of_waiting(self, queue: list[Any]) -> Iterator[LeftOut]:
        """Why each request of the queue waits."""
        behind: str | None = None
        names = [req.rid for req in queue]
        passed = set(names[: names.index(last)]) if (last := self._last_tried) in names else set()
        for req in queue:
            name = req.rid
            found = self._of(req, behind, is_passed_by=name in passed)
            if behind is None and name not in self._put_back and found.resource in QUEUED:
                behind = name
            yield found

    def of_running(self, requests: Iterable[Any], plan: Any) -> Iterator[LeftOut]:
        """Why those that run are not in the batch."""
        decoding = plan.running_batch
        for req in requests:
            if req is self._scheduler.chunked_req:
                yield (DEFERRED if self.is_deferred else Short(None, UNKNOWN)).of(req.rid)
            elif any(req is each for each in decoding.reqs):
                yield self._of_decoding(decoding, plan.batch_to_run).of(req.rid)
            elif self._scheduler.enable_overlap:
                yield LeftOut(req.rid, "last-token", UNDER_WAY)
            else:
                yield LeftOut(req.rid, None, UNKNOWN)

    def _of_decoding(self, decoding: Any, batch: Any) -> Short:
        """Why those that decode are not in a batch of prefills."""
        is_mixed = self._scheduler.is_mixed_chunk
        if is_mixed and not (batch.return_logprob or decoding.return_logprob):
            return Short("kv-token", NO_ROOM_MIXED)
        return Short("phase", PREFILLS_FIRST)

    def _of(self, req: Any, behind: str | None, *, is_passed_by: bool) -> LeftOut:
        own = self._put_back.get(req.rid) or (DEFERRED if self.is_deferred else self._own(req))
        if own is not None:
            return own.of(req.rid)
        if is_passed_by or self._has_looked_at_all():
            return self._of_passed_by(req).of(req.rid)
        if behind is not None:
            return LeftOut(req.rid, "queue", BEHIND, holder=behind)
        return self._of_first().of(req.rid)

    def _own(self, req: Any) -> Short | None:
        """What was asked of this request alone, and answered against it."""
        is_loading = any(req.time_stats is each for each in self._loading)
        return Short("prefetch", PREFETCH) if is_loading else self._refused.get(req.rid)

    def _has_looked_at_all(self) -> bool:
        return self._is_looked_at and not self._has_stopped and not self._is_full

    def _budget(self, adder: Any) -> Short:
        """What there is no more of, where the room would have been enough."""
        most, admitted = adder.prefill_max_requests, adder.can_run_list
        if most is not None and len(admitted) >= most:
            return Short("seat", MOST_PREFILLS, 1, 0)
        left = (adder.rem_input_tokens, adder.rem_chunk_tokens)
        available = max(int(min(each for each in left if each is not None)), 0)
        if self._chunk is not None and any(self._chunk is each for each in admitted):
            return Short("token-budget", CHUNK_FIRST, None, available, self._chunk.rid)
        return Short("token-budget", NO_BUDGET, None, available)

    def _of_passed_by(self, req: Any) -> Short:
        """Why others behind it were tried, and it was not."""
        if self._first is not None and _is_pooled(self._first) != _is_pooled(req):
            return Short("selection", OTHER_POOLING)
        return Short(None, UNKNOWN)

    def _of_first(self) -> Short:
        """Why the first in the queue was not looked at."""
        if self._is_looked_at and self._stopped is not None:
            return self._stopped
        if self._is_full:
            return self._full_of
        if self._was_asked and not self._is_looked_at and self._scheduler.min_free_slots_delayer:
            return Short("seat", FEW_SLOTS)
        return Short(None, UNKNOWN)


def _is_pooled(req: Any) -> bool:
    """Whether a request is read out at places of its own: a batch is of such, or of none."""
    return getattr(req, "token_indices_to_pool", None) is not None


def _room(adder: Any, asked: tuple[int, int] | None, is_admitted: bool) -> Short:
    if is_admitted:
        return Short("kv-token", ROOM_TAKEN)
    return Short("kv-token", NO_ROOM, *(asked or (None, int(adder.rem_total_tokens))))


def _said(left: LeftOut) -> tuple[str | None, str, str | None]:
    return left.resource, left.reason, left.holder
