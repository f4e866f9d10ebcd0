"""Runs of mix-admission of one step, in memory or recorded."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stepscope.engine.runs.scenario import RunResult
from stepscope.engine.scenarios.mix_admission import MixAdmission
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce

SCENARIO = MixAdmission()


@cache
def run(variant: str, seed: int = 0, **settings: str) -> RunResult:
    return SCENARIO.record(variant, None, asked({"steps": "1", **settings}, seed=seed))


def recorded(path: Path, variant: str, **settings: str) -> Trace:
    SCENARIO.record(variant, path, asked({"steps": "1", **settings}))
    return Trace.open(path)


def cached(runs: RecordedOnce, variant: str, **settings: str) -> Trace:
    return runs.trace(SCENARIO.name, variant, asked({"steps": "1", **settings}))
