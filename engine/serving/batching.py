"""How a request gets its row in the batch, and what no policy may ask for."""

from __future__ import annotations

from stepscope.engine.batch import DECODE, PREFILL, Row
from stepscope.engine.plan import PlanRefused, Run
from stepscope.engine.requests.request import Status
from stepscope.engine.serving.allocator import Allocator
from stepscope.engine.serving.recording import Recording
from stepscope.engine.state import State


class Batching:
    """Puts running requests into the batch being formed, with the blocks for their tokens."""

    def __init__(self, state: State, allocate: Allocator, record: Recording | None) -> None:
        self._state = state
        self._config = state.config
        self._allocate = allocate
        self._record = record

    def schedule(self, run: Run) -> None:
        """Give a request its row; PlanRefused for what breaks an invariant of the engine."""
        request, batch = run.request, self._state.batch
        if request.id in batch.scheduled and "scheduled-twice" in self._config.faults:
            row = Row(request, DECODE, run.num_tokens, request.num_tokens, True, False)
        else:
            phase = PREFILL if request.is_prefill else DECODE
            self._check(run)
            self._check_budget(run, phase)
            row = self._row(run, phase)
        self._allocate.claim_blocks(request, row.num_kv_tokens)
        batch.append(row)
        if self._record:
            self._record.row(row)

    def _row(self, run: Run, phase: str) -> Row:
        request = run.request
        end = request.num_computed + run.num_tokens
        num_again = min(end, request.num_ever_computed) - request.num_computed
        request.num_recomputed += max(0, num_again)
        is_last_chunk = end == request.num_tokens + run.num_fed_back + run.num_draft
        row = Row(
            request, phase, run.num_tokens, request.num_computed,
            is_last_chunk or "token-of-partial-prefill" in self._config.faults,
            num_again > 0, run.num_fed_back, run.num_draft,
        )  # fmt: skip
        if self._config.deferred_output and phase is DECODE:
            row.is_deferred = request.sampled_step == self._state.step - 1
            is_naive = "placeholder-read-as-token" in self._config.faults
            row.reads_placeholder = is_naive and not row.is_deferred
        return row

    def _check(self, run: Run) -> None:
        request, batch = run.request, self._state.batch
        if request.status is not Status.RUNNING or request.id in batch.scheduled:
            raise PlanRefused(f"{request.id} is {request.status.value} or in the batch already")
        num_beyond = run.num_fed_back + run.num_draft
        num_left = request.num_tokens - request.num_computed
        if not (num_left if num_beyond else 0) < run.num_tokens <= num_left + num_beyond:
            raise PlanRefused(f"{run.num_tokens} tokens of {request.id} are not there to compute")
        if run.num_draft and self._config.deferred_output:
            raise PlanRefused(f"{request.id} has drafts, and nobody knows yet what they follow")

    def _check_budget(self, run: Run, phase: str) -> None:
        batch = self._state.batch
        num_left = self._config.max_num_batched_tokens - batch.num_batched_tokens
        if run.num_tokens > num_left:
            raise PlanRefused(f"the tokens of {run.request.id} are over the budget")
        if "reserve-not-held" in self._config.faults:
            return
        if phase is PREFILL and run.num_tokens > num_left - batch.num_reserved:
            raise PlanRefused(f"the tokens of {run.request.id} are reserved for decodes")
