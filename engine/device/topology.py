"""Cores with what they run, core groups, and the scheduler threads that own them.

A device has N groups of one cube core (AIC) and two vector cores (AIV0, AIV1), "1C2V". Group ci
holds the cores {ci, N + 2ci, N + 2ci + 1} and belongs to scheduler thread `ci mod threads`.

A core has two slots: one block runs, one waits behind it. Two views of them are kept apart:

- `running` and `pending` are what the silicon holds. They change when a block is published, starts
  or ends.
- `claims` is what the core's scheduler thread knows: the blocks that it gave to the core and has
  not yet seen end. It learns of an end only when it polls, so a core may be empty and still count
  as busy; that delay is part of what a scheduler costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stepscope.engine.device.graphs.tasks import AIC, ROLE_NAMES, ROLES, UNKNOWN, Task
from stepscope.ingest.errors import ConfigError


@dataclass(slots=True, eq=False)
class Part:
    """The share of one block that runs on one core; AIC-only and AIV-only blocks have one part.

    `mates` holds all parts of the block. `slot` is the slot that it was dispatched to. `group` is
    the group that the scheduler chose and `role` the place in it that the kernel was built for.
    """

    task: Task
    block: int
    core: Core
    role: int
    group: int
    slot: str
    thread: int
    mates: list[Part]
    dispatch_ns: int = UNKNOWN
    start_ns: int = UNKNOWN
    end_ns: int = UNKNOWN
    claim_ns: int = UNKNOWN

    def __str__(self) -> str:
        return f"{self.task.name} {self.block}/{self.task.num_blocks}"


@dataclass(slots=True, eq=False)
class Core:
    """One core: its place in its group, its two slots, and what its thread believes."""

    id: int
    role: int
    group: int
    thread: int
    running: Part | None = None
    pending: Part | None = None
    claims: list[Part] = field(default_factory=list)

    @property
    def is_idle(self) -> bool:
        """Nothing was given to it that has not been seen to end."""
        return not self.claims

    def can_queue(self, asking: int) -> bool:
        """One block was given to it, and its pending slot is free for the thread that asks.

        A block that another thread is still preparing for it has to arrive first: for an
        all-or-nothing start, a thread asks for the cores of others too.
        """
        if len(self.claims) != 1 or self.pending is not None:
            return False
        first = self.claims[0]
        return first.thread == asking or first.dispatch_ns >= 0

    @property
    def is_empty(self) -> bool:
        """The silicon holds no block, whatever the scheduler believes."""
        return self.running is None and self.pending is None


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One AIC and two AIVs that share a scheduler thread."""

    id: int
    thread: int
    cores: tuple[Core, Core, Core]

    def needed(self, mask: int) -> tuple[Core, ...]:
        """The cores that a task with this core mask takes."""
        return tuple(core for core in self.cores if core.role & mask)

    @property
    def is_free(self) -> bool:
        """The AIC is free and so is every AIV, whether a task needs it or not."""
        aic, aiv0, aiv1 = self.cores
        return not (aic.claims or aiv0.claims or aiv1.claims)

    @property
    def has_vector_task(self) -> bool:
        """An AIV-only block was given to one of its AIVs and has not been seen to end."""
        return any(part.task.shape == "AIV" for core in self.cores[1:] for part in core.claims)


@dataclass(frozen=True, slots=True, eq=False)
class Thread:
    """A scheduler thread and the groups and cores that only it dispatches to."""

    id: int
    groups: tuple[Group, ...]
    cores: tuple[Core, ...]
    aics: tuple[Core, ...]
    aivs: tuple[Core, ...]


class Device:
    """All cores of a device, seen by core, by group and by scheduler thread.

    `num_vector_blocks` counts the AIV-only blocks in flight on the whole device.
    Raises ConfigError for fewer than one group or thread.
    """

    def __init__(self, num_groups: int = 24, num_threads: int = 3) -> None:
        if num_groups < 1 or num_threads < 1:
            raise ConfigError(
                f"a device of {num_groups} groups and {num_threads} threads cannot run anything",
                todo="give at least one of each",
            )
        self.groups = tuple(_group(ci, num_groups, num_threads) for ci in range(num_groups))
        self.cores = tuple(
            sorted((core for group in self.groups for core in group.cores), key=lambda c: c.id)
        )
        self.threads = tuple(_thread(t, self.groups) for t in range(num_threads))
        self.num_vector_blocks = 0

    def described(self) -> list[dict[str, int]]:
        """Each group in order: its thread, and its cores by their kinds."""
        return [
            {"thread": group.thread} | {ROLE_NAMES[core.role]: core.id for core in group.cores}
            for group in self.groups
        ]

    def snapshot(self) -> dict[int, dict[str, list[int] | None]]:
        """What each core's two slots hold: `[task, block]` or None, by core and by slot."""
        return {
            core.id: {"running": _held(core.running), "pending": _held(core.pending)}
            for core in self.cores
        }


def _held(part: Part | None) -> list[int] | None:
    return None if part is None else [part.task.id, part.block]


def _group(ci: int, num_groups: int, num_threads: int) -> Group:
    ids = (ci, num_groups + 2 * ci, num_groups + 2 * ci + 1)
    thread = ci % num_threads
    aic, aiv0, aiv1 = (Core(i, role, ci, thread) for i, role in zip(ids, ROLES, strict=True))
    return Group(ci, thread, (aic, aiv0, aiv1))


def _thread(thread: int, all_groups: tuple[Group, ...]) -> Thread:
    groups = tuple(group for group in all_groups if group.thread == thread)
    cores = tuple(core for group in groups for core in group.cores)
    return Thread(
        thread,
        groups,
        cores,
        aics=tuple(core for core in cores if core.role == AIC),
        aivs=tuple(core for core in cores if core.role != AIC),
    )
