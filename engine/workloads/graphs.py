"""Task graphs of one's own: what a file may say of one, and what becomes of it on a device.

    {"groups": 8, "threads": 3,
     "tasks": [{"id": "push", "shape": "AIV", "num_blocks": 8, "dur_ns": 9000},
               {"id": "qk_pv", "shape": "MIX", "num_blocks": 8, "dur_ns": 15000},
               {"id": "combine", "shape": "AIV", "dur_ns": [4000, 5000], "after": ["qk_pv"]}]}

`docs/formats.md` says what each field means. Tasks are submitted in the order in which they stand,
but for one that waits for a later one: it comes after that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from random import Random
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from stepscope.engine.device.graphs.kernels import MASKS, Share
from stepscope.engine.device.graphs.tasks import Task, TaskGraph
from stepscope.ingest.errors import ConfigError

MAX_BLOCKS = 1_000_000
MAX_EDGES = 4_000_000
MAX_TOLD = 6
BARRIER, DUMMY = "BARRIER", "DUMMY"

Shape = Literal["AIC", "AIV", "MIX", "DUMMY", "BARRIER"]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Ns = Annotated[int, Meta(ge=0, le=10**12)]
Blocks = Annotated[int, Meta(ge=1, le=MAX_BLOCKS)]


class TaskSpec(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A task as a file gives it: `dur_ns` is that of every block, or a list of one for each."""

    id: Id
    shape: Shape
    name: Annotated[str, Meta(max_length=200)] = ""
    num_blocks: Blocks | UnsetType = UNSET
    dur_ns: Ns | Annotated[list[Ns], Meta(min_length=1, max_length=MAX_BLOCKS)] | UnsetType = UNSET
    core_mask: Annotated[int, Meta(ge=3, le=7)] | UnsetType = UNSET
    after: list[str] = []
    is_sync_start: bool = False
    is_enabled: bool = True
    heap_bytes: Annotated[int, Meta(ge=0, le=1 << 40)] = 0


class GraphSpec(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A graph as a file gives it; `groups` and `threads` are of the device it was made for."""

    tasks: Annotated[list[TaskSpec], Meta(min_length=1, max_length=MAX_BLOCKS)]
    groups: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    threads: Annotated[int, Meta(ge=1, le=10_000)] | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A task that has been looked through: the times of its blocks, and the places of those before.

    `after` are places in the order of submission, all smaller than its own.
    """

    spec: TaskSpec
    mask: int
    durations_ns: Sequence[int]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that can be run: its tasks in the order in which they are submitted."""

    launches: tuple[Launch, ...]

    def lower(self, graph: TaskGraph, share: Share, random: Random, num_groups: int) -> None:
        """Submit the tasks, each with its own times: nothing is drawn, and no batch is asked."""
        del share, random, num_groups
        tasks: list[Task] = []
        for launch in self.launches:
            spec = launch.spec
            task = graph.submit(
                spec.name or spec.id, launch.mask, launch.durations_ns,
                is_sync_start=spec.is_sync_start, enabled=spec.is_enabled,
                heap_bytes=spec.heap_bytes if spec.is_enabled else 0,
            )  # fmt: skip
            for place in launch.after:
                graph.order(tasks[place], task)
            tasks.append(task)


@dataclass(frozen=True, slots=True)
class Graphs:
    """What a file holds: graphs that run one after the other, and the device it was made for.

    `source` is the file's name. `inferred` are sentences on what the file does not say and was
    taken for so; `recorded_ns` is how long each graph took where it was recorded, None otherwise.
    """

    graphs: tuple[Graph, ...]
    source: str
    groups: int | None = None
    threads: int | None = None
    inferred: tuple[str, ...] = ()
    recorded_ns: tuple[int | None, ...] = ()


def graph_of(spec: GraphSpec) -> Graph:
    """Look a graph through; ConfigError names the task that is wrong, and what is wrong with it."""
    places = _places(spec.tasks)
    shaped = [_shaped(task) for task in spec.tasks]
    if sum(len(times) for _, times in shaped) > MAX_BLOCKS:
        raise ConfigError(f"there are more than {MAX_BLOCKS:,} blocks", todo="give a part of it")
    before = _before(spec.tasks, places)
    order = _order(spec.tasks, before)
    turn = {place: number for number, place in enumerate(order)}
    return Graph(
        tuple(
            Launch(spec.tasks[place], *shaped[place], tuple(turn[each] for each in before[place]))
            for place in order
        )
    )


def _places(tasks: Sequence[TaskSpec]) -> Mapping[str, int]:
    counts = Counter(task.id for task in tasks)
    for name, count in counts.most_common(1):
        if count > 1:
            raise ConfigError(f"{count} tasks are called {name!r}", todo="give each its own id")
    return {task.id: place for place, task in enumerate(tasks)}


def _shaped(task: TaskSpec) -> tuple[int, Sequence[int]]:
    """The cores that a block needs, and the time of each block."""
    if task.shape in (BARRIER, DUMMY):
        _refuse(task, "runs on no core", "num_blocks", "dur_ns", "core_mask")
        return 0, (0,)
    if task.shape != "MIX":
        _refuse(task, "runs on one core", "core_mask")
    if task.core_mask is not UNSET and task.core_mask.bit_count() < 2:
        raise _wrong(task, f"is a MIX of core_mask {task.core_mask}", "name two or more cores")
    mask = MASKS[task.shape] if task.core_mask is UNSET else task.core_mask
    return mask, _times(task)


def _times(task: TaskSpec) -> Sequence[int]:
    if task.dur_ns is UNSET:
        raise _wrong(task, "has no dur_ns", "say how long a block takes, in nanoseconds")
    if isinstance(task.dur_ns, int):
        return (task.dur_ns,) * (1 if task.num_blocks is UNSET else task.num_blocks)
    if task.num_blocks not in (UNSET, len(task.dur_ns)):
        raise _wrong(
            task, f"has {task.num_blocks} blocks and {len(task.dur_ns)} times", "leave one out"
        )
    return task.dur_ns


def _refuse(task: TaskSpec, why: str, *names: str) -> None:
    given = [name for name in names if getattr(task, name) is not UNSET]
    if given:
        raise _wrong(task, f"is of shape {task.shape}, which {why}", f"leave out {given[0]}")


def _wrong(task: TaskSpec, what: str, todo: str) -> ConfigError:
    return ConfigError(f"task {task.id!r} {what}", todo=todo)


def _before(tasks: Sequence[TaskSpec], places: Mapping[str, int]) -> list[list[int]]:
    """The places of the tasks that each one waits for, barriers counted in."""
    num_edges = 0
    before: list[list[int]] = []
    barrier, since = None, list[int]()
    for place, task in enumerate(tasks):
        named = [_place(task, each, places) for each in task.after]
        waits = since if task.shape == BARRIER else []
        known = dict.fromkeys([*named, *([] if barrier is None else [barrier]), *waits])
        if task.shape == BARRIER:
            barrier, since = place, []
        else:
            since.append(place)
        before.append(list(known))
        num_edges += len(known)
        if num_edges > MAX_EDGES:
            raise ConfigError(
                f"there are more than {MAX_EDGES:,} dependencies", todo="give a part of it"
            )
    return before


def _place(task: TaskSpec, name: str, places: Mapping[str, int]) -> int:
    if name not in places:
        raise _wrong(task, f"waits for {name[:200]!r}, which is not there", "name a task's id")
    return places[name]


def _order(tasks: Sequence[TaskSpec], before: Sequence[Sequence[int]]) -> list[int]:
    """Places in the order of submission: as they stand, where nobody waits for a later one."""
    num_left = [len(each) for each in before]
    followers: list[list[int]] = [[] for _ in tasks]
    for place, each in enumerate(before):
        for earlier in each:
            followers[earlier].append(place)
    free = [place for place, left in enumerate(num_left) if not left]
    heapify(free)
    order: list[int] = []
    while free:
        order.append(heappop(free))
        for place in followers[order[-1]]:
            num_left[place] -= 1
            if not num_left[place]:
                heappush(free, place)
    if len(order) < len(tasks):
        raise _cycle(tasks, before)
    return order


def _cycle(tasks: Sequence[TaskSpec], before: Sequence[Sequence[int]]) -> ConfigError:
    try:
        TopologicalSorter(dict(enumerate(before))).prepare()
    except CycleError as error:
        names = [repr(tasks[place].id) for place in error.args[1]]
        told = " before ".join([*names[:MAX_TOLD], *(["..."] if len(names) > MAX_TOLD else [])])
        return ConfigError(f"tasks wait for each other: {told}", todo="drop one of these `after`")
    raise AssertionError("tasks are left, and none of them is in a cycle")
