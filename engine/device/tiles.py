"""What the cores' local memories hold on hardware that does not queue: whose tile is where.

The parts of a MIX exchange tiles: each sends one into the local memory of the next core of its
block, in the order AIC, AIV0, AIV1 and round, and reads at its end what the one before it has sent.
A block of one core keeps a tile of its own there, computes on it and leaves its result in it.

Where a part waits until its mates have started, nobody's tile is in the way. Where it does not, and
the mate's core still executes another block, the tile that is sent lands on that block's: it
computes on what the MIX sent, and the late part of the MIX reads what that block left.

Contents are digests: of a task's name and all that it reads, what earlier graphs have left among
it, so that whatever is computed from a wrong tile is wrong as well. `Contents.right` are those of
the same graph where nothing is in the way, or ever was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from stepscope.engine.device.graphs.tasks import ROLES, Task
from stepscope.engine.device.topology import Part


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write of a core's local memory, or what orders two of them; as the trace has it."""

    ts_ns: int
    core: int | None
    op: str
    by_core: int
    event: str | None = None
    digest: str | None = None


class Tiles:
    """The local memory of every core of a device, and what was done to it, in order."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self._held: dict[int, str] = {}
        self._stored: dict[Task, dict[tuple[int, int], str]] = defaultdict(dict)
        self._results: dict[Task, str] = {}

    def begin(self, part: Part, now_ns: int) -> None:
        """A part begins to compute: it sends its tile to its next mate, or fills its own memory."""
        tile = _tile(part.task, part.block, _role(part), self._inputs(part.task))
        to = _next(part)
        self._write(now_ns, to.core.id, part, tile)
        if to is not part:
            self._note(now_ns, "record", part, event=_event(part))

    def end(self, part: Part, now_ns: int) -> None:
        """A part ends: it stores what it computed from the tile that it finds."""
        sender = _before(part)
        if sender is not part:
            self._note(now_ns, "wait", part, event=_event(sender))
        found = self._held.get(part.core.id, "nothing")
        self.accesses.append(Access(now_ns, part.core.id, "read", part.core.id, digest=found))
        self._stored[part.task][part.block, _role(part)] = _stored(found)
        if sender is part:
            self._write(now_ns, part.core.id, part, _stored(found))

    def result(self, task: Task) -> str:
        """What a task that is over has left for those that wait for it."""
        if task not in self._results:
            stored = self._stored.get(task, {})
            self._results[task] = _result(
                task, self._inputs(task), (stored[place] for place in sorted(stored))
            )
        return self._results[task]

    def _inputs(self, task: Task) -> str:
        return _inputs(task.given.found, (self.result(before) for before in task.predecessors))

    def _write(self, now_ns: int, core: int, by: Part, tile: str) -> None:
        self._held[core] = tile
        self.accesses.append(Access(now_ns, core, "write", by.core.id, digest=tile))

    def _note(self, now_ns: int, op: str, by: Part, event: str) -> None:
        self.accesses.append(Access(now_ns, None, op, by.core.id, event))


def right_results(tasks: Iterable[Task], *, was_right: bool = True) -> dict[Task, str]:
    """What each task leaves where no tile is in the way; tasks come after those they wait for.

    Unless all `was_right` they read what earlier graphs have left as it is.
    """
    results: dict[Task, str] = {}
    for task in tasks:
        given = task.given.right if was_right else task.given.found
        inputs = _inputs(given, (results[before] for before in task.predecessors))
        stored = _right_stored(task, inputs) if task.outcome == "run" else ()
        results[task] = _result(task, inputs, stored)
    return results


def _right_stored(task: Task, inputs: str) -> Iterable[str]:
    roles = [role for role in ROLES if role & task.mask] if task.shape == "MIX" else [0]
    for block in range(task.num_blocks):
        sent = [_tile(task, block, role, inputs) for role in roles]
        yield from (_stored(sent[place - 1]) for place in range(len(roles)))


def _role(part: Part) -> int:
    """The part's place in its block; an AIV-only block computes the same on either AIV."""
    return part.role if len(part.mates) > 1 else 0


def _next(part: Part) -> Part:
    return part.mates[(part.mates.index(part) + 1) % len(part.mates)]


def _before(part: Part) -> Part:
    return part.mates[part.mates.index(part) - 1]


def _event(sender: Part) -> str:
    return f"tile of task {sender.task.id} block {sender.block} from core {sender.core.id}"


def _inputs(given: str, results: Iterable[str]) -> str:
    return _digest(*([given] if given else ()), *results)


def _tile(task: Task, block: int, role: int, inputs: str) -> str:
    return _digest(task.name, str(block), str(role), inputs)


def _stored(found: str) -> str:
    return _digest("computed", found)


def _result(task: Task, inputs: str, stored: Iterable[str]) -> str:
    return _digest(task.name, inputs, *stored)


def digest_of(contents: Iterable[str]) -> str:
    """One digest of several."""
    return _digest(*contents)


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(errors="replace"), digest_size=8).hexdigest()
