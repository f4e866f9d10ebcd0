"""Why a MIX went where it went, or did not: the decisions that a run leaves behind."""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.engine.device.admission import Admission
from stepscope.engine.device.events import EventLoop
from stepscope.engine.device.graphs.tasks import Task
from stepscope.engine.device.run_log import Decision, Run
from stepscope.engine.device.topology import Core, Device, Group, Thread
from stepscope.engine.sites import Sites

SITES = Sites()
"""Those of all runs: each has a log of its own."""


class DecisionLog:
    """Writes decisions about MIX tasks into `run`, at the loop's time.

    A task that is put back again by the same thread for the same reason is not news. Where it was
    decided is where the caller stands.
    """

    def __init__(self, device: Device, admission: Admission, loop: EventLoop, run: Run) -> None:
        self._device = device
        self._rule = admission.rule
        self._loop = loop
        self._run = run
        self._last: dict[tuple[int, int], tuple[str, str, str | None]] = {}

    def admitted(self, thread: Thread, group: Group, task: Task) -> None:
        """A block got the group; where a core of it was busy, name a free group not tried."""
        needed = group.needed(task.mask)
        holder = _holder(needed)
        others = (other for other in self._device.groups if holder and other.is_free)
        instead = next((f"group {other.id}" for other in others), None)
        reason = f"group {group.id}: {self._rule}"
        self._note(
            thread, task, "admitted", reason, len(needed), _num_idle(needed), holder, instead
        )

    def put_back(self, thread: Thread, task: Task) -> None:
        """Blocks were left over; name the thread's group that came nearest."""
        group = max(thread.groups, key=lambda each: _num_idle(each.needed(task.mask)))
        needed = group.needed(task.mask)
        reason = f"group {group.id} came nearest; not met: {self._rule}"
        self._note(
            thread, task, "put-back", reason, len(needed), _num_idle(needed), _holder(needed)
        )

    def too_few(self, thread: Thread, task: Task, num_found: int) -> None:
        """Not all blocks of a MIX that starts together found cores; `num_found` cores were."""
        if task.shape == "MIX":
            num_needed = task.num_blocks * task.mask.bit_count()
            reason = f"{task.num_blocks} blocks start together or not at all"
            holder = _holder(self._device.cores)
            self._note(thread, task, "put-back", reason, num_needed, num_found, holder)

    def mark(self) -> int:
        """Where the log stands, for `forget_since`."""
        return len(self._run.decisions)

    def forget_since(self, mark: int) -> None:
        """Take back what was noted about an attempt that came to nothing."""
        del self._run.decisions[mark:]

    def _note(
        self,
        thread: Thread,
        task: Task,
        verdict: str,
        reason: str,
        needed: int,
        available: int,
        holder: str | None = None,
        instead: str | None = None,
    ) -> None:
        news = (verdict, reason, holder)
        if verdict == "put-back" and self._last.get((thread.id, task.id)) == news:
            return
        self._last[thread.id, task.id] = news
        self._run.decisions.append(
            Decision(
                self._loop.now_ns, task, verdict, reason, needed, available, holder, instead,
                thread.id, SITES.of_callers(2),
            )
        )  # fmt: skip


def _num_idle(cores: Iterable[Core]) -> int:
    return sum(core.is_idle for core in cores)


def _holder(cores: Iterable[Core]) -> str | None:
    """The block on the first core that is not idle."""
    return next((str(core.claims[0]) for core in cores if core.claims), None)
