"""Graphs of one's own on a device: a step for each, and no requests."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from stepscope.engine.clock import Clock
from stepscope.engine.device.graphs.kernels import Share
from stepscope.engine.workloads.graphs import Graph, Graphs

if TYPE_CHECKING:
    from stepscope.engine.executors.clusters import Clusters
    from stepscope.ingest.recorder import Recorder

NOBODY = Share(0, 0, 0)


def replay(
    given: Graphs,
    device: Clusters,
    clock: Clock,
    recorder: Recorder | None,
    observer: Callable[[dict[str, Any]], None] | None = None,
) -> str | None:
    """Run the graphs one after the other; return where a stall ended that, None where none did.

    `observer` is given what the cores hold at every event.
    """
    for step, graph in enumerate(given.graphs, 1):
        if observer:
            device.on_event = _observed(observer, device, clock, step)
        stall = _step(graph, device, step, clock, recorder)
        if stall:
            return stall
    return None


def _step(
    given: Graph, device: Clusters, step: int, clock: Clock, recorder: Recorder | None
) -> str | None:
    began_ns = clock.now_ns()
    graph = device.new_graph()
    given.lower(graph, NOBODY, Random(0), 0)  # noqa: S311 - nothing is drawn from it
    run = device.run_graph(graph, step, clock, recorder)
    device.count(graph, run)
    if recorder:
        recorder.steps(
            step, began_ns, clock.now_ns() - began_ns, "dummy", 0, 0, 0, 0,
            executed_path=f"stalled: {run.stall}" if run.stall else "task graph",
        )  # fmt: skip
    return run.stall


def _observed(
    observer: Callable[[dict[str, Any]], None], device: Clusters, clock: Clock, step: int
) -> Callable[[], None]:
    idle: dict[str, Any] = {"waiting": [], "running": [], "batch": []}
    return lambda: observer({"ts_ns": clock.now_ns(), "step": step, **idle, **device.snapshot()})
