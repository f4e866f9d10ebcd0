"""`clusters`: every step's batch becomes one task graph on simulated core groups.

Decode rows are lowered to the chosen workload. Prompts are lowered to paged attention, tile by
tile: what the report is about happens while decoding.

A decode reads what the steps before have left of its request, its KV and its last token. So where a
tile was overwritten once, all that the step's requests get from then on is wrong, and nothing of
others that came later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from random import Random
from typing import TYPE_CHECKING, Any

from stepscope.engine.batch import DECODE, PREFILL
from stepscope.engine.device.admission import Admission
from stepscope.engine.device.dispatch_costs import Costs
from stepscope.engine.device.dispatcher import Dispatcher
from stepscope.engine.device.graphs.barriers import NO_BARRIER, AuthorBarriers, SerializedGraph
from stepscope.engine.device.graphs.kernels import Share
from stepscope.engine.device.graphs.tasks import TaskGraph
from stepscope.engine.device.late_parts import WAITS, LatePart
from stepscope.engine.device.lowering.workloads import Workload, workload
from stepscope.engine.device.rings import Rings, RingSizes
from stepscope.engine.device.run_log import Histories, Run
from stepscope.engine.device.topology import Device
from stepscope.engine.device.trace_rows import record_run
from stepscope.engine.device.usage import Usage
from stepscope.engine.executors import Digest, Execution
from stepscope.engine.executors.simulated import sampled

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder


NO_SCHEDULER: dict[str, Any] = {"ready": {}, "threads": {}}
"""What is known of one before the first graph."""


class Clusters:
    """Runs batches on `num_groups` core groups under an admission policy.

    `usage` sums up the graphs of decode steps. `on_event`, when set, is called after every instant
    in which something happened on the device, with the clock at that instant.
    """

    def __init__(  # noqa: PLR0913 - what a device is, each by its name
        self,
        admission: Admission,
        decode: Workload,
        *,
        num_groups: int = 8,
        num_threads: int = 3,
        ring_sizes: RingSizes | None = None,
        costs: Costs | None = None,
        late_part: LatePart = WAITS,
        author_barriers: AuthorBarriers = NO_BARRIER,
        seed: int = 0,
        faults: frozenset[str] = frozenset(),
    ) -> None:
        self.usage = Usage()
        self.on_event: Callable[[], None] | None = None
        self._admission = admission
        self._workloads = {PREFILL: workload("paged-attention"), DECODE: decode}
        self._shape = (num_groups, num_threads)
        self._device = Device(*self._shape)
        self._dispatcher: Dispatcher | None = None
        self._ring_sizes = ring_sizes
        self._costs = costs
        self._late_part = late_part
        self._author_barriers = author_barriers
        self._seed = seed
        self._faults = faults
        self._next_task = 0
        self._histories = Histories()

    def described(self) -> dict[str, Any]:
        """The device for a manifest: its groups, what scheduling costs on it, and its rings."""
        return {
            "groups": self._device.described(),
            "costs": asdict(self._costs or Costs()),
            "rings": asdict(self._ring_sizes or RingSizes()),
        }

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Lower the batch to one graph, dispatch it, and write down what the device did.

        A step that stalls samples nothing and lasts until the device gives it up; nothing runs on
        that device after it.
        """
        began_ns = clock.now_ns()
        graph = self._lower(batch, step)
        run = self.run_graph(graph, step, clock, recorder)
        if batch.num_decode_reqs:
            self.count(graph, run)
        dur_ns = clock.now_ns() - began_ns
        if run.stall:
            return Execution(dur_ns, f"stalled: {run.stall}", {}, stop=f"device: {run.stall}")
        path = self._workloads[DECODE if batch.num_decode_reqs else PREFILL].name
        if contents := run.contents(graph.tasks):
            self._histories.add((row.request.id for row in batch.rows), contents)
        tokens = sampled(batch)
        return Execution(dur_ns, path, tokens, digests=self._digests(tokens))

    def run_graph(
        self, graph: TaskGraph, step: int, clock: Clock, recorder: Recorder | None
    ) -> Run:
        """Dispatch a graph on a device that is idle, and write down what became of it."""
        run = self._dispatch(graph, clock, is_told=recorder is not None)
        clock.advance_to(run.end_ns)
        if recorder:
            record_run(recorder, step, graph, run)
        return run

    def count(self, graph: TaskGraph, run: Run) -> None:
        """Add a run to the usage."""
        contents = run.contents(graph.tasks)
        self.usage.add(run, self._device, contents.num_wrong_tasks if contents else None)

    def new_graph(self) -> TaskGraph:
        """An empty graph, numbered behind those before it, with the barriers of its author."""
        return SerializedGraph(self._next_task, self._author_barriers)

    def snapshot(self) -> dict[str, Any]:
        """Return what each core's slots hold, by core, and what the device's scheduler does."""
        scheduler = self._dispatcher.snapshot() if self._dispatcher else NO_SCHEDULER
        return {"cores": self._device.snapshot(), **scheduler}

    def _lower(self, batch: Batch, step: int) -> TaskGraph:
        graph = self.new_graph()
        random = Random(f"kernels {self._seed} {step}")  # noqa: S311 - it simulates
        for phase, work in self._workloads.items():
            rows = [row for row in batch.rows if row.phase == phase]
            if rows:
                graph.given = self._histories.given(row.request.id for row in rows)
                work.lower(graph, _share(rows), random, self._shape[0])
        return graph

    def _digests(self, tokens: Mapping[str, Sequence[int]]) -> dict[str, tuple[Digest, ...]]:
        """Tokens are sampled from what is left of their requests; none where that is not known."""
        left = {request: self._histories.of(request) for request in tokens}
        return {
            request: (Digest(of.found, of.right),) * len(tokens[request])
            for request, of in left.items()
            if of
        }

    def _dispatch(self, graph: TaskGraph, clock: Clock, *, is_told: bool) -> Run:
        self._next_task += len(graph.tasks)
        self._device = Device(*self._shape)
        on_event = self.on_event

        def observe(now_ns: int) -> None:
            clock.advance_to(now_ns)
            if on_event:
                on_event()

        rings = Rings(self._ring_sizes, loses_advance="lost-ring-advance" in self._faults)
        self._dispatcher = Dispatcher(
            self._device, self._admission, costs=self._costs, rings=rings, faults=self._faults,
            late_part=self._late_part, observer=observe if on_event else None,
            start_ns=clock.now_ns(), is_told=is_told,
        )  # fmt: skip
        return self._dispatcher.run(graph)


def _share(rows: Sequence[Row]) -> Share:
    return Share(
        num_reqs=len(rows),
        num_tokens=sum(row.num_tokens for row in rows),
        context_len=sum(row.num_kv_tokens for row in rows) // len(rows),
    )
