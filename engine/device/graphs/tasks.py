"""Task graphs: what a step is lowered to, with dependencies found by tensor overlap.

A task names the regions of tensors that it reads and writes. `TaskGraph.submit` finds what it must
wait for, as the runtime's tensor map does: a read waits for the writers of what it overlaps, a
write also for the earlier readers and writers. Tasks are submitted in program order, so a graph
cannot have a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from stepscope.ingest.errors import ConfigError

AIC, AIV0, AIV1 = 1, 2, 4
"""The cores of a group, as the bits of a mask."""
ROLES = (AIC, AIV0, AIV1)
ROLE_NAMES = {AIC: "AIC", AIV0: "AIV0", AIV1: "AIV1"}
MIX_MASK = AIC | AIV0 | AIV1
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Region:
    """Rows `first` to `last` (excluded) of a tensor."""

    tensor: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Edge:
    """`to_task` waits for `from_task` because of `source`: a tensor's name, or `explicit`."""

    from_task: int
    to_task: int
    source: str


@dataclass(frozen=True, slots=True)
class Left:
    """Digests of what has been left to read: what is there, and what should be."""

    found: str = ""
    right: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether something else is there than should be."""
        return self.found != self.right


@dataclass(slots=True, eq=False)
class Task:
    """A kernel launched as `num_blocks` blocks, each dispatched by itself.

    `mask` says which cores of a group a block needs (AIC=1, AIV0=2, AIV1=4, 0 for a dummy); an
    AIV-only block runs on either AIV. `durations_ns` holds one execution time per block. A task
    that is not `enabled` is predicated off: it retires without being dispatched. `is_sync_start`
    starts all blocks together or none. Its outputs take `heap_bytes`; tasks of one `scope` are kept
    until all of them have been submitted. `given` is what it reads that earlier graphs have left.
    """

    id: int
    name: str
    mask: int
    durations_ns: Sequence[int]
    is_sync_start: bool = False
    enabled: bool = True
    predecessors: list[Task] = field(default_factory=list)
    heap_bytes: int = 0
    scope: int | None = None
    given: Left = Left()

    shape: str = field(init=False)
    followers: list[Task] = field(default_factory=list, init=False)
    num_waits: int = field(default=0, init=False)
    next_block: int = field(default=0, init=False)
    parts_left: int = field(default=0, init=False)
    submitted_ns: int = field(default=UNKNOWN, init=False)
    ready_ns: int = field(default=UNKNOWN, init=False)
    retired_ns: int = field(default=UNKNOWN, init=False)
    queue: str | None = field(default=None, init=False)
    queued_ns: int = field(default=UNKNOWN, init=False)
    dequeued_ns: int = field(default=UNKNOWN, init=False)
    reclaimed_ns: int = field(default=UNKNOWN, init=False)
    heap_held: int | None = field(default=None, init=False)
    outcome: str = field(default="pending", init=False)

    def __post_init__(self) -> None:
        self.shape = shape_of(self.mask)
        self.parts_left = self.num_blocks * self.mask.bit_count()

    @property
    def num_blocks(self) -> int:
        """How many blocks it is launched as."""
        return len(self.durations_ns)

    @property
    def blocks_left(self) -> int:
        """How many blocks no core was found for yet."""
        return self.num_blocks - self.next_block


def shape_of(mask: int) -> str:
    """The resource shape of a core mask: two or more cores make a MIX."""
    if mask == 0:
        return "DUMMY"
    if mask == AIC:
        return "AIC"
    return "AIV" if mask in (AIV0, AIV1) else "MIX"


@dataclass(frozen=True, slots=True)
class _Access:
    region: Region
    task: Task
    is_write: bool


class TaskGraph:
    """Tasks in program order and the edges between them.

    `first_id` lets the graphs of successive steps share one numbering. `given` is what the tasks
    that are submitted from now on read of earlier graphs.
    """

    def __init__(self, first_id: int = 0) -> None:
        self.tasks: list[Task] = []
        self.edges: list[Edge] = []
        self.given = Left()
        self._first_id = first_id
        self._accesses: dict[str, list[_Access]] = {}
        self._ordered: set[tuple[int, int]] = set()
        self._scope: int | None = None
        self._num_scopes = 0

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Keep what is submitted inside until all of it has been submitted; scopes do not nest."""
        assert self._scope is None, "scopes do not nest"
        self._num_scopes += 1
        self._scope = self._num_scopes
        yield
        self._scope = None

    def submit(
        self,
        name: str,
        mask: int,
        durations_ns: Sequence[int],
        *,
        reads: Iterable[Region] = (),
        writes: Iterable[Region] = (),
        is_sync_start: bool = False,
        enabled: bool = True,
        heap_bytes: int = 0,
    ) -> Task:
        """Append a task; it waits for every earlier task whose accesses it conflicts with, and for
        what the graph puts before one of its shape.

        Raises ConfigError for a mask that names no core of a group, and for no or negative times.
        """
        if not 0 <= mask <= MIX_MASK or not durations_ns or min(durations_ns) < 0:
            raise ConfigError(
                f"task {name!r} has core mask {mask} and {len(durations_ns)} blocks",
                todo="give a mask from 0 to 7 and a time of 0 ns or more for each block",
            )
        barrier = self._barrier_before(shape_of(mask))
        task = Task(
            self._first_id + len(self.tasks), name, mask, durations_ns, is_sync_start, enabled,
            heap_bytes=heap_bytes, scope=self._scope, given=self.given,
        )  # fmt: skip
        self.tasks.append(task)
        for region in reads:
            self._access(_Access(region, task, is_write=False))
        for region in writes:
            self._access(_Access(region, task, is_write=True))
        if barrier:
            self.order(barrier, task, "barrier")
        self._submitted(task)
        return task

    def _barrier_before(self, shape: str) -> Task | None:
        """What a task of the shape waits for, whatever it accesses: nothing, by default."""
        del shape
        return None

    def _submitted(self, task: Task) -> None:
        """Take note of a task; nothing, by default."""

    def _access(self, new: _Access) -> None:
        earlier = self._accesses.setdefault(new.region.tensor, [])
        for old in earlier:
            if (old.is_write or new.is_write) and _overlap(old.region, new.region):
                self.order(old.task, new.task, new.region.tensor)
        if new.is_write:
            # Whoever comes later waits for this write, and so for all that it fully hides.
            earlier[:] = [old for old in earlier if not _covers(new.region, old.region)]
        earlier.append(new)

    def order(self, before: Task, after: Task, source: str = "explicit") -> None:
        """Let `after` wait for `before`, once whatever the number of reasons."""
        if before is after or (before.id, after.id) in self._ordered:
            return
        self._ordered.add((before.id, after.id))
        after.predecessors.append(before)
        before.followers.append(after)
        self.edges.append(Edge(before.id, after.id, source))


def _overlap(a: Region, b: Region) -> bool:
    return a.first < b.last and b.first < a.last


def _covers(outer: Region, inner: Region) -> bool:
    return outer.first <= inner.first and inner.last <= outer.last
