"""A scheduler that knows nothing of mixed batches, as the engine had before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from stepscope.engine.config import OPTIONAL
from stepscope.engine.plan import Action, Admit, Defer, Preempt, Run
from stepscope.engine.requests.request import Request, Status
from stepscope.engine.schedulers import Scheduler
from stepscope.engine.state import State


@dataclass(frozen=True)
class PrefillFirst(Scheduler):
    """Prompts in chunks of at most `threshold`; decodes in the steps in which there are none."""

    threshold: int
    name: str = "paged"
    supports: ClassVar[frozenset[str]] = frozenset(OPTIONAL)

    def schedule(self, state: State) -> Iterator[Action]:
        left = state.config.max_num_batched_tokens
        decodes = [request for request in state.running if not request.is_prefill]
        for request in [request for request in state.running if request.is_prefill]:
            chunk = min(request.num_tokens - request.num_computed, self.threshold, left)
            yield Run(request, chunk) if chunk else self._over_budget(request, 0)
            left -= chunk
        while state.waiting:
            request = state.waiting[0]
            if deferral := self._obstacle(state, request, left):
                yield deferral
                break
            yield Admit(request)
            chunk = min(request.num_tokens - request.num_computed, self.threshold, left)
            yield Run(request, chunk)
            left -= chunk
        if left < state.config.max_num_batched_tokens:
            for request in decodes:
                yield Defer(request, "prompts go first", "phase", instead="prefill")
        else:
            yield from self._decode(state, decodes)

    def _obstacle(self, state: State, request: Request, left: int) -> Defer | None:
        if not state.num_free_running_slots:
            return Defer(request, "every running slot is taken", "seat", 1, 0)
        if not left:
            return self._over_budget(request, 0)
        needed = state.num_missing_blocks(request, request.num_tokens)
        if needed > state.kv_blocks.num_free:
            num_free = state.kv_blocks.num_free
            return Defer(request, "too few KV blocks are free", "kv-block", needed, num_free)
        return None

    def _over_budget(self, request: Request, left: int) -> Defer:
        wanted = min(request.num_tokens - request.num_computed, self.threshold)
        return Defer(request, "the token budget is spent", "token-budget", wanted, left)

    def _decode(self, state: State, decodes: list[Request]) -> Iterator[Action]:
        for request in decodes:
            while request.status is Status.RUNNING:
                if state.batch.num_batched_tokens == state.config.max_num_batched_tokens:
                    yield self._over_budget(request, 0)
                    break
                needed = state.num_missing_blocks(request, request.num_tokens)
                if needed <= state.kv_blocks.num_free:
                    yield Run(request, 1)
                    break
                unscheduled = [
                    each for each in state.running if each.id not in state.batch.scheduled
                ]
                newest = max(unscheduled, key=lambda each: each.age)
                yield Preempt(newest, f"{request.id} needs its blocks", request, needed)
