"""How requests change queues: from arrival to whatever ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile

from stepscope.engine.clock import Clock
from stepscope.engine.plan import PlanRefused, Preempt, Reject
from stepscope.engine.requests.arrivals import Arrivals
from stepscope.engine.requests.finishing import Ended
from stepscope.engine.requests.request import Request, Status
from stepscope.engine.serving.allocator import Allocator
from stepscope.engine.serving.recording import Recording
from stepscope.engine.state import State


class Lifecycle:
    """Moves requests between queues, with what they hold, and notes it.

    Who changes queues does so just before that is noted, and blocks and slots likewise: behind each
    row the engine holds what the rows until there tell.

    `ended` holds what became of every request, in the order in which they ended; `last_in_slot` the
    one that had each slot last.
    """

    def __init__(
        self,
        state: State,
        workload: Iterable[Request],
        allocate: Allocator,
        record: Recording | None,
        clock: Clock,
        on_end: Callable[[Ended], None] | None = None,
    ) -> None:
        self.ended: list[Ended] = []
        self._on_end = on_end or self.ended.append
        self.last_in_slot: dict[int, Request] = {}
        self.arrivals = Arrivals(workload)
        self._skipped: list[Request] = []
        self._state = state
        self._takes_wrong_one = "victim-popped-instead-of-admitted" in state.config.faults
        self._leaks = "block-leaked" in state.config.faults
        self._hides_rejects = "ignored-told-as-finished" in state.config.faults
        self._allocate = allocate
        self._record = record
        self._clock = clock

    def take_arrivals(self) -> None:
        """Put those who have arrived at the end of the queue."""
        for request in self.arrivals.take(self._clock.now_ns()):
            request.status = Status.WAITING
            self._state.waiting.append(request)
            if self._record:
                self._record.arrived(request)
            may_skip = self._state.config.async_dependencies
            if may_skip and request.prepare_ns and not request.remote_tokens:
                self._skip(request, request.arrival_ns)
        if self._skipped:
            self._take_ready()

    def load(self, request: Request) -> None:
        """Give a waiting request the blocks for its KV that is elsewhere; it comes meanwhile."""
        if request.status is not Status.WAITING or request.is_skipped or request.num_computed:
            raise PlanRefused(f"the KV of {request.id} is loaded, and it does not wait for it")
        self._allocate.claim_blocks(request, request.remote_tokens)
        self._skip(request, self._clock.now_ns())

    def promote(self, request: Request) -> None:
        """Let a request that has what it waited for be let in like any other."""
        if not (request.is_skipped and request.is_ready):
            raise PlanRefused(f"{request.id} is promoted, and what it waits for has not come")
        self._take_up(request)
        if request.block_table:
            request.num_computed = request.num_cached = request.remote_tokens
        if self._record:
            place = self._state.waiting.index(request)
            self._record.event(request, "defer", "what it waited for has come", None, place)

    def _skip(self, request: Request, since_ns: int) -> None:
        request.is_skipped = True
        request.ready_ns = since_ns + request.prepare_ns
        self._skipped.append(request)

    def _take_up(self, request: Request) -> None:
        if request.is_skipped:
            self._skipped.remove(request)
        request.is_skipped = request.is_ready = False

    def _take_ready(self) -> None:
        """Note whose grammar is compiled or whose KV has come; whether the policy looks or not."""
        now_ns = self._clock.now_ns()
        for request in self._skipped:
            if not request.is_ready and request.ready_ns is not None and request.ready_ns <= now_ns:
                request.is_ready = True
                if self._record:
                    self._record.ready(request)

    def admit(self, request: Request) -> None:
        """Let a waiting request run, with blocks for all its tokens, and a slot."""
        if self._takes_wrong_one and request.status is Status.RUNNING:
            self._admit_again(request)
            return
        if request.status is not Status.WAITING:
            raise PlanRefused(f"{request.id} is admitted and {request.status.value}")
        if not self._state.num_free_running_slots:
            raise PlanRefused(f"{request.id} is admitted and every running slot is taken")
        if request.is_skipped:
            raise PlanRefused(f"{request.id} is admitted and waits for something beside room")
        passed = [*takewhile(lambda other: other is not request, self._state.waiting)]
        if self._record:
            self._record.admitted(request, len(passed))
        for other in passed:
            other.num_passed += 1
        if self._state.config.prefix_cache:
            self._allocate.share_prefix(request)
        self._allocate.claim_blocks(request, request.num_tokens)
        self._allocate.claim_slot(request)
        self._leave_queue(request)
        request.status = Status.RUNNING
        request.num_deferrals = 0
        self._state.running.append(request)
        if request.slot is not None:
            self.last_in_slot[request.slot] = request
        if self._record:
            self._record.event(request, "resume" if request.num_preemptions else "admit")

    def _admit_again(self, request: Request) -> None:
        """Somebody else was taken from the queue when `request` was admitted, and it is there."""
        self._leave_queue(request)
        if self._record:
            self._record.event(request, "resume" if request.num_preemptions else "admit")

    def preempt(self, action: Preempt) -> None:
        """Take a running request's KV away and put it at the front of the queue.

        A token that was sampled for it and is not known yet will be its own all the same: if it
        were lost, two requests that have room for one would take turns and never get on.
        """
        request = action.request
        self._check_victim(request)
        if self._record:
            self._record.preempted(action)
        if request.status is Status.RUNNING:
            self._state.running.remove(request)
            self._state.waiting.appendleft(request)
            self._state.was_full = False
        request.status = Status.WAITING
        if self._record:
            place = self._state.waiting.index(request)
            self._record.event(request, "preempt", action.cause, action.by, place)
        self._allocate.release(request)
        self._take_up(request)
        request.num_computed = 0
        request.num_preemptions += 1

    def reject(self, action: Reject) -> None:
        """Drop a waiting request."""
        if self._hides_rejects:
            self._end(action.request, self._leave_queue, "finish")
            return
        if self._record:
            self._record.rejected(action)
        self._end(action.request, self._leave_queue, "reject", action.cause)

    def finish(self, request: Request, cause: str | None) -> None:
        """Let go of a request that got all its tokens."""
        is_running = request.status is Status.RUNNING
        if self._leaks:
            del request.block_table[-1:]
        leave = self._state.running.remove if is_running else self._leave_queue
        self._end(request, leave, "finish", cause)

    def fail(self, request: Request, cause: str) -> None:
        """Let go of a running request that cannot go on."""
        self._end(request, self._state.running.remove, "abort", cause)

    def abort_all(self, cause: str) -> None:
        """End whatever runs or waits."""
        for queue in (self._state.running, self._state.waiting):
            for request in tuple(queue):
                self._end(request, queue.remove, "abort", cause)

    def _check_victim(self, request: Request) -> None:
        may_be_scheduled = "victim-in-batch" in self._state.config.faults
        is_scheduled = request.id in self._state.batch.scheduled and not may_be_scheduled
        is_holder = request.status is Status.WAITING and request.block_table
        if not (request.status is Status.RUNNING or is_holder) or is_scheduled:
            raise PlanRefused(f"{request.id} is preempted and {request.status.value}")

    def _end(
        self,
        request: Request,
        leave: Callable[[Request], None],
        event: str,
        cause: str | None = None,
    ) -> None:
        now_ns = self._clock.now_ns()
        self._allocate.release(request)
        self._take_up(request)
        leave(request)
        self._state.was_full = False
        request.status = Status.ENDED
        request.block_hashes = None
        self._on_end(Ended(request, event, now_ns, cause))
        self.arrivals.ended(request, now_ns)
        if self._record:
            self._record.event(request, event, cause)

    def _leave_queue(self, request: Request) -> None:
        if self._state.waiting[0] is request or self._takes_wrong_one:
            self._state.waiting.popleft()
        else:
            self._state.waiting.remove(request)
