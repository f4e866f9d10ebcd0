"""The engine: schedule, run, postprocess, until every request has ended.

The scheduler only says what it wants. What it asks for is done in three places, and nowhere else:
requests change queues in `lifecycle`, get rows in `batching`, and tokens in `outputs`. All three
are written down as they happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from stepscope.engine.batch import Batch, Row, StepKinds
from stepscope.engine.clock import Clock
from stepscope.engine.config import OPTIONAL, EngineConfig
from stepscope.engine.executors import Execution, Executor
from stepscope.engine.plan import (
    Action,
    Admit,
    ConsiderBucket,
    Defer,
    Load,
    PlanRefused,
    Preempt,
    Promote,
    Reject,
    Reserve,
    Run,
)
from stepscope.engine.requests.finishing import Ended
from stepscope.engine.requests.request import Request, Status
from stepscope.engine.schedulers import Scheduler
from stepscope.engine.serving.allocator import Allocator
from stepscope.engine.serving.batching import Batching
from stepscope.engine.serving.lifecycle import Lifecycle
from stepscope.engine.serving.observing import ChangeObserver, Observer, announced
from stepscope.engine.serving.outputs import Outputs
from stepscope.engine.serving.recording import Recording
from stepscope.engine.state import State
from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder

TIMED_OUT = "the client timed out"  # what the timeout of a run is
DIES_IN = 5  # the step of the fault `executor-dies`: some run by then, and others wait


class Engine:
    """Serves `workload`, requests in order of arrival, step by step on `clock`.

    `observer` gets a snapshot whenever a batch was formed, and behind every recorded change if it
    is a `ChangeObserver`. `ended` holds what became of every request, in the order in which they
    ended, `kinds` what the steps were. `stopped` says why the run was given up, and is None where
    it came to its end or its timeout. ConfigError where the policy knows nothing of a part of the
    engine that is on.
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
        on_end: Callable[[Ended], None] | None = None,
    ) -> None:
        _check_support(config, scheduler)
        self.config = config
        self.scheduler = scheduler
        self.executor = executor
        self.clock = clock
        self.state = State(config)
        self.kinds = StepKinds()
        self.stopped: str | None = None
        self._num_idle_steps = 0
        self._livelock: str | None = None
        self._observer = observer
        if recorder and isinstance(observer, ChangeObserver):
            recorder = announced(recorder, self._show_change)
        self._recorder = recorder
        self._record = Recording(recorder, self.state, clock) if recorder else None
        self._allocate = Allocator(self.state, self._record)
        self._lifecycle = Lifecycle(
            self.state, workload, self._allocate, self._record, clock, on_end
        )
        self._batching = Batching(self.state, self._allocate, self._record)
        self.outputs = Outputs(self.state, self._lifecycle, self._record, clock)

    @property
    def ended(self) -> list[Ended]:
        """What became of every request that ended."""
        return self._lifecycle.ended

    def run(self) -> None:
        """Step until every request has ended, or the timeout or the watchdog ends them."""
        self.take_arrivals()
        while self._is_unfinished():
            if cause := self.cause_to_stop():
                self.abort(cause)
                return
            if self._dies():
                self.schedule()
                self.stopped = "the executor died, and requests are left open"
                return
            self.step()

    def step(self, dummy: str | None = None, by_rank: int | None = None) -> None:
        """One step, three verbs; as a `dummy` of a kind nothing is scheduled, and yet it runs.

        `by_rank` is the rank that runs that kind.
        """
        batch = self.schedule(dummy, by_rank)
        execution = self._run(batch)
        ended_ns = self.clock.now_ns()
        self._count_prefills(batch)
        self.postprocess(batch, execution)
        self.kinds.count(batch.kind, self.state.step)
        self._livelock = self._livelock or execution.stop
        if self._record:
            self._record.ran(execution, ended_ns)
        if execution.gap_ns:
            self.clock.advance(execution.gap_ns)
        self.state.step += 1
        self.state.batch = Batch()

    def schedule(self, dummy: str | None = None, by_rank: int | None = None) -> Batch:
        """Let the scheduler form this step's batch, and perform what it asks for."""
        self.state.batch = Batch(dummy=dummy, by_rank=by_rank)
        num_left = self.config.max_actions_per_request * (self.state.num_requests + 1)
        plan = self._stand_by(dummy) if dummy else self.scheduler.schedule(self.state)
        if self._record:
            self._record.plan = plan
        for action in plan:
            self._perform(action)
            num_left -= 1
            if not num_left:
                self._livelock = f"watchdog: step {self.state.step} goes round in circles"
            if self._livelock:
                break
        if self._record:
            self._record.queued()
        formed_ns = self.clock.now_ns()
        if self._record:
            self._record.formed(self.state.batch, formed_ns)
        self.observe(formed_ns)
        return self.state.batch

    def postprocess(self, batch: Batch, execution: Execution) -> None:
        """Take what the step computed, and let go of the requests that are finished."""
        self.take_arrivals()
        if batch.rows and "masked-row-leak" in self.config.faults:
            self._keep_masked_rows()
        for row in batch.rows:
            self._advance(row, execution)
        self.outputs.take(batch, execution)

    def observe(self, ts_ns: int | None = None) -> None:
        """Show the observer, if there is one, what the engine holds now, or held a moment ago."""
        if self._observer:
            self._observer(self.snapshot(ts_ns))

    def _show_change(self, seq: int) -> None:
        if isinstance(self._observer, ChangeObserver):
            self._observer.changed(seq, self.snapshot())

    def snapshot(self, ts_ns: int | None = None) -> dict[str, Any]:
        """Return queues, batch, pools, and what the executor's device is at."""
        now_ns = self.clock.now_ns() if ts_ns is None else ts_ns
        return {**self.state.snapshot(now_ns), **self.executor.snapshot()}

    def take_arrivals(self) -> None:
        """Queue those who have arrived by now."""
        self._lifecycle.take_arrivals()

    def submit(self, request: Request) -> None:
        """Take a request beside those of the workload; it arrives at its time, or now if later."""
        request.arrival_ns = max(request.arrival_ns, self.clock.now_ns())
        self._lifecycle.arrivals.add(request)

    def abort(self, cause: str) -> None:
        """End whatever runs or waits."""
        self.stopped = None if cause == TIMED_OUT else cause
        self._lifecycle.abort_all(cause)

    def cause_to_stop(self) -> str | None:
        """Return why the run must not go on, None if it may."""
        if self.config.timeout_ns is not None and self.clock.now_ns() >= self.config.timeout_ns:
            return TIMED_OUT
        if self._num_idle_steps > self.config.max_idle_steps:
            return f"watchdog: nothing was scheduled in {self._num_idle_steps} steps"
        return self._livelock

    def _count_prefills(self, batch: Batch) -> None:
        if batch.num_prefill_reqs:
            self.state.prefilled_step = self.state.step
        self.state.num_prefills = self.state.num_prefills + 1 if batch.num_prefill_reqs else 0

    def _dies(self) -> bool:
        """Whether the executor is about to die: when it has run for a little while."""
        return "executor-dies" in self.config.faults and self.state.step == DIES_IN

    @property
    def left_open(self) -> tuple[Request, ...]:
        """Whoever runs or waits: nobody, once a run has come to its end."""
        return (*self.state.running, *self.state.waiting)

    @property
    def is_serving(self) -> bool:
        """Whether anybody waits or runs."""
        return bool(self.state.waiting or self.state.running)

    @property
    def next_arrival_ns(self) -> int | None:
        """When the next request arrives, None if none does unless others end."""
        return self._lifecycle.arrivals.next_ns

    def _run(self, batch: Batch) -> Execution:
        if batch.rows or batch.dummy:
            self._num_idle_steps = 0
            return self.executor.run(batch, self.state.step, self.clock, self._recorder)
        self._num_idle_steps += 1
        began_ns = self.clock.now_ns()
        self.clock.advance(self.config.idle_ns)
        if self.next_arrival_ns is not None:
            self.clock.advance_to(self.next_arrival_ns)
        return Execution(self.clock.now_ns() - began_ns, "idle", {})

    def _advance(self, row: Row, execution: Execution) -> None:
        request = row.request
        if row.samples and request.id not in execution.tokens:
            return  # what it computed is lost, and computed again
        request.num_computed += row.num_tokens
        if row.num_draft:
            request.num_computed -= row.num_draft + 1 - len(execution.tokens[request.id])
        request.num_ever_computed = max(request.num_ever_computed, request.num_computed)
        if self.config.prefix_cache and request.status is Status.RUNNING:
            self._allocate.cache_prefix(request, row.num_computed, request.num_computed)

    def _stand_by(self, dummy: str) -> Iterator[Action]:
        other = "a rank" if (rank := self.state.batch.by_rank) is None else f"rank {rank}"
        why = f"{other} runs {dummy}, and this one a dummy"
        for request in (*self.state.running, *islice(self.state.waiting, 1)):
            yield Defer(request, why, "phase", instead=dummy)

    def _perform(self, action: Action) -> None:
        try:
            self._do(action)
        except PlanRefused as error:
            where = f"{self.scheduler.name}, step {self.state.step}"
            if not self.config.faults:
                raise PlanRefused(error.what, where=where) from None
            # A known bug asks for what cannot be: it is recorded up to here, as of any engine.
            self._livelock = f"refused: {where}: {error.what}"

    def _do(self, action: Action) -> None:
        match action:
            case Run():
                self._batching.schedule(action)
            case Admit() | Load() | Promote():
                self._bring_on(action)
            case Reserve():
                self.state.batch.num_reserved = action.num_tokens
            case Preempt():
                self._lifecycle.preempt(action)
            case Reject():
                self._lifecycle.reject(action)
            case Defer():
                action.request.num_deferrals += action.resource == "kv-block"
                self.state.was_full |= action.resource == "seat"
                if self._record:
                    self._record.deferred(action)
            case ConsiderBucket() if self._record:
                self._record.considered(action)

    def _bring_on(self, action: Admit | Load | Promote) -> None:
        match action:
            case Admit():
                self._lifecycle.admit(action.request)
            case Load():
                self._lifecycle.load(action.request)
            case Promote():
                self._lifecycle.promote(action.request)

    def _keep_masked_rows(self) -> None:
        for request in self._lifecycle.last_in_slot.values():
            if request.status is Status.ENDED:
                self.outputs.append_token(request, 0, self.state.step)

    def _is_unfinished(self) -> bool:
        next_ns = self.next_arrival_ns
        if next_ns is not None and not self.is_serving:
            self.clock.advance_to(next_ns)
            self.take_arrivals()
        return self.is_serving


def _check_support(config: EngineConfig, scheduler: Scheduler) -> None:
    for name in OPTIONAL:
        if getattr(config, name) and name not in scheduler.supports:
            raise ConfigError(f"the policy {scheduler.name} does not work with {name}")
