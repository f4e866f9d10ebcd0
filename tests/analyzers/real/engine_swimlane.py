"""A step of the reference engine's device, written as the core-group runtime writes a swimlane.

A cycle is a nanosecond. What the engine records and the format has no place for, such as the slot
that a block was dispatched to, is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.analyzers.samples.raw_trace import RawTrace, Row

NS = 1_000_000_000
BITS = (1, 2, 4)
"""AIC, AIV0 and AIV1 of a task's mask."""


def write_swimlane(raw: RawTrace, step: int, folder: Path) -> Path:
    """Write the records and dependencies of a step into a new folder."""
    folder.mkdir()
    tasks = [row for row in raw.table("tasks") if row["step"] == step]
    numbers = {row["task"] for row in tasks}
    spans = [row for row in raw.table("core_spans") if row["task"] in numbers]
    edges = [row for row in raw.table("task_edges") if row["to_task"] in numbers]
    records = {"metadata": _device(raw.manifest["config"]["device"])} | _records(tasks, spans)
    (folder / "chip_swimlane_records.json").write_text(json.dumps(records))
    (folder / "deps.json").write_text(json.dumps(_deps(tasks, edges)))
    return folder


def _device(device: Row) -> Row:
    """AICs first, then the AIVs of each group."""
    groups = device["groups"]
    threads = [group["thread"] for group in groups]
    return {
        "clock_freq_hz": NS,
        "num_cores": 3 * len(groups),
        "core_types": ["aic"] * len(groups) + ["aiv"] * 2 * len(groups),
        "core_to_thread": threads + [thread for thread in threads for _ in range(2)],
    }


def _records(tasks: list[Row], spans: list[Row]) -> Row:
    registers: Counter[int] = Counter()
    ran, dispatched = [], []
    for row in sorted(spans, key=lambda row: int(row["dispatch_ns"])):
        registers[row["core"]] += 1
        place = [row["core"], registers[row["core"]]]
        ran.append([place[0], row["task"], place[1], row["ts_ns"], row["end_ns"], 0])
        dispatched.append([*place, row["dispatch_ns"], row["end_ns"]])
    submitted = [
        {"task_id": row["task"], "start_cycles": row["ts_ns"], "end_cycles": row["ts_ns"]}
        for row in tasks
    ]
    passed = [
        {"kind": "dummy", "task_id": row["task"], "start_cycles": row["retired_ns"],
         "end_cycles": row["retired_ns"]}
        for row in tasks if row["outcome"] in ("dummy", "skipped")
    ]  # fmt: skip
    return {
        "aicore_tasks": ran,
        "aicpu_tasks": dispatched,
        "aicpu_scheduler_phases": [passed],
        "aicpu_orchestrator_phases": [submitted],
    }


def _deps(tasks: list[Row], edges: list[Row]) -> Row:
    return {
        "tasks": [
            {
                "task_id": str(row["task"]),
                "kernel_ids": [0 if row["core_mask"] & bit else -1 for bit in BITS],
                "block_num": row["num_blocks"],
            }
            for row in tasks
        ],
        "edges": [
            {"pred": str(row["from_task"]), "succ": str(row["to_task"]), "flags": ["wait"]}
            for row in edges
        ],
    }
