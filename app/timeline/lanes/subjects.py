"""Which lane shows what: requests, cores, groups, tracks, steps, and what a finding is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from stepscope.app.timeline.lanes.collective_calls import subject_of_group
from stepscope.app.timeline.lanes.lane import Lane, LaneName, Subject
from stepscope.ingest.trace import Trace

if TYPE_CHECKING:
    from stepscope.analyzers.findings.finding import Finding

STEPS: Subject = ("steps", None)


class Places:
    """The first lane, of depth 0, about each subject in each rank."""

    def __init__(self, trace: Trace, named: Iterable[tuple[Lane, LaneName]]) -> None:
        self._trace = trace
        self._lanes: dict[tuple[int, Subject], int] = {}
        for lane, name in named:
            for subject in name.about:
                self._lanes.setdefault((lane.rank, subject), lane.id)
        self.ranks = tuple(sorted({rank for rank, _ in self._lanes}))

    def lane(self, rank: int | None, subject: Subject) -> int | None:
        """The lane about a subject; in the first rank that has one where no rank is given."""
        ranks = self.ranks if rank is None else (rank,)
        found = (self._lanes.get((each, subject)) for each in ranks)
        return next((lane for lane in found if lane is not None), None)

    def ranks_of(self, subject: Subject) -> list[int]:
        """The ranks that have a lane about a subject."""
        return [rank for rank in self.ranks if (rank, subject) in self._lanes]

    def of_finding(self, finding: Finding) -> int | None:
        """The lane of its core, group, task's first block, request, buffer, or its steps."""
        buffer = finding.evidence.get("buffer")
        subjects: tuple[Subject, ...] = (
            ("core", finding.core),
            ("group", finding.group),
            ("core", self._core_of(finding)),
            self._collective_of(finding),
            ("request", finding.request),
            ("buffer", None if buffer is None else str(buffer)),
        )
        for subject in subjects:
            lane = None if subject[1] is None else self.lane(finding.rank, subject)
            if lane is not None:
                return lane
        return self.lane(finding.rank, STEPS)

    def _collective_of(self, finding: Finding) -> Subject:
        """The group of the call that a finding on collectives is at; no text for other findings."""
        if not finding.code.startswith("COL") or finding.ts_ns is None:
            return "calls", None
        is_it = pl.col("ts_ns") == finding.ts_ns
        if finding.rank is not None:
            is_it &= pl.col("rank") == finding.rank
        group = pl.coalesce("group", "stream", pl.lit(""))
        ranks = pl.col("expected_ranks").fill_null("")
        first = self._trace.collectives.filter(is_it).select(group, ranks).head(1).collect()
        return subject_of_group(*first.row(0)) if len(first) else ("calls", None)

    def _core_of(self, finding: Finding) -> int | None:
        if finding.task is None or finding.core is not None or finding.group is not None:
            return None
        is_it = pl.col("task") == finding.task
        if finding.rank is not None:
            is_it &= pl.col("rank") == finding.rank
        first = self._trace.core_spans.filter(is_it).sort("ts_ns").select("core").head(1).collect()
        return int(first["core"][0]) if len(first) else None
