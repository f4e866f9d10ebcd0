"""What lines of a core-group runtime's log add up to: when each was written, and its run.

A run is one of a task graph on the device, of which the host says when it ended.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

LINE_NS = 1_000
"""How far a line without a time is placed behind the line before."""


@dataclass(slots=True)
class Places:
    """When each line was written: its own time, else behind the last line that has one."""

    lines: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def mark(self, line: int, ns: int) -> None:
        """Say when a line was written."""
        self.lines.append(line)
        self.times.append(ns)

    def lift(self, line: int, ns: int) -> None:
        """Say that lines from the last marked one up to `line` are not before `ns`."""
        last, last_ns = (self.lines[-1], self.times[-1]) if self.lines else (-1, 0)
        if last + 1 < line and ns > last_ns:
            self.mark(last + 1, ns)

    def ns(self, line: int) -> int:
        """When a line was written, or where it is placed."""
        at = bisect_right(self.lines, line) - 1
        return line * LINE_NS if at < 0 else self.times[at] + (line - self.lines[at]) * LINE_NS


@dataclass(slots=True)
class Run:
    """A run of a task graph on the device: from its first scheduler thread to its `runner_run`."""

    threads: dict[int, int] = field(default_factory=dict)
    span: tuple[int, int] | None = None
    num_cores: int | None = None
    first_line: int | None = None
    finish_line: int | None = None
    report_line: int | None = None
    failure: str | None = None
    failure_line: int | None = None
    stall_class: str | None = None
    completed: tuple[int, int] | None = None
    left: dict[str, int] = field(default_factory=dict)
    """The host's counts of remaining tasks: running, ready and waiting."""
    stuck: tuple[int, int, int | None] | None = None
    """The host's report of a stuck task: its line, the task and its core."""
    is_judged: bool = False
    """Whether the host reported how it ended."""
    is_timed_out: bool = False
    """Whether it said that the scheduler gave up, and why."""
    given: dict[int, int] = field(default_factory=dict)
    full: tuple[int, int, int, int] | None = None
    """The line of a scope deadlock, its ring, tasks of the scope, and the window's size."""

    @property
    def is_over(self) -> bool:
        """Whether all of its tasks are said to be over."""
        return self.finish_line is not None and len(set(self.completed or (0, 1))) == 1

    @property
    def refused(self) -> int:
        """The task that a full ring had no place for: the next after those that it was given."""
        _, ring, num_tasks, _ = self.full or (0, 0, 0, 0)
        return ring << 32 | self.given.get(ring, num_tasks)
