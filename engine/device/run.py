"""What a run of a task graph leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepscope.engine.device.tasks import Part, Task


@dataclass(frozen=True, slots=True)
class Decision:
    """A MIX block that was admitted to a group, or a MIX task that was put back.

    `needed` and `available` count cores of the group; `holder` is the block on the first of them
    that was busy, `instead` a group that was all free and was not tried.
    """

    ts_ns: int
    task: Task
    verdict: str
    reason: str
    needed: int
    available: int
    holder: str | None
    instead: str | None
    thread: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A MIX block was admitted in part: `core`, which it needs, still held the block `holder`."""

    ts_ns: int
    task: int
    block: int
    group: int
    core: int
    holder: str


@dataclass(slots=True)
class Run:
    """What became of a graph: its parts in the order of dispatch, and what was decided.

    `stall` is None, or says where the run stood when no progress was possible any more.
    """

    start_ns: int
    end_ns: int = 0
    parts: list[Part] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    stall: str | None = None
