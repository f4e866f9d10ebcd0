"""Small runs of `mixed-batches`: a variant of it, and a fault beside the run without it."""

from __future__ import annotations

from stepscope.engine.faults import fault
from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Rows

SMALL = {
    "requests": "16", "prompt_len": "500", "max_tokens": "32", "budget": "256", "threshold": "224",
    "max_num_seqs": "32",
}  # fmt: skip
MIXED = scenario("mixed-batches")


def rows_of(runs: RecordedOnce, variant: str, more: dict[str, str] | None = None) -> Rows:
    return Rows.read(runs.trace(MIXED.name, variant, asked({**SMALL, **(more or {})})))


def faulty(runs: RecordedOnce, name: str, more: dict[str, str] | None = None) -> Rows:
    known = fault(name)
    given = {**known.settings, **(more or {}), "fault": name}
    return rows_of(runs, known.variant, given)


def sound(runs: RecordedOnce, name: str, more: dict[str, str] | None = None) -> Rows:
    known = fault(name)
    return rows_of(runs, known.variant, {**known.settings, **(more or {})})


def kinds(trace: Trace) -> list[str]:
    return trace.steps.sort("step").collect()["kind"].to_list()
