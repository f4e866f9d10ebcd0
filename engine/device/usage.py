"""What a run cost: the figures of the table that compares admission policies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stepscope.engine.device.graphs.tasks import AIC
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.topology import Device, Part


@dataclass(slots=True)
class Usage:
    """Sums over the graphs that were run to their end; of one that stalled, conflicts alone count.

    A core is used while it computes, and one that was booked twice is used once. A MIX part that
    holds its core until its mates have started does not compute: that time is in `aic_held_ns` (of
    AICs). A MIX block waits from when it was ready until its last part starts.
    """

    num_graphs: int = 0
    elapsed_ns: int = 0
    num_conflicts: int = 0
    aic_used_ns: int = 0
    aiv_used_ns: int = 0
    aic_held_ns: int = 0
    aic_time_ns: int = 0
    aiv_time_ns: int = 0
    mix_waits_ns: list[int] = field(default_factory=list)
    num_wrong_tasks: int | None = None

    def add(self, run: Run, device: Device, num_wrong_tasks: int | None = None) -> None:
        """Count one more run, and the tasks in it that computed something wrong, where known."""
        if num_wrong_tasks is not None:
            self.num_wrong_tasks = (self.num_wrong_tasks or 0) + num_wrong_tasks
        self.num_conflicts += len(run.conflicts)
        if run.stall:
            return
        elapsed_ns = run.end_ns - run.start_ns
        self.num_graphs += 1
        self.elapsed_ns += elapsed_ns
        self.aic_time_ns += elapsed_ns * len(device.groups)
        self.aiv_time_ns += elapsed_ns * len(device.groups) * 2
        ended = [part for part in run.parts if part.end_ns >= 0]
        self._compute(ended)
        for part in ended:
            began_ns = _began_ns(part)
            if part.core.role == AIC:
                self.aic_held_ns += began_ns - part.start_ns
            if part.task.shape == "MIX" and part is part.mates[0]:
                last_ns = max(mate.start_ns for mate in part.mates)
                self.mix_waits_ns.append(last_ns - part.task.ready_ns)

    def metrics(self) -> dict[str, float | int]:
        """The table's columns: mean makespan, shares of use, and waits in microseconds.

        Of what never was, a graph that ended or a MIX block in it, there is no metric.
        """
        figures: dict[str, float | int] = {"admission_conflicts": self.num_conflicts}
        if self.num_graphs:
            figures["makespan_us"] = _us(self.elapsed_ns / self.num_graphs)
            figures["aic_held_us"] = _us(self.aic_held_ns)
        if self.aic_time_ns:
            figures["aic_use"] = round(self.aic_used_ns / self.aic_time_ns, 4)
            figures["aiv_use"] = round(self.aiv_used_ns / self.aiv_time_ns, 4)
        if waits_ns := sorted(self.mix_waits_ns):
            figures["mix_wait_p50_us"] = _us(waits_ns[len(waits_ns) // 2])
            figures["mix_wait_max_us"] = _us(waits_ns[-1])
        return figures

    def _compute(self, ended: Iterable[Part]) -> None:
        until_ns: dict[int, int] = {}
        for part in sorted(ended, key=_began_ns):
            core, since_ns = part.core, max(_began_ns(part), until_ns.get(part.core.id, 0))
            used_ns = max(0, part.end_ns - since_ns)
            until_ns[core.id] = since_ns + used_ns
            if core.role == AIC:
                self.aic_used_ns += used_ns
            else:
                self.aiv_used_ns += used_ns


def _began_ns(part: Part) -> int:
    """When the core began to compute: for a MIX, when its last part had started."""
    return part.end_ns - part.task.durations_ns[part.block]


def _us(ns: float) -> float:
    return round(ns / 1_000, 1)
