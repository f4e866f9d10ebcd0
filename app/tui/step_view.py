"""What the step page shows of a position, looked up in a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from stepscope.app.debug import LeftOut, Position, Session, StepDetail
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

CoreName = tuple[int | None, str]
TaskName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StepView:
    """A step's detail, the reasons about one request, and names for cores and tasks.

    `cores` maps a core to its group and its kind, `tasks` a task to its name and shape.
    """

    position: Position
    detail: StepDetail
    request: str | None = None
    why: tuple[LeftOut, ...] = ()
    cores: Mapping[int, CoreName] = field(default_factory=dict)
    tasks: Mapping[int, TaskName] = field(default_factory=dict)

    @property
    def requests(self) -> list[str]:
        """Everyone who can be asked about: the batch, then who was left out."""
        seated = [str(row["request"]) for row in self.detail.rows]
        return list(dict.fromkeys([*seated, *(left.request for left in self.detail.left_out)]))


def cores_of(trace: Trace, rank: int) -> dict[int, CoreName]:
    """Group and kind of every core that the trace knows."""
    seen = trace.core_spans.filter(pl.col("rank") == rank).select("core", "group", "core_kind")
    rows = seen.unique().sort("group", "core_kind", "core").collect().iter_rows()
    return {core: (group, kind or f"core {core}") for core, group, kind in rows}


def look_at_step(
    session: Session, position: Position, request: str | None, cores: Mapping[int, CoreName]
) -> StepView:
    """Move a session, which must be the caller's own, and read what is there."""
    session.position = position
    detail = session.detail()
    tasks = _task_names(session.trace, session.rank, set(_tasks(detail)))
    return StepView(position, detail, request, _why(session, request), cores, tasks)


def _why(session: Session, request: str | None) -> tuple[LeftOut, ...]:
    if request is None:
        return ()
    try:
        return tuple(session.why(request))
    except ConfigError:  # the request that was followed is not in this trace's lifecycle
        return ()


def _tasks(detail: StepDetail) -> Iterator[int]:
    for slots in (detail.after.cores or {}).values():
        yield from (block[0] for block in slots if block)


def _task_names(trace: Trace, rank: int, tasks: set[int]) -> dict[int, TaskName]:
    own = (pl.col("rank") == rank) & pl.col("task").is_in(sorted(tasks))
    rows = trace.tasks.filter(own).select("task", "name", "shape").collect()
    return {task: (name or f"task {task}", shape) for task, name, shape in rows.iter_rows()}
