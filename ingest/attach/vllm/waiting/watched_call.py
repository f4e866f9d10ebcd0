"""What is seen of one call of `schedule()`: who was looked at, and what was called for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.vllm.block_pool import KVBlocks
from stepscope.ingest.attach.vllm.engine_config import FOLLOWED
from stepscope.ingest.attach.vllm.waiting.line import WaitingLine
from stepscope.ingest.attach.vllm.waiting.why_left_out import Call, Looked, Shortage


class WatchedCall:
    """Follows the waiting requests that the scheduler looks at.

    `allocate_slots` is called for each request that runs, so it is wrapped only from when the first
    that waits is looked at until the call ends: a step in which nobody waits costs nothing here.
    """

    def __init__(
        self, scheduler: Any, line: WaitingLine, blocks: KVBlocks, hooks: Hooks,
        now_ns: Callable[[], int],
    ) -> None:  # fmt: skip
        self.call = Call()
        self._now_ns = now_ns
        self._scheduler = scheduler
        self._blocks = blocks
        self._hooks = hooks
        self._manager = scheduler.kv_cache_manager
        spec = getattr(scheduler.vllm_config, "speculative_config", None)
        self._slots = getattr(spec, "max_num_new_slots_for_drafting", 0) if spec is not None else 0
        self._coordinator = getattr(self._manager, "coordinator", None)
        takes = FOLLOWED["kv_cache_manager"]
        self._allocate: Any = hooks.find(self._manager, "allocate_slots", takes["allocate_slots"])
        self._count: Any = hooks.find(self._coordinator, "get_num_blocks_to_allocate")
        self._counted: list[int] = []
        name = "get_computed_blocks"
        if getattr(scheduler, "lora_config", None):  # it tells who waits for an adapter's place
            hooks.around(self._manager, name, takes[name], after=self._looked_up)
        self.is_blind = not all(hasattr(queue, "peek_request") for queue in line.queues)
        self._sees_taken_out = all(hasattr(queue, "pop_request") for queue in line.queues)
        self._ran: set[str] = set()
        for queue in line.queues:
            hooks.instead(queue, "peek_request", (), self._peeking)
            hooks.instead(queue, "pop_request", (), self._popping)

    def at_begin(self) -> Callable[[bool | None], None] | None:
        """What is to be called as a call begins, if anything: ranks may defer their prefills."""
        parallel = getattr(self._scheduler.vllm_config, "parallel_config", None)
        has_to = self.is_blind or getattr(parallel, "data_parallel_size", 1) > 1
        return self.begin if has_to else None

    def begin(self, throttles: bool | None) -> None:
        """A call of the scheduler begins; `throttles` is what it is given."""
        if self.is_blind:
            self.call.began_ns = self._now_ns()
            self._ran = {request.request_id for request in self._scheduler.running}
        self.call.defers_prefills = False
        if throttles:
            is_saturated = getattr(self._scheduler, "prefill_capacity_bound", False)
            decodes = (not request.is_prefill_chunk for request in self._scheduler.running)
            self.call.defers_prefills = not is_saturated and any(decodes)

    def end(self, output: Any, preempted: Sequence[str]) -> list[Any]:
        """Take what it came to; give the requests that were admitted."""
        scheduler, call = self._scheduler, self.call
        total, count = output.total_num_scheduled_tokens, len(output.num_scheduled_tokens)
        most = scheduler.scheduler_config.max_num_batched_tokens
        call.budget_left = scheduler.max_num_scheduled_tokens - total
        call.input_left = most - total - self._slots * (count + 1)
        call.preempted = preempted
        call.scheduled = output.num_scheduled_tokens
        if self.is_blind:
            return [each for each in scheduler.running if each.request_id not in self._ran]
        if not call.looked:
            return []
        vars(self._manager).pop("allocate_slots", None)
        if self._count is not None:
            vars(self._coordinator).pop("get_num_blocks_to_allocate", None)
        return [each.request for each in call.looked if each.request.status.name == "RUNNING"]

    def _peeking(self, peek: Callable[..., Any]) -> Callable[..., Any]:
        """The scheduler looks at the next in line: what it calls for this one is evidence.

        Whoever was looked at before is out of the queue, or was only compared: versions with two
        queues and priorities look at the head of each, and take the better one.
        """
        hooks, sees_taken_out = self._hooks, self._sees_taken_out

        def hooked(*args: Any, **kwargs: Any) -> Any:
            request, looked = peek(*args, **kwargs), self.call.looked
            if hooks.is_stopped or (looked and looked[-1].request is request):
                return request
            try:
                if not looked:
                    self.call.began_ns = self._now_ns()
                    self._watch_allocations()
                elif sees_taken_out and not looked[-1].was_taken_out:
                    looked.pop()
                looked.append(Looked(request))
            except Exception as error:
                hooks.stop(error)
            return request

        return hooked

    def _popping(self, pop: Callable[..., Any]) -> Callable[..., Any]:
        """Who was looked at is out of the queue: admitted, or passed by until the call ends."""

        def hooked(*args: Any, **kwargs: Any) -> Any:
            request, looked = pop(*args, **kwargs), self.call.looked
            if looked and looked[-1].request is request:
                looked[-1].was_taken_out = True
            return request

        return hooked

    def _looked_up(self, _: object, request: Any) -> None:
        if self.call.looked and self.call.looked[-1].request is request:
            self.call.looked[-1].was_looked_up = True

    def _watch_allocations(self) -> None:
        """From the first that waits until the call ends: whoever runs has got its blocks then."""
        if self._allocate is not None:
            vars(self._manager)["allocate_slots"] = self._allocate_watched
        if self._allocate is not None and self._count is not None:
            vars(self._coordinator)["get_num_blocks_to_allocate"] = self._count_watched

    def _count_watched(self, *args: Any, **kwargs: Any) -> int:
        number: int = self._count(*args, **kwargs)
        self._counted.append(number)
        return number

    def _allocate_watched(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Allocate for a waiting request; where it gets nothing, keep how much was counted."""
        self._counted.clear()
        if only := self._blocks.only_group:
            self._blocks.acts_for = request.request_id, *only
        try:
            given = self._allocate(request, *args, **kwargs)
        finally:
            self._blocks.acts_for = None
        if given is None:
            self._hooks.safely(self._got_nothing, request, kwargs)
        return given

    def _got_nothing(self, request: Any, kwargs: dict[str, Any]) -> None:
        if not self.call.looked or self.call.looked[-1].request is not request:
            return
        has_watermark = kwargs.get("has_scheduled_reqs", True)
        self.call.looked[-1].shortage = Shortage(
            [*self._counted],
            bool(kwargs.get("full_sequence_must_fit")),
            kwargs.get("reserved_blocks", 0),
            getattr(self._manager, "watermark_blocks", 0) if has_watermark else 0,
            self._blocks.count_free(),
        )
