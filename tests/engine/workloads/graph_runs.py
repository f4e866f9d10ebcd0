"""Task graphs of one's own, written to a file and run on simulated core groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stepscope.engine.scenarios.mix_admission import MixAdmission
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.random_configurations.tables import Tables

SCENARIO = MixAdmission()
PUSH = {"id": "push", "shape": "AIV", "num_blocks": 4, "dur_ns": 9_000}
ATTEND = {"id": "qk_pv", "shape": "MIX", "dur_ns": [15_000, 16_000]}


def graph(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"tasks": list(tasks), **more}


def written(folder: Path, content: object) -> Path:
    path = folder / "graph.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def run(folder: Path, content: object, variant: str = "after", **more: str) -> Tables:
    out = folder / "run.trace"
    options = asked(more, workload=written(folder, content))
    SCENARIO.record(variant, out, options)
    return Tables(Trace.open(out))
