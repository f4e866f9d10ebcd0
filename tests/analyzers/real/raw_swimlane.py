"""A swimlane folder read with nothing but `json`, to count by hand what rules say of it.

Neither the readers nor Polars are used here, and blocks are compared one with another, where rules
sort and add up: the two can only agree by being right.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Block = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """What one core ran of a task, in nanoseconds."""

    task: int
    core: int
    dispatch_ns: int
    start_ns: int
    end_ns: int


class RawSwimlane:
    """The records of a folder: `parts`, the `kernels` of each task, `edges` that order tasks.

    `submitted_ns` and `passed_ns` are when a task was submitted, and when the scheduler was through
    with one that needs no core.
    """

    def __init__(self, folder: Path) -> None:
        records = _json(folder / "chip_swimlane_records.json")
        deps = _json(folder / "deps.json")
        device = records["metadata"]
        self._ns = 1_000_000_000 // device["clock_freq_hz"]
        self.num_aic = device["core_types"].count("aic")
        self.num_aiv = device["core_types"].count("aiv")
        told = {(core, reg): at for core, reg, at, _ in records["aicpu_tasks"]}
        self.parts = [
            Part(task, core, *(self._ns * at for at in (told[core, reg], start, end)))
            for core, task, reg, start, end, *_ in records["aicore_tasks"]
        ]
        self.kernels = {int(task["task_id"]): task["kernel_ids"] for task in deps["tasks"]}
        self.edges = {
            (int(edge["pred"]), int(edge["succ"]))
            for edge in deps["edges"]
            if "wait" in edge["flags"]
        }
        self.submitted_ns = self._ends(records["aicpu_orchestrator_phases"])
        self.passed_ns = self._ends(records["aicpu_scheduler_phases"])

    def _ends(self, threads: list[list[dict[str, Any]]]) -> dict[int, int]:
        phases = [phase for thread in threads for phase in thread if "task_id" in phase]
        return {int(phase["task_id"]): self._ns * phase["end_cycles"] for phase in phases}

    def shape(self, task: int) -> str:
        """AIC or AIV for a task with one kernel, MIX with several, DUMMY with none."""
        needs = [kernel >= 0 for kernel in self.kernels[task]]
        if sum(needs) != 1:
            return "MIX" if any(needs) else "DUMMY"
        return "AIC" if needs[0] else "AIV"

    def group(self, core: int) -> int:
        """AIC `g` and the AIVs `2g` and `2g + 1` are a group."""
        return core if core < self.num_aic else (core - self.num_aic) // 2

    def mixes(self) -> list[list[Part]]:
        """The parts of each block of a MIX: what one group got together of a task."""
        turns: dict[tuple[int, int], int] = defaultdict(int)
        blocks: dict[Block, list[Part]] = defaultdict(list)
        for part in sorted(self.parts, key=lambda part: part.dispatch_ns):
            if self.shape(part.task) == "MIX":
                turn = turns[part.task, part.core]
                turns[part.task, part.core] += 1
                blocks[part.task, self.group(part.core), turn].append(part)
        return list(blocks.values())

    def is_held(self, part: Part) -> bool:
        """Whether its core was somebody else's when it was dispatched."""
        return any(
            other.core == part.core and other.dispatch_ns < part.dispatch_ns < other.end_ns
            for other in self.parts
        )

    def ends_ns(self) -> dict[int, int]:
        """When each task was over: its last part, else when the scheduler was through with it."""
        ends = dict(self.submitted_ns) | self.passed_ns
        ran: dict[int, int] = defaultdict(int)
        for part in self.parts:
            ran[part.task] = max(ran[part.task], part.end_ns)
        return ends | ran

    def ready_ns(self) -> dict[int, int]:
        """When each task was submitted and all that it waits for was over."""
        ends, ready = self.ends_ns(), dict(self.submitted_ns)
        for before, task in self.edges:
            ready[task] = max(ready[task], ends[before])
        return ready


def _json(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
