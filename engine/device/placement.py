"""Which core takes the next block: the ready queues, and a thread's walk over its cores.

Ready queues are FIFO, one per shape. A MIX for which a thread finds no group goes to the tail. A
`sync_start` task that does not fit stops the world: nothing else is placed until the device has
drained enough to take all its blocks at once.

Faults: `mix-shift-wrap` computes a group's place in its thread with a 64-bit shift, so the 23rd
group on one thread (bit 66) becomes bit 2, the AIV1 of its first group. `stale-reservation` lets an
AIV-only dispatch show itself only once MIX admission has looked. `sync-start-in-part` starts the
blocks of a `sync_start` task that there is room for, and the others when there is more.
`pop-returns-consumed-slot`: a thread that comes to the queue of AIC or AIV tasks while another
prepares the last block of a task from there gets the same slot again. That block runs twice and is
counted down twice, so its task may retire while another of its blocks still runs.
`late-part-overwrites-tile` and `late-part-hangs`: whatever the policy, a MIX gets a group whose AIC
is free, and its AIVs are not asked. What comes of that on hardware that does not queue is in the
names.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from stepscope.engine.device.admission import Admission
from stepscope.engine.device.decision_log import DecisionLog
from stepscope.engine.device.graphs.tasks import ROLES, Task
from stepscope.engine.device.scheduler_state import ReadyQueues
from stepscope.engine.device.topology import Core, Device, Group, Part, Thread
from stepscope.ingest.errors import ConfigError

AIV_NOT_ASKED = frozenset({"late-part-overwrites-tile", "late-part-hangs"})


class Placement:
    """Claims cores for ready blocks under an admission policy; what it claims is yet to publish."""

    def __init__(
        self,
        device: Device,
        admission: Admission,
        log: DecisionLog,
        queues: ReadyQueues,
        faults: frozenset[str] = frozenset(),
    ) -> None:
        self.queues = queues
        self.ready = queues.of
        self._device = device
        self._admission = admission
        self._log = log
        self._faults = faults
        self._asks_aic_only = bool(faults & AIV_NOT_ASKED)
        self._unreserved: dict[int, list[Part]] = {}
        self._popped: dict[str, Part] = {}

    @property
    def draining(self) -> Task | None:
        """The task that stops the world."""
        return self.queues.draining

    def mix(self, thread: Thread, *, is_pending: bool) -> list[Part]:
        """Parts for the MIX blocks that the thread's groups admit.

        At most as many tasks are looked at as the thread has groups; those left over go to the
        tail, so that the next pass starts with others.
        """
        queue = self.ready["MIX"]
        parts: list[Part] = []
        for _ in range(min(len(queue), len(thread.groups))):
            task = queue.popleft()
            if task.is_sync_start and not is_pending:
                self.queues.drain_for(task)
                break
            if not task.is_sync_start:
                parts += self._offer(thread, task, is_pending=is_pending)
            if task.blocks_left:
                self.queues.put_back(task)
            else:
                self.queues.leave(task)
        return parts or self.together(thread)

    def single(self, thread: Thread, shape: str, *, is_pending: bool) -> list[Part]:
        """Parts for AIC-only or AIV-only blocks, oldest task first."""
        queue = self.ready[shape]
        parts: list[Part] = []
        cores = self._lent(thread, shape, is_pending=is_pending)
        if consumed := self._consumed_slot(thread, shape):
            parts += self._claim_again(consumed, thread, cores)
        while queue and not queue[0].is_sync_start:
            claimed = self._claim_each(queue[0], cores, thread)
            if not claimed:
                break
            parts += claimed
            if queue[0].blocks_left:
                break
            self.queues.leave(queue.popleft())
            self._popped[shape] = parts[-1]
        if queue and queue[0].is_sync_start and not is_pending:
            self.queues.drain_for(queue.popleft())
        elif queue and is_pending:
            why = f"no {shape} of the thread takes another block"
            self._log.out_of_cores(thread, queue, why)
        if shape == "AIV" and "stale-reservation" in self._faults:
            self._unreserved.setdefault(thread.id, []).extend(parts)
        return parts or self.together(thread)

    def _consumed_slot(self, thread: Thread, shape: str) -> Part | None:
        """The block that another thread took last and has not published, where pop forgets that."""
        popped = self._popped.get(shape)
        if popped is None or "pop-returns-consumed-slot" not in self._faults:
            return None
        return popped if popped.thread != thread.id and popped.dispatch_ns < 0 else None

    def _claim_again(self, popped: Part, thread: Thread, cores: Iterator[Core]) -> list[Part]:
        core = next(cores, None)
        if core is None:
            return []
        popped.task.next_block = popped.block
        return self._claim_each(popped.task, iter((core,)), thread)

    def together(self, thread: Thread) -> list[Part]:
        """All parts of the task that stopped the world, once the whole device has room for them.

        Raises ConfigError when it does not even fit on an idle device.
        """
        task = self.draining
        if task is None:
            return []
        parts: list[Part] = []
        num_decisions = self._log.mark()
        for claimed in islice(self._rooms(thread, task), task.blocks_left):
            parts += claimed
        is_together = not task.blocks_left
        if is_together or "sync-start-in-part" in self._faults:
            if parts and task.shape != "MIX":
                self._log.given(thread, task, len(parts) + task.blocks_left, parts)
            if is_together:
                self.queues.leave(task)
            return parts
        self._log.forget_since(num_decisions)
        self._log.too_few(thread, task, len(parts))
        self._give_back(task, parts)
        if all(core.is_idle for core in self._device.cores):
            raise ConfigError(
                f"sync_start task {task.name!r} needs {task.num_blocks} {task.shape} at once, more "
                f"than {len(self._device.groups)} groups have under {self._admission.name}",
                todo="use more groups or another admission policy",
            )
        return []

    def _rooms(self, thread: Thread, task: Task) -> Iterator[list[Part]]:
        """Claim room for block after block, on any thread's cores."""
        if task.shape == "MIX":
            for group in self._device.groups:
                if self._admits(thread, group, task, is_pending=False):
                    yield self._claim_group(thread, group, task)
            return
        for owner in self._device.threads:
            for core in self._lent(owner, task.shape, is_pending=False):
                yield self._claim(task, (core,), (core,), thread)

    def _offer(self, thread: Thread, task: Task, *, is_pending: bool) -> list[Part]:
        """Offer the thread's groups to the blocks of a MIX task, in order."""
        parts: list[Part] = []
        hidden = self._hide_unreserved(thread)
        for group in thread.groups:
            if not task.blocks_left:
                break
            if self._admits(thread, group, task, is_pending=is_pending):
                parts += self._claim_group(thread, group, task)
        for part in hidden:
            part.core.claims.insert(0, part)
        if task.blocks_left and not is_pending:
            self._log.put_back(thread, task)
        return parts

    def _hide_unreserved(self, thread: Thread) -> list[Part]:
        hidden = [p for p in self._unreserved.pop(thread.id, ()) if p in p.core.claims]
        for part in hidden:
            part.core.claims.remove(part)
        return hidden

    def _admits(self, thread: Thread, group: Group, task: Task, *, is_pending: bool) -> bool:
        needed = group.needed(task.mask)
        if not all(core.is_idle or core.can_queue(thread.id) for core in needed):
            return False
        if is_pending:
            return self._admission.admits_pending(group, needed)
        if self._asks_aic_only:
            return group.cores[0].is_idle
        return self._admission.admits_idle(group, needed, self._device)

    def _lent(self, thread: Thread, shape: str, *, is_pending: bool) -> Iterator[Core]:
        """Cores that take one more block of the shape, asked one by one as they are needed."""
        admission = self._admission
        for core in thread.aics if shape == "AIC" else thread.aivs:
            group = self._device.groups[core.group]
            if is_pending:
                if core.can_queue(thread.id) and admission.lends_pending(core, group):
                    yield core
            elif core.is_idle and admission.lends_idle(core, group):
                yield core

    def _claim_each(self, task: Task, cores: Iterator[Core], thread: Thread) -> list[Part]:
        """Give the blocks left of a task on single cores a core each, for as long as there are."""
        num_wanted = task.blocks_left
        parts: list[Part] = []
        for core in islice(cores, num_wanted):
            parts += self._claim(task, (core,), (core,), thread)
        if parts:
            self._log.given(thread, task, num_wanted, parts)
        return parts

    def _claim_group(self, thread: Thread, group: Group, task: Task) -> list[Part]:
        needed = group.needed(task.mask)
        self._log.admitted(thread, group, task)
        cores = needed
        if "mix-shift-wrap" in self._faults:
            cores = _wrapped(thread, group, task.mask)
        return self._claim(task, needed, cores, thread)

    def _claim(
        self, task: Task, chosen: tuple[Core, ...], cores: tuple[Core, ...], thread: Thread
    ) -> list[Part]:
        """Give the task's next block to `cores`, in the slots that `chosen` have free."""
        mates: list[Part] = []
        for wanted, core in zip(chosen, cores, strict=True):
            slot = "running" if wanted.is_idle else "pending"
            mates.append(
                Part(task, task.next_block, core, wanted.role, wanted.group, slot, thread.id, mates)
            )
        for part in mates:
            part.core.claims.append(part)
        task.next_block += 1
        self._device.num_vector_blocks += task.shape == "AIV"
        return mates

    def _give_back(self, task: Task, parts: list[Part]) -> None:
        for part in parts:
            part.core.claims.remove(part)
        self._device.num_vector_blocks -= task.next_block * (task.shape == "AIV")
        task.next_block = 0


def _wrapped(thread: Thread, group: Group, mask: int) -> tuple[Core, ...]:
    """Cores of the group's bit offset in its thread after a shift by that offset modulo 64."""
    offset = 3 * thread.groups.index(group) % 64
    return tuple(thread.cores[offset + place] for place, role in enumerate(ROLES) if role & mask)
