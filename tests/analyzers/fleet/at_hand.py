"""Fleets for tests: a pool that works in this process, and archives of what it read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.findings.rule import Rule
from stepscope.analyzers.fleet.archive.opened import opened
from stepscope.analyzers.fleet.archive.partitions import scanned
from stepscope.analyzers.fleet.found_traces import found_traces
from stepscope.analyzers.fleet.importing import Importing, Tally
from stepscope.analyzers.fleet.messages import Answer, Settings, Task, answer_of, encoded, task_of
from stepscope.analyzers.fleet.work import carried_out
from stepscope.analyzers.fleet.worker_pool import Pool, Told

DAY = date(2026, 11, 26)
Does = Callable[[Task], Answer]


class Here:
    """Does what it is asked at once, in this process, and says it as another process would."""

    def __init__(self, does: Does = carried_out, room: int = 4) -> None:
        self.tasks: list[Task] = []
        self._does, self._room = does, room
        self._told: Told = []

    def room(self) -> int:
        return self._room - len(self._told)

    def submit(self, ticket: int, task: Task) -> None:
        self.tasks.append(task)
        answer = self._does(task_of(encoded(task)))
        self._told.append((ticket, answer_of(encoded(answer))))

    def wait(self, seconds: float) -> Told:
        told, self._told = self._told[-1:], self._told[:-1]  # the last comes first
        return told

    def close(self) -> None:
        pass


def imported(
    archive: Path,
    *places: object,
    pool: Pool | None = None,
    again: bool = False,
    rules: Iterable[Rule] = RULES,
    day: date = DAY,
) -> Tally:
    """Import what is there, with all of our rules."""
    used = pool or Here()
    found = found_traces(map(str, places))
    with opened(archive, new=True, day=lambda: day) as at_hand:
        run = Importing(at_hand, Settings.of(rules), used, used, lambda *_: None)
        return run.run(found, again=again)


def rows(archive: Path, table: str, *columns: str) -> list[dict[str, Any]]:
    """The rows of a table, sorted by their columns."""
    frame = scanned(archive)[table].collect()
    wanted = frame.select(columns) if columns else frame
    order = [name for name in ("trace", "place", "path") if name in wanted.columns]
    return wanted.sort(order or pl.all()).to_dicts()
