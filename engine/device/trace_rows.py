"""How a run of a task graph becomes rows of the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.engine.device.graphs.tasks import ROLE_NAMES, TaskGraph
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.topology import Part

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder


def record_run(recorder: Recorder, step: int, graph: TaskGraph, run: Run) -> None:
    """Write what a step's tasks, edges, cores, queues and threads were, and who decided what.

    What was in local memory is written too, where that is kept.

    A task that never retired has no `retired_ns` and is pending; a block that began and never ended
    has no `end_ns`; one that was dispatched and never began is in `core_waits`.
    """
    for task in graph.tasks:
        recorder.tasks(
            step, _known(task.submitted_ns, run.end_ns), task.id, task.name, task.shape, task.mask,
            task.num_blocks, task.is_sync_start, _known(task.ready_ns), _known(task.retired_ns),
            task.outcome, _known(task.queued_ns), _known(task.reclaimed_ns), task.heap_held,
            task.queue, _known(task.dequeued_ns),
        )  # fmt: skip
    submitted = {task.id: task.submitted_ns for task in graph.tasks}
    for edge in graph.edges:
        ts_ns = _known(submitted[edge.to_task], run.end_ns)
        recorder.task_edges(step, ts_ns, edge.from_task, edge.to_task, edge.source)
    for part in run.parts:
        record = _record_part if part.start_ns >= 0 else _record_wait
        record(recorder, step, part)
    for listed in run.listed:
        recorder.ready_order(step, *listed)
    for began in run.phases:
        recorder.thread_phases(step, *began)
    for made in run.decisions:
        recorder.decisions(
            step, made.ts_ns, "task", str(made.task.id), made.verdict, made.reason, made.resource,
            made.needed, made.available, made.holder and str(made.holder.id), made.instead,
            made.thread, made.site, made.core,
        )  # fmt: skip
    for access in run.tiles.accesses if run.tiles else ():
        recorder.accesses(
            step, access.ts_ns, None if access.core is None else tile_of(access.core), None, None,
            access.op, f"core {access.by_core}", None, None, access.event, access.digest,
        )  # fmt: skip


def tile_of(core: int) -> str:
    """The name of a core's local memory among the buffers of a trace."""
    return f"tile of core {core}"


def _record_part(recorder: Recorder, step: int, part: Part) -> None:
    task = part.task
    recorder.core_spans(
        step, part.start_ns, task.id, part.block, task.shape, part.group, part.core.id,
        ROLE_NAMES[part.role], part.slot, task.ready_ns, part.dispatch_ns, _known(part.end_ns),
        part.thread, part.claim_ns,
    )  # fmt: skip


def _record_wait(recorder: Recorder, step: int, part: Part) -> None:
    task = part.task
    recorder.core_waits(
        step, part.dispatch_ns, task.id, part.block, task.shape, part.group, part.core.id,
        ROLE_NAMES[part.role], part.slot, task.ready_ns, part.thread, part.claim_ns,
    )  # fmt: skip


def _known(ts_ns: int, otherwise: int | None = None) -> int | None:
    return ts_ns if ts_ns >= 0 else otherwise
