"""Where the cells of a row of an answer lead: its step, request, time, core, finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.keys import finding_keys
from stepscope.app.present.blocks import AtFinding, AtRequest, AtStep, AtTime, Target
from stepscope.app.timeline import Composition, Timeline

TIMES = ("ts_ns", "end_ns", "to_ns", "dispatch_ns", "ready_ns", "gpu_ts_ns")
"""Columns that hold a time of the trace's clock, the first where a row begins."""
FIRST = ("finding", "core", *TIMES, "step", "request")
"""What a whole row leads to: the most exact place that it names."""


class Leads:
    """Knows of rows of one trace where they lead; a place that the trace lacks is none."""

    def __init__(
        self, timeline: Timeline, composition: Composition, findings: Sequence[Finding] = ()
    ) -> None:
        self._timeline = timeline
        self._steps = {int(step) for step in composition.step}
        self._findings = {key: at for at, key in enumerate(finding_keys(findings))}

    def of(self, row: Mapping[str, Any]) -> dict[str, Target]:
        """The places by the columns that name them."""
        rank = row.get("rank")
        known = rank if _is_number(rank) else None
        found: dict[str, Target | None] = {
            name: self._time(row[name]) for name in TIMES if name in row
        }
        found["finding"] = self._finding(row.get("finding"))
        found["step"] = self._step(row.get("step"), known)
        found["request"] = self._request(row.get("request"), known)
        found["core"] = self._core(row, known)
        return {name: target for name, target in found.items() if target is not None}

    def row(self, row: Mapping[str, Any]) -> Target | None:
        """The most exact place that a row names."""
        found = self.of(row)
        return next((found[name] for name in FIRST if name in found), None)

    def _time(self, value: object) -> Target | None:
        start, end = self._timeline.bounds
        if not _is_number(value) or not start <= value <= end:
            return None
        return AtTime(value - start)

    def _step(self, value: object, rank: int | None) -> Target | None:
        own = self._timeline.walked_rank
        if not _is_number(value) or (rank in (None, own) and value not in self._steps):
            return None
        return AtStep(value, None if rank == own else rank)

    def _request(self, value: object, rank: int | None) -> Target | None:
        if not isinstance(value, str):
            return None
        ranks = self._timeline.ranks_of_request(value)
        if rank is None:  # without a rank it has to be the only one of the name
            return AtRequest(ranks[0], value) if len(ranks) == 1 else None
        return AtRequest(rank, value)

    def _core(self, row: Mapping[str, Any], rank: int | None) -> Target | None:
        core, (start, end) = row.get("core"), self._timeline.bounds
        lane = self._timeline.lane_of_core(rank, core) if _is_number(core) else None
        if lane is None:
            return None
        at = row.get("ts_ns")
        if _is_number(at) and start <= at <= end:
            return AtTime(at - start, lane)
        first = self._timeline.next_span(lane, start - 1)
        return None if first is None else AtTime(first.start_ns - start, lane)

    def _finding(self, value: object) -> Target | None:
        at = self._findings.get(value) if isinstance(value, str) else None
        return None if at is None else AtFinding(at)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
