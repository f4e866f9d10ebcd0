"""What `check --against` leaves out: what rules find as often in the runs before a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stepscope.app.formats import Checked

if TYPE_CHECKING:
    from stepscope.analyzers.gate.judge import Run
    from stepscope.ingest.trace import Trace


def num_steps(trace: Trace) -> int:
    """How many steps a trace tells of: over so many its findings are counted."""
    return trace.rows_by_table().get("steps", 0)


def run_of_checked(checked: Checked, steps: int) -> Run:
    """Sum up what was found in a run of so many steps."""
    from stepscope.analyzers.gate.judge import run_of

    return run_of(checked.result.trace, {"steps": steps}, checked.result)


def without_usual(
    checked: Sequence[Checked], steps: Sequence[int], before: Sequence[Run]
) -> list[Checked]:
    """Leave out errors and warnings of the rules that find as many in as many steps of the runs
    before, as far as chance can tell; all traces are judged together.
    """
    from stepscope.analyzers.gate.judge import LOUD, new_findings

    now = [run_of_checked(each, count) for each, count in zip(checked, steps, strict=True)]
    new = new_findings(before, now)
    return [_only(each, {*new}, LOUD) for each in checked]


def _only(checked: Checked, codes: set[str], loud: Sequence[str]) -> Checked:
    every = checked.result.findings
    kept = [each for each in every if each.severity not in loud or each.code in codes]
    return replace(checked, result=checked.result.keeping(kept), num_usual=len(every) - len(kept))
