"""What a rule says: what is wrong, where, shown by which numbers, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Evidence = dict[str, int | float | str | None]


class Severity(StrEnum):
    """How much a finding matters, worst first."""

    ERROR = "error"  # breaks correctness
    WARNING = "warning"  # costs time or fairness
    INFO = "info"  # worth knowing


SEVERITIES = tuple(Severity)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule found, `count` times over; its place is that of the worst or first.

    Text that comes from the trace (names, ids) is kept as it is: whoever shows it escapes it.
    Evidence keys end in their unit (`_ns`, `_blocks`, `_share`) when the value is a number.
    """

    code: str
    name: str
    severity: Severity
    message: str
    fix: str
    rank: int | None = None
    step: int | None = None
    ts_ns: int | None = None
    end_ns: int | None = None
    request: str | None = None
    task: int | None = None
    core: int | None = None
    group: int | None = None
    evidence: Evidence = field(default_factory=dict)
    count: int = 1

    def as_dict(self) -> dict[str, Any]:
        """The finding as `check --format json` prints it."""
        return {
            "code": self.code,
            "name": self.name,
            "severity": str(self.severity),
            "rank": self.rank,
            "step": self.step,
            "ts_ns": self.ts_ns,
            "end_ns": self.end_ns,
            "request": self.request,
            "task": self.task,
            "core": self.core,
            "group": self.group,
            "message": self.message,
            "evidence": dict(self.evidence),
            "fix": self.fix,
            "count": self.count,
        }


def by_severity_then_time(finding: Finding) -> tuple[Any, ...]:
    """Sort key that puts the worst first, then the earliest; findings without a time come last."""
    timeless = finding.ts_ns is None
    place = (finding.rank or 0, finding.group or 0, finding.task or 0, finding.request or "")
    severity = SEVERITIES.index(finding.severity)
    return (severity, timeless, finding.ts_ns or 0, finding.code, place, finding.message)
