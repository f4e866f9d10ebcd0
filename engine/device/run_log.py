"""What a run of a task graph leaves behind, and what of that later ones read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stepscope.engine.device.graphs.tasks import Left, Task
from stepscope.engine.device.tiles import Tiles, digest_of, right_results
from stepscope.engine.device.topology import Part


class Decision(NamedTuple):
    """What a scheduler thread decided about a task: cores were given to it, or it was left out.

    `needed` and `available` count cores, of a MIX those of one group. `holder` is the task of which
    a block was on the first core that was busy, `core` that core, or else the task that goes first;
    `instead` is a group that was all free and was not tried.
    """

    ts_ns: int
    task: Task
    verdict: str
    reason: str
    resource: str
    needed: int | None
    available: int | None
    holder: Task | None
    core: int | None
    instead: str | None
    thread: int
    site: str | None = None


class Listed(NamedTuple):
    """From some place on, a ready queue has these tasks, and not those that came in that order."""

    ts_ns: int
    queue: str
    place: int
    task: int


class Began(NamedTuple):
    """A thread began to do something; `thread` is None for the one that submits tasks."""

    ts_ns: int
    thread: int | None
    phase: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A MIX block was admitted in part: `core`, which it needs, still held the block `holder`."""

    ts_ns: int
    task: int
    block: int
    group: int
    core: int
    holder: str


@dataclass(frozen=True, slots=True)
class Contents:
    """How many tasks computed something wrong; what is left of those that nobody waits for.

    The right contents are those of the same graph where no tile is in the way of another, nor was
    in the way in a graph before. `is_spoilt` says that one was in this very graph.
    """

    num_wrong_tasks: int
    left: Left
    is_spoilt: bool


@dataclass(slots=True)
class Run:
    """What became of a graph: its parts in the order of dispatch, and what was decided.

    `listed` is how ready queues stood where that does not follow from who came when.
    `stall` is None, or says where the run stood when no progress was possible any more. `tiles` is
    what the cores' memories held, None where a part waits for its mates and nothing can go wrong.
    """

    start_ns: int
    end_ns: int = 0
    parts: list[Part] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)
    phases: list[Began] = field(default_factory=list)
    stall: str | None = None
    tiles: Tiles | None = None

    def contents(self, tasks: Sequence[Task]) -> Contents | None:
        """What the tasks of the graph computed, and should have; None where that is not known.

        It is not where no contents were kept, or not all tasks are over.
        """
        if self.tiles is None or self.stall:
            return None
        right = right_results(tasks)
        undisturbed = right_results(tasks, was_right=False)
        found = {task: self.tiles.result(task) for task in tasks}
        last = [task for task in tasks if not task.followers]
        return Contents(
            sum(found[task] != right[task] for task in tasks if task.outcome == "run"),
            Left(*(digest_of(each[task] for task in last) for each in (found, right))),
            any(found[task] != undisturbed[task] for task in last),
        )


class Histories:
    """By request what the steps so far have left, its KV and tokens, and what they should have."""

    def __init__(self) -> None:
        self._left: dict[str, Left] = {}

    def given(self, requests: Iterable[str]) -> Left:
        """What tasks read that compute on all of `requests` together."""
        return _together(self._left[each] for each in requests if each in self._left)

    def add(self, requests: Iterable[str], contents: Contents) -> None:
        """Take what a step left of `requests`.

        One whose own history is right stays so where nothing was in the way in this very step:
        that others in the same tiles have a wrong one is no matter of its.
        """
        right = contents.left.right
        step = Left(contents.left.found if contents.is_spoilt else right, right)
        for each in requests:
            self._left[each] = _together([self._left.get(each, Left()), step])

    def of(self, request: str) -> Left | None:
        """What is left of a request; None where it never ran."""
        return self._left.get(request)


def _together(left: Iterable[Left]) -> Left:
    each = [one for one in left if one.right]
    if not each:
        return Left()
    return Left(digest_of(one.found for one in each), digest_of(one.right for one in each))
