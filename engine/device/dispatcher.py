"""Scheduler threads that dispatch a task graph on core groups, in virtual time.

A pass of a thread: poll its busy cores and complete the blocks that ended; then

1. MIX blocks to idle cores. A MIX for which no group is admitted goes to the tail of its queue.
2. If a MIX is left over, AIC and AIV work is skipped for this pass.
3. AIC-only and AIV-only blocks to idle cores: AIC first on even threads, AIV first on odd ones.
4. MIX, then AIC and AIV blocks, to pending slots, unless another thread has an idle core for them.

Each stage is prepared at a cost per part and then published in one instant.

Fault `deferred-completion-lost`: a thread defers what a finished task brings about until it has
polled all of its cores, and has one place to remember it in. Of the tasks that it finds finished in
one poll, only the last one retires; what waits for the others waits for ever.

Fault `predicate-of-the-one-before`: a task behind one that is predicated off reads that one's
predicate. It retires where it stands, and counts as run.

Fault `left-over-mix-ignored`: single-core work goes on in a pass in which a MIX is left over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from stepscope.engine.device.admission import Admission
from stepscope.engine.device.decision_log import DecisionLog, SilentLog
from stepscope.engine.device.dispatch_costs import Costs
from stepscope.engine.device.events import ASLEEP, EventLoop, Steps
from stepscope.engine.device.graphs.tasks import Task, TaskGraph
from stepscope.engine.device.late_parts import WAITS, LatePart
from stepscope.engine.device.placement import Placement
from stepscope.engine.device.rings import Ring, Rings
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.scheduler_state import DUMMY, ORCHESTRATOR, Phases, ReadyQueues
from stepscope.engine.device.silicon import Silicon
from stepscope.engine.device.topology import Core, Device, Part, Thread

_SINGLES = (("AIC", "AIV"), ("AIV", "AIC"))


class Dispatcher:
    """One run of a graph on a device under an admission policy.

    `late_part` says what the hardware does with a MIX whose parts do not start together.
    `observer(now_ns)` is called after every instant in which something happened on the device. With
    `is_told` off nothing is noted of what was decided.
    """

    def __init__(  # noqa: PLR0913 - what a run needs, each by its name
        self,
        device: Device,
        admission: Admission,
        *,
        costs: Costs | None = None,
        rings: Rings | None = None,
        faults: frozenset[str] = frozenset(),
        late_part: LatePart = WAITS,
        observer: Callable[[int], None] | None = None,
        start_ns: int = 0,
        is_told: bool = True,
    ) -> None:
        self._device = device
        self._costs = costs or Costs()
        self._rings = rings or Rings()
        self._observer = observer
        self._run = Run(start_ns)
        self._loop = EventLoop(start_ns)
        self._silicon = Silicon(self._loop, self._costs, self._run, self._on_end, late_part)
        log = DecisionLog if is_told else SilentLog
        self._log = log(device, admission, self._loop, self._run)
        self._queues = ReadyQueues(self._loop, self._run, is_told=is_told)
        self._phases = Phases(self._loop, self._run, is_told=is_told)
        self._placement = Placement(device, admission, self._log, self._queues, faults)
        self._num_left = 0
        self._short_of: Ring | None = None
        self._loses_completions = "deferred-completion-lost" in faults
        self._misreads_predicates = "predicate-of-the-one-before" in faults
        self._misread: set[Task] = set()
        self._ignores_left_over = "left-over-mix-ignored" in faults

    def run(self, graph: TaskGraph) -> Run:
        """Dispatch the whole graph; times are absolute.

        Raises ConfigError when a task cannot run on this device under this policy. A run that can
        make no more progress is given up after the timeout, one that is deadlocked by its structure
        at once; `Run.stall` says where it stood.
        """
        self._num_left = len(graph.tasks)
        self._orchestrator = self._loop.spawn(self._orchestrate(graph.tasks))
        self._schedulers = [self._loop.spawn(self._schedule(t)) for t in self._device.threads]
        self._loop.run(lambda: self._num_left == 0 or bool(self._run.stall), self._end_instant)
        self._queues.end_instant()
        self._run.end_ns = self._loop.now_ns
        if self._num_left and not self._run.stall:
            self._give_up()
        return self._run

    def snapshot(self) -> dict[str, Any]:
        """Return who stands in which ready queue, and what each thread does and since when."""
        return {"ready": self._queues.snapshot(), "threads": self._phases.snapshot()}

    def _end_instant(self, now_ns: int) -> None:
        self._queues.end_instant()
        # A step's position is where its batch was formed: before its threads begin.
        if self._observer and now_ns > self._run.start_ns:
            self._observer(now_ns)

    def _give_up(self) -> None:
        timeout_ns, ring = self._costs.timeout_ns, self._short_of
        self._run.end_ns = self._loop.now_ns = self._loop.now_ns + timeout_ns
        self._phases.end_all()
        stuck = next((p for core in self._device.cores for p in core.claims), None)
        self._run.stall = (
            f"{self._num_left} tasks left and no progress for {timeout_ns // 1_000_000} ms; "
            + (f"{stuck} is stuck on core {stuck.core.id}" if stuck else "nothing is in flight")
            + (f", {ring.held} of {ring.size} {ring.unit} are held" if ring else "")
        )

    # The orchestrator submits; the scheduler threads poll, complete, skip and dispatch.

    def _orchestrate(self, tasks: Iterable[Task]) -> Steps:
        before: Task | None = None
        self._phases.begin(ORCHESTRATOR, "submit")
        for task in tasks:
            if self._misreads_predicates and before and not before.enabled and task.enabled:
                self._misread.add(task)
            before = task
            self._rings.enter(task.scope)
            self._note_reclaimed()
            yield from self._wait_for_room(task)
            if self._costs.submit_ns:
                yield self._costs.submit_ns
            self._rings.claim(task)
            task.submitted_ns = self._loop.now_ns
            task.num_waits = sum(before.outcome == "pending" for before in task.predecessors)
            if task.num_waits == 0:
                self._make_ready(task)
        self._rings.enter(None)
        self._note_reclaimed()
        self._phases.begin(ORCHESTRATOR, "exit")

    def _wait_for_room(self, task: Task) -> Steps:
        while ring := self._rings.is_short_of(task):
            self._short_of = ring
            if self._rings.is_deadlocked:
                self._run.stall = (
                    f"scope deadlock: {task.name} has to wait until its own scope has ended, "
                    f"which holds {ring.held} of {ring.size} {ring.unit}"
                )
                self._phases.end_all()
            self._phases.begin(ORCHESTRATOR, "wait")
            yield ASLEEP
        self._phases.begin(ORCHESTRATOR, "submit")
        self._short_of = None

    def _schedule(self, thread: Thread) -> Steps:
        costs = self._costs
        while True:
            busy = [core for core in thread.cores if core.claims]
            self._phases.begin(thread.id, "poll")
            yield costs.idle_loop_ns + costs.poll_ns * len(busy)
            ended = [part for core in busy for part in core.claims if part.end_ns >= 0]
            deferred = None
            for part in ended:
                self._phases.begin(thread.id, "complete")
                if (yield from self._complete(part)):
                    deferred = part.task
            if deferred and self._loses_completions:
                self._retire(deferred, "run")
                self._wake_schedulers()
            skipped = yield from self._skip(thread)
            placed = yield from self._dispatch(thread)
            if not (ended or skipped or placed):
                self._phases.begin(thread.id, "sleep")
                yield ASLEEP

    def _complete(self, part: Part) -> Generator[int | None, None, bool]:
        """Take a block off its core; return whether it was the last of its task."""
        task = part.task
        task.parts_left -= 1
        is_last = task.parts_left == 0
        yield self._costs.end_task_ns if is_last else self._costs.end_block_ns
        part.core.claims.remove(part)
        self._device.num_vector_blocks -= task.shape == "AIV"
        if is_last and not self._loses_completions:
            self._retire(task, "run")
        self._wake_schedulers()
        return is_last

    def _skip(self, thread: Thread) -> Generator[int | None, None, bool]:
        """Retire dummies and tasks that are predicated off, where they stand."""
        queue = self._queues.of[DUMMY]
        has_skipped = bool(queue)
        while queue:
            task = queue.popleft()
            self._queues.leave(task)
            self._phases.begin(thread.id, "skip")
            yield self._costs.end_block_ns
            task.retired_ns = self._loop.now_ns
            has_run = task in self._misread
            self._retire(task, "run" if has_run else "skipped" if task.mask else "dummy")
        return has_skipped

    def _retire(self, task: Task, outcome: str) -> None:
        task.outcome = outcome
        self._num_left -= 1
        if not self._num_left:
            self._phases.end_all()
        for follower in task.followers:
            if follower.submitted_ns >= 0:
                follower.num_waits -= 1
                if follower.num_waits == 0:
                    self._make_ready(follower)
        if self._rings.reclaim(task):
            self._note_reclaimed()
            self._loop.wake(self._orchestrator)

    def _note_reclaimed(self) -> None:
        for task in self._rings.given_back:
            task.reclaimed_ns = self._loop.now_ns
        self._rings.given_back.clear()

    def _make_ready(self, task: Task) -> None:
        task.ready_ns = max([task.submitted_ns, *(p.retired_ns for p in task.predecessors)])
        is_on = task.enabled and task not in self._misread
        self._queues.put(task, task.shape if is_on else DUMMY)
        self._wake_schedulers()

    def _wake_schedulers(self) -> None:
        for process in self._schedulers:
            self._loop.wake(process)

    def _on_end(self, core: Core) -> None:
        self._loop.wake(self._schedulers[core.thread])

    # The stages of a pass.

    def _dispatch(self, thread: Thread) -> Generator[int | None, None, bool]:
        has_placed = False
        for parts in self._stages(thread):
            if parts:
                has_placed = True
                for part in parts:
                    part.claim_ns = self._loop.now_ns
                self._phases.begin(thread.id, "dispatch")
                yield self._costs.dispatch_ns * len(parts)
                self._silicon.publish(parts)
                self._wake_schedulers()
        return has_placed

    def _stages(self, thread: Thread) -> Iterator[list[Part]]:
        """The stages of a pass, each prepared when the one before it was published."""
        placement = self._placement
        ready = placement.ready
        singles = _SINGLES[thread.id % 2]
        if placement.draining:
            yield placement.together(thread)
        if ready["MIX"] and not placement.draining:
            yield placement.mix(thread, is_pending=False)
        for shape in singles:
            if ready[shape] and not self._is_left_over() and not placement.draining:
                yield placement.single(thread, shape, is_pending=False)
        if ready["MIX"] and not placement.draining and not self._peer_has_idle(thread, "MIX"):
            yield placement.mix(thread, is_pending=True)
        for shape in singles:
            if ready[shape]:
                yield self._behind_busy(thread, shape)

    def _behind_busy(self, thread: Thread, shape: str) -> list[Part]:
        """What is put into pending slots of single cores, or else nothing, and why is noted."""
        placement = self._placement
        queue = placement.ready[shape]
        if task := placement.draining:
            why = "a task that starts together waits until there is room for all of it"
            self._log.held_back(thread, queue, task, why)
            return []
        if self._is_left_over():
            why = "a MIX is left over, and goes first"
            self._log.held_back(thread, queue, placement.ready["MIX"][0], why)
            return []
        if self._peer_has_idle(thread, shape):
            why = f"no {shape} of the thread is idle, and one of another thread is"
            self._log.out_of_cores(thread, queue, why)
            return []
        return placement.single(thread, shape, is_pending=True)

    def _is_left_over(self) -> bool:
        """A MIX was left over, and single-core work holds back for it."""
        return bool(self._placement.ready["MIX"]) and not self._ignores_left_over

    def _peer_has_idle(self, thread: Thread, shape: str) -> bool:
        """Another thread could run it at once, so a pending slot here would only delay it."""
        peers = [peer for peer in self._device.threads if peer is not thread]
        if shape == "MIX":
            return any(group.is_free for peer in peers for group in peer.groups)
        return any(
            core.is_idle for peer in peers for core in (peer.aics if shape == "AIC" else peer.aivs)
        )
