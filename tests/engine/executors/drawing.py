"""A policy that decides by lot: all that it draws is legal, and none of it shows in outputs."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from stepscope.engine.plan import Action, Admit, Preempt, Run
from stepscope.engine.requests.request import Request
from stepscope.engine.schedulers import Scheduler
from stepscope.engine.state import State


class Drawn(Scheduler):
    """Admits, chunks, skips, preempts and drafts at random; prompts are laid out before decodes."""

    name = "drawn"

    def __init__(self, seed: int, width: int = 0) -> None:
        self._random = Random(seed)
        self._width = width

    def schedule(self, state: State) -> Iterator[Action]:
        """Yield what is drawn for this step; somebody always runs."""
        draw = self._random
        if len(state.running) > 1 and draw.random() < 0.2:
            yield self._preempt(state, draw.choice(state.running), state.running[0])
        while state.waiting and (not state.running or draw.random() < 0.5):
            head = state.waiting[0]
            fits = state.num_missing_blocks(head, head.max_kv_tokens) <= self._num_spare(state)
            if not state.num_free_running_slots or not fits:
                break
            yield Admit(head)
        runnable = [each for each in state.running if draw.random() < 0.8] or state.running[:1]
        for request in sorted(runnable, key=lambda each: not each.is_prefill):
            if run := self._run(state, request):
                yield run

    def _run(self, state: State, request: Request) -> Run | None:
        left = state.config.max_num_batched_tokens - state.batch.num_batched_tokens
        num_tokens = request.num_tokens - request.num_computed
        if request.is_prefill:
            chunk = min(left, self._random.randint(1, num_tokens))
            return Run(request, chunk) if chunk else None
        room = min(left - 1, request.max_tokens - request.num_generated - 1)
        num_draft = min(self._random.randint(0, self._width), room)
        if num_draft > 0:
            return Run(request, 1 + num_draft, num_draft=num_draft)
        return Run(request, 1) if left else None

    def _num_spare(self, state: State) -> int:
        """Blocks that nobody who runs will ever need."""
        promised = sum(
            state.num_missing_blocks(request, request.max_kv_tokens) for request in state.running
        )
        return state.kv_blocks.num_free - promised

    def _preempt(self, state: State, victim: Request, by: Request) -> Preempt:
        return Preempt(victim, "drawn", by, 0)
