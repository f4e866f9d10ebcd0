"""Who is preempted, for whom and by what need: as the locals of vLLM's `schedule` say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stepscope.ingest.attach.hooks import Hooks, engine_frame
from stepscope.ingest.attach.scheduler_recording import LeftOut
from stepscope.ingest.attach.vllm.block_pool import KVBlocks
from stepscope.ingest.attach.vllm.engine_config import FOLLOWED, preempts_inline

NEEDS_BLOCKS = "a running request needs KV blocks"


class Preempted(NamedTuple):
    """Why a request was preempted, for whom, and where in the queue it stands then."""

    reason: LeftOut
    by_request: str | None
    place: int | None = None


class Preemptions:
    """What is `found` until it is told, and how many tokens each had computed that `lost` them."""

    def __init__(self, scheduler: Any, blocks: KVBlocks) -> None:
        self.found: list[Preempted] = []
        self.lost: dict[str, int] = {}
        self._scheduler, self._blocks = scheduler, blocks
        self._victim: Preempted | None = None

    def watch(self, hooks: Hooks, after: Callable[..., None]) -> None:
        """Follow them; `after` is called when a request that is preempted stands in the queue.

        Versions without a function of it preempt amid `schedule`: free, then to the front.
        """
        scheduler, around = self._scheduler, hooks.around
        if preempts_inline(scheduler):
            around(scheduler.kv_cache_manager, "free", ("request",), before=self._may_begin)
            around(scheduler.waiting, "prepend_request", ("request",), after=after)
        else:
            name = "_preempt_request"
            around(scheduler, name, FOLLOWED["scheduler"][name], before=self._begin, after=after)

    @property
    def has_begun(self) -> bool:
        """Whether a request is being preempted."""
        return self._victim is not None

    def _may_begin(self, request: Any) -> None:
        """A request's blocks are freed: it is preempted, unless it has ended."""
        if request.status.name == "RUNNING":  # whoever has ended is not any more
            self._begin(request)

    def _begin(self, request: Any) -> None:
        """A request is about to be preempted, in this thread."""
        name = request.request_id
        self.lost[name] = request.num_computed_tokens
        frame = engine_frame("schedule")
        if frame.f_code.co_name != "schedule":
            cause = f"preempted by {frame.f_code.co_name}"
            self._victim = Preempted(LeftOut(name, None, cause), None)
            return
        told, free = frame.f_locals, self._blocks.count_free()
        needs = told.get("request")
        needed = self._needed_by(needs, told.get("num_new_tokens"))
        reason = LeftOut(name, "kv-block", NEEDS_BLOCKS, needed, free)
        self._victim = Preempted(reason, getattr(needs, "request_id", None))

    def end(self, place: int | None) -> None:
        """It stands in the queue again, at this place."""
        if self._victim is not None:
            self.found.append(self._victim._replace(place=place))
            self._victim = None

    def _needed_by(self, request: Any, num_tokens: int | None) -> int | None:
        if request is None or num_tokens is None:
            return None
        ahead = getattr(self._scheduler, "num_lookahead_tokens", 0)
        end = min(request.num_computed_tokens + num_tokens + ahead, self._scheduler.max_model_len)
        return self._blocks.missing_for(request, end)
