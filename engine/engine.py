"""The engine: schedule, run, postprocess, until every request has ended.

The scheduler only says what it wants. Here, and nowhere else, requests change queues; blocks change
hands in the allocator; and both are written down as they happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from stepscope.engine.allocator import Allocator
from stepscope.engine.batch import DECODE, PREFILL, Batch, Row
from stepscope.engine.clock import Clock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors import Execution, Executor
from stepscope.engine.finishing import EOS, finish_reason
from stepscope.engine.plan import Action, Admit, Hold, PlanRefused, Preempt, Reject, Run, Weigh
from stepscope.engine.recording import Recording
from stepscope.engine.request import EOS_TOKEN, Request, Status
from stepscope.engine.schedulers import Scheduler
from stepscope.engine.state import State

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder

Observer = Callable[[dict[str, Any]], None]


class Ended(NamedTuple):
    """How a request ended: the event finish, reject or abort, and when."""

    request: Request
    event: str
    end_ns: int


class Engine:
    """Serves `workload`, requests in order of arrival, step by step on `clock`.

    `observer` gets a snapshot whenever a batch was formed. `ended` holds what became of every
    request, in the order in which they ended.
    """

    def __init__(
        self,
        config: EngineConfig,
        workload: Iterable[Request],
        scheduler: Scheduler,
        executor: Executor,
        clock: Clock,
        recorder: Recorder | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.config = config
        self.scheduler = scheduler
        self.executor = executor
        self.clock = clock
        self.state = State(config)
        self.ended: list[Ended] = []
        self._arrivals = iter(workload)
        self._next_arrival = next(self._arrivals, None)
        self._num_arrived = 0
        self._num_idle_steps = 0
        self._livelock: str | None = None
        self._seated: set[str] = set()
        self._last_in_slot: dict[int, Request] = {}
        self._recorder = recorder
        self._record = Recording(recorder, self.state, clock) if recorder else None
        self._allocate = Allocator(self.state, self._record)
        self._observer = observer

    def run(self) -> None:
        """Step until every request has ended, or the horizon or the watchdog ends them."""
        self._take_arrivals()
        while self._is_unfinished():
            if cause := self._cause_to_stop():
                self._abort_all(cause)
                return
            self.step()

    def step(self) -> None:
        """One step, three verbs."""
        batch = self.schedule()
        formed = self._counts()
        execution = self._run(batch)
        self.postprocess(batch, execution)
        self._livelock = self._livelock or execution.stop
        if self._record:
            self._record.stepped(batch, execution, formed)
        self.state.step += 1

    def schedule(self) -> Batch:
        """Let the scheduler form this step's batch, and perform what it asks for."""
        self.state.batch = Batch()
        self._seated.clear()
        num_left = self.config.max_actions_per_request * (self.state.num_requests + 1)
        for action in self.scheduler.schedule(self.state):
            self._perform(action)
            num_left -= 1
            if not num_left:
                self._livelock = f"watchdog: step {self.state.step} goes round in circles"
                break
        if self._record:
            self._record.queued()
        self.observe()
        return self.state.batch

    def postprocess(self, batch: Batch, execution: Execution) -> None:
        """Take what the step computed, and let go of the requests that are finished."""
        self._take_arrivals()
        if batch.rows and "masked-row-leak" in self.config.faults:
            self._keep_masked_rows()
        for row in batch.rows:
            request = row.request
            request.num_computed += row.num_tokens
            request.num_ever_computed = max(request.num_ever_computed, request.num_computed)
            self._append(request, execution.tokens.get(request.id, ()))

    def observe(self) -> None:
        """Show the observer, if there is one, what the engine holds now."""
        if self._observer:
            self._observer(self.snapshot())

    def snapshot(self) -> dict[str, Any]:
        """Return queues, batch, pools, and what the executor's device is at."""
        return {**self.state.snapshot(self.clock.now_ns()), **self.executor.snapshot()}

    def _run(self, batch: Batch) -> Execution:
        if batch.rows:
            self._num_idle_steps = 0
            return self.executor.run(batch, self.state.step, self.clock, self._recorder)
        self._num_idle_steps += 1
        began_ns = self.clock.now_ns()
        self.clock.advance(self.config.idle_ns)
        if self._next_arrival:
            self.clock.advance_to(self._next_arrival.arrival_ns)
        return Execution(self.clock.now_ns() - began_ns, "idle", {})

    def _perform(self, action: Action) -> None:
        match action:
            case Run():
                self._seat(action)
            case Admit():
                self._admit(action.request)
            case Preempt():
                self._preempt(action)
            case Reject():
                self._reject(action)
            case Hold():
                action.request.num_holds += action.resource == "kv-block"
                if self._record:
                    self._record.held(action)
            case Weigh() if self._record:
                self._record.weighed(action)

    def _seat(self, run: Run) -> None:
        request, num_tokens = run.request, run.num_tokens
        self._check(request, num_tokens, run.num_fed_back)
        end = request.num_computed + num_tokens
        self._allocate.claim_blocks(request, end)
        phase = PREFILL if request.is_prefill else DECODE
        num_again = min(end, request.num_ever_computed) - request.num_computed
        request.num_recomputed += max(0, num_again)
        row = Row(
            request, phase, num_tokens, request.num_computed,
            end == request.num_tokens + run.num_fed_back, num_again > 0, run.num_fed_back,
        )  # fmt: skip
        self._seated.add(request.id)
        self.state.batch.append(row)
        if self._record:
            self._record.row(row)

    def _check(self, request: Request, num_tokens: int, num_fed_back: int) -> None:
        batch = self.state.batch
        if request.status is not Status.RUNNING or request.id in self._seated:
            raise self._refused(f"{request.id} is {request.status.value} or in the batch already")
        num_left = request.num_tokens - request.num_computed
        if not (num_left if num_fed_back else 0) < num_tokens <= num_left + num_fed_back:
            raise self._refused(f"{num_tokens} tokens of {request.id} are not there to compute")
        if batch.num_batched_tokens + num_tokens > self.config.max_num_batched_tokens:
            raise self._refused(f"the tokens of {request.id} are over the budget")

    def _admit(self, request: Request) -> None:
        if request.status is not Status.WAITING:
            raise self._refused(f"{request.id} is admitted and {request.status.value}")
        if not self.state.num_free_seats:
            raise self._refused(f"{request.id} is admitted and every seat is taken")
        self._leave_queue(request)
        request.status = Status.RUNNING
        request.num_holds = 0
        self.state.running.append(request)
        self._allocate.claim_blocks(request, request.num_tokens)
        self._allocate.claim_slot(request)
        if request.slot is not None:
            self._last_in_slot[request.slot] = request
        if self._record:
            self._record.event(request, "resume" if request.num_preemptions else "admit")

    def _preempt(self, action: Preempt) -> None:
        request = action.request
        if request.status is not Status.RUNNING or request.id in self._seated:
            raise self._refused(f"{request.id} is preempted and {request.status.value}")
        if self._record:
            self._record.preempted(action)
            self._record.event(request, "preempt", action.cause, action.by, 0)
        self.state.running.remove(request)
        self._allocate.release(request)
        request.status = Status.WAITING
        request.num_computed = 0
        request.num_preemptions += 1
        self.state.waiting.appendleft(request)

    def _reject(self, action: Reject) -> None:
        if self._record:
            self._record.rejected(action)
        self._leave_queue(action.request)
        self._end(action.request, "reject", action.cause)

    def _append(self, request: Request, tokens: Iterable[int]) -> None:
        for token in tokens:
            self._append_token(request, token)
            if reason := finish_reason(request, self.config.faults):
                self.state.running.remove(request)
                self._end(request, "finish", reason if reason == EOS else None)
                return

    def _append_token(self, request: Request, token: int) -> None:
        request.num_generated += 1
        request.has_eos |= token == EOS_TOKEN
        if self._record:
            self._record.token(request, token)
            if request.num_generated == 1:
                self._record.event(request, "first-token")

    def _keep_masked_rows(self) -> None:
        for request in self._last_in_slot.values():
            if request.status is Status.ENDED:
                self._append_token(request, 0)

    def _end(self, request: Request, event: str, cause: str | None = None) -> None:
        self._allocate.release(request)
        request.status = Status.ENDED
        self.ended.append(Ended(request, event, self.clock.now_ns()))
        if self._record:
            self._record.event(request, event, cause)

    def _take_arrivals(self) -> None:
        now_ns = self.clock.now_ns()
        while self._next_arrival and self._next_arrival.arrival_ns <= now_ns:
            request = self._next_arrival
            self._num_arrived += 1
            request.arrival_order = self._num_arrived
            request.status = Status.WAITING
            self.state.waiting.append(request)
            if self._record:
                self._record.arrived(request)
            self._next_arrival = next(self._arrivals, None)

    def _leave_queue(self, request: Request) -> None:
        if self.state.waiting[0] is request:
            self.state.waiting.popleft()
        else:
            self.state.waiting.remove(request)

    def _is_unfinished(self) -> bool:
        if self._next_arrival and not self.state.waiting and not self.state.running:
            self.clock.advance_to(self._next_arrival.arrival_ns)
            self._take_arrivals()
        return bool(self.state.waiting or self.state.running)

    def _cause_to_stop(self) -> str | None:
        if self.config.horizon_ns is not None and self.clock.now_ns() >= self.config.horizon_ns:
            return "horizon: the run ends here"
        if self._num_idle_steps > self.config.max_idle_steps:
            return f"watchdog: nothing was scheduled in {self._num_idle_steps} steps"
        return self._livelock

    def _abort_all(self, cause: str) -> None:
        for request in (*self.state.running, *self.state.waiting):
            self._end(request, "abort", cause)
        self.state.running.clear()
        self.state.waiting.clear()

    def _counts(self) -> tuple[int, int, int, int]:
        state = self.state
        num_free = state.kv_blocks.num_free
        return self.clock.now_ns(), len(state.waiting), len(state.running), num_free

    def _refused(self, what: str) -> PlanRefused:
        return PlanRefused(what, where=f"{self.scheduler.name}, step {self.state.step}")
