"""Swimlane folders taken apart and written again: one made here, and real ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.ingest.readers.swimlane.test_reader import deps, records

_REAL = ROOT.parent / "shared" / "data" / "swimlane"
_CASES = ("TestMixedExample_case1", "TestSpmdStarvation_Case1", "TestBenchmarkBgemm_Case1")
RECORDS, DEPS = "chip_swimlane_records.json", "deps.json"
PHASES = ("aicpu_scheduler_phases", "aicpu_orchestrator_phases")


@dataclass(slots=True)
class Swimlane:
    """The files of a folder that are JSON, and those that are copied as they are."""

    records: dict[str, Any]
    deps: dict[str, Any]
    names: dict[str, str]
    beside: dict[str, bytes] = field(default_factory=dict)

    def write(self, folder: Path, written: Callable[[Any], bytes] | None = None) -> Path:
        """The folder again, in the spelling that is asked for."""
        spelled = written or (lambda value: json.dumps(value).encode())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / RECORDS).write_bytes(spelled(self.records))
        (folder / DEPS).write_bytes(spelled(self.deps))
        (folder / "name_map_Case1.json").write_bytes(spelled({"callable_id_to_name": self.names}))
        for name, content in self.beside.items():
            (folder / name).write_bytes(content)
        return folder


def names() -> list[str]:
    """What there is on this machine."""
    return ["made", *(name for name in _CASES if (_REAL / name).is_dir())]


def swimlane(name: str) -> Swimlane:
    """One of them, to be changed."""
    if name == "made":
        # Parts of it are constants of another test: what is changed here is a copy of them.
        return Swimlane(deepcopy(records()), deps(), {"7": "softmax", "8": "qk", "9": "pv"})
    folder = _REAL / name
    told, found = (json.loads((folder / each).read_bytes()) for each in (RECORDS, DEPS))
    (named,) = folder.glob("name_map_*.json")
    called = json.loads(named.read_bytes())["callable_id_to_name"]
    scopes = {"scope_stats.jsonl": (folder / "scope_stats.jsonl").read_bytes()}
    return Swimlane(told, found, called, scopes)


def each_cycle(found: Swimlane, changed: Callable[[int], int]) -> Swimlane:
    """The same with each time otherwise."""
    for record in found.records["aicore_tasks"]:
        record[3:5] = map(changed, record[3:5])
    for record in found.records["aicpu_tasks"]:
        record[2:4] = map(changed, record[2:4])
    for phases in PHASES:
        for thread in found.records[phases]:
            for phase in thread:
                phase |= {key: changed(phase[key]) for key in ("start_cycles", "end_cycles")}
    return found


def each_task(found: Swimlane, renamed: Callable[[int], int]) -> Swimlane:
    """The same with each task called otherwise."""
    for record in found.records["aicore_tasks"]:
        record[1] = renamed(record[1])
    for phases in PHASES:
        for thread in found.records[phases]:
            for phase in thread:
                phase |= {key: renamed(phase[key]) for key in ("task_id",) if key in phase}
    for task in found.deps["tasks"]:
        task["task_id"] = str(renamed(int(task["task_id"])))
    for edge in found.deps["edges"]:
        edge |= {key: str(renamed(int(edge[key]))) for key in ("pred", "succ")}
    return found
