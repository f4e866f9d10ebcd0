"""What one page looks at: a trace, what was found in it, and the models that draw both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import TypeVar

import numpy as np

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.analyzers.summary.slo import Slo
from stepscope.app.debug import Session
from stepscope.app.debug.commands.stopping import example_stop
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.sought_hits import Sought
from stepscope.app.debug.shown.value_over_run import ValueOverRun
from stepscope.app.live.carried_over import timeline_since
from stepscope.app.live.follower import Status
from stepscope.app.live.found_so_far import Came
from stepscope.app.present.blame_bars import Bars
from stepscope.app.present.summary.parts import Summary
from stepscope.app.present.summary.summing import summary
from stepscope.app.replay.what_if.runs import WhatIfs
from stepscope.app.timeline import Composition, LoadOverTime, Timeline
from stepscope.app.web.view import View
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace

LOAD_PIXELS = 1600
Live = tuple[Status, Sequence[Came]]
T = TypeVar("T")
Answers = dict[tuple[int, str], T | StepscopeError]
"""What words that a person typed gave in a rank."""


class LoadedTrace:
    """Everything that is worked out once and then only read, by any number of requests.

    Times on the page count from `origin`, the first moment of the trace, so that they are exact in
    a browser's numbers. A finding goes by its key, `COR001.2` for the second of its code. `sought`
    is what the last few conditions gave that were looked for, `values` the same of values, both
    under `session_lock` as well. `live` tells of a recording that is followed: how it goes on, and
    what was found so far.
    """

    def __init__(
        self, trace: Trace, result: CheckResult, slo: Slo | None = None, live: Live | None = None
    ) -> None:
        self.live = live
        self.revision = live[0].revision if live else 0
        self.slo = slo
        self.trace = trace
        self.result = result
        self.timeline = timeline_since(trace, live[0] if live else None)
        self.composition = Composition.of(trace, self.timeline.walked_rank)
        self.origin, last = self.timeline.bounds
        self.length = last - self.origin
        self.findings = _keyed(result.findings)
        self.session_lock = Lock()
        self.sought: Answers[Sought] = {}
        self.values: Answers[ValueOverRun | str] = {}

    @cached_property
    def session(self) -> Session:
        """The session of the usual rank; who moves it holds `session_lock` until all is read."""
        return Session(self.trace)

    @cached_property
    def debugger(self) -> Debugger:
        """Finds conditions and goes to their hits with the session; it is under the same lock."""
        debugger = Debugger(self.trace, session=self.session)
        debugger.tables.share_checked(self.result)
        return debugger

    @cached_property
    def what_ifs(self) -> WhatIfs:
        """Runs of the trace with changes, which any request may ask for; one is run at a time."""
        return WhatIfs(self.trace)

    @cached_property
    def example_stop(self) -> str:
        """A condition that some row of this trace meets, as far as it has any."""
        return example_stop(self.debugger)

    @cached_property
    def blamed(self) -> Blame:
        """What each request's latency went to."""
        return blame(self.trace)

    @cached_property
    def summary(self) -> Summary:
        """What the trace comes to in short, with latencies held against the SLO."""
        return summary(self.trace, self.blamed, self.slo)

    @cached_property
    def load(self) -> LoadOverTime:
        """How busy the engine was over the whole trace."""
        return self.timeline.load(LOAD_PIXELS)

    @cached_property
    def bars(self) -> Bars:
        """When each request was in what."""
        return Bars(self.blamed)

    @cached_property
    def steps(self) -> list[int]:
        """The numbers of the steps, in order of time."""
        return [int(step) for step in self.composition.step]

    @cached_property
    def collapsible(self) -> frozenset[str]:
        """What can be collapsed: sections, and groups by section and name."""
        return frozenset(row.key for row in self.timeline.outline if row.key)

    def coloured(self, view: View) -> Timeline:
        """The timeline in the colours that an address asks for."""
        wants = view.colours or self.timeline.colours
        return self.timeline.coloured("name" if wants == "name" else "state")

    def step_index(self, step: int | None) -> int | None:
        """Position of a step among the steps; None when there is no such step."""
        found = [] if step is None else np.flatnonzero(self.composition.step == step).tolist()
        return found[0] if found else None

    def step_index_at(self, t: int) -> int | None:
        """Position of the last step whose batch was formed by a time from the origin."""
        return self.composition.index_at(t + self.origin)

    def step_range(self, index: int) -> tuple[int, int]:
        """From when to when a step ran, from the origin; the last one may not have ended."""
        start = int(self.composition.ts_ns[index]) - self.origin
        lasts_ns = self.composition.lasts_ns[index]
        return start, self.length if np.isnan(lasts_ns) else start + int(lasts_ns)

    def finding_range(self, finding: Finding) -> tuple[int, int] | None:
        """From when to when a finding holds, from the origin; None when it has no time."""
        if finding.ts_ns is None:
            return None
        start = finding.ts_ns - self.origin
        return start, max(start, (finding.end_ns or finding.ts_ns) - self.origin)


def _keyed(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    seen: Counter[str] = Counter()
    keyed = {}
    for finding in findings:
        seen[finding.code] += 1
        keyed[f"{finding.code}.{seen[finding.code]}"] = finding
    return keyed
