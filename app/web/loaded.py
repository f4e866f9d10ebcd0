"""What one page looks at: a trace, what was found in it, and the models that draw both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.keys import finding_keys
from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.analyzers.summary.slo import Slo
from stepscope.app.debug import Session
from stepscope.app.debug.commands.stopping import example_stop
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.sought_hits import Sought
from stepscope.app.debug.shown.value_over_run import ValueOverRun
from stepscope.app.kept.flags import Flags
from stepscope.app.live.carried_over import timeline_since
from stepscope.app.live.follower import Status
from stepscope.app.live.found_so_far import Came
from stepscope.app.present.blame_bars import Bars
from stepscope.app.present.blocks import Block
from stepscope.app.present.details import selection_blocks
from stepscope.app.present.summary.parts import Summary
from stepscope.app.present.summary.summing import summary
from stepscope.app.present.tab import Tab
from stepscope.app.queries.asked_query import Answer, answer
from stepscope.app.queries.query_words import Names, names_of
from stepscope.app.queries.row_leads import Leads
from stepscope.app.replay.what_if.runs import WhatIfs
from stepscope.app.timeline import Composition, LoadOverTime, Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.timeline.flags.flag_at import FlagsOnLanes, PlacedFlags
from stepscope.app.timeline.keymap import FLAGS, KEYMAP, RECORDING, STOPS, Key
from stepscope.app.timeline.moves import MOVES
from stepscope.app.timeline.navigator import RULES_RUN, Navigator
from stepscope.app.web import panes
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
    what was found so far. `align` is how two traces lie on each other, where an address says so.
    Without a `result` the rules have not run, and `without_findings` says so.
    """

    def __init__(
        self, trace: Trace, result: CheckResult | None, slo: Slo | None = None,
        live: Live | None = None,
    ) -> None:  # fmt: skip
        self.live = live
        self.revision = live[0].revision if live else 0
        self.slo = slo
        self.trace = trace
        self.result = result
        self.timeline = timeline_since(trace, live[0] if live else None)
        self.composition = Composition.of(trace, self.timeline.walked_rank)
        self.origin, last = self.timeline.bounds
        self.length = last - self.origin
        self.findings = keyed(result.findings) if result else {}
        self.without_findings = result.coverage.without_findings if result else RULES_RUN
        self.session_lock = Lock()
        self.align: str | None = None
        self.sought: Answers[Sought] = {}
        self.values: Answers[ValueOverRun | str] = {}
        self.keeps_queries = True
        self.flags = FlagsOnLanes(Flags(trace.path), self.timeline.lanes)
        self._answer: Answer | None = None

    def checked(self, result: CheckResult | StepscopeError) -> LoadedTrace:
        """The same as the next revision, with what the rules found or why they could not run."""
        later = copy(self)
        later.revision += 1
        if isinstance(result, StepscopeError):
            later.without_findings = f"Not checked: {result}"
            return later
        later.result, later.findings = result, keyed(result.findings)
        later.without_findings = result.coverage.without_findings
        vars(later).pop("leads", None)
        if "debugger" in vars(later):
            later.debugger.tables.share_checked(result)
        return later

    @property
    def found(self) -> CheckResult:
        """What the rules said, where they have run, as for a report they always have."""
        assert self.result is not None
        return self.result

    @property
    def has_clock(self) -> bool:
        """Whether moments are times, and not positions in the order of a log."""
        return self.trace.manifest.clock.has_times

    @property
    def is_being_checked(self) -> bool:
        """Whether the rules have still to say what they find."""
        return self.result is None and self.without_findings == RULES_RUN

    @property
    def panes(self) -> Sequence[Tab]:
        """The panes below the timeline."""
        return panes.PANES

    @property
    def keys(self) -> Sequence[Key]:
        """The keys of the page."""
        flags = (key for key in FLAGS if key.action != "flags")  # which is a tab here
        return (*KEYMAP, *RECORDING, *STOPS, *flags)

    @property
    def moves(self) -> Mapping[str, Callable[[Navigator], object]]:
        """What the actions of the keymap do to what is looked at."""
        return MOVES

    @property
    def placed_flags(self) -> PlacedFlags:
        """The flags where they stand on the lanes."""
        return self.flags

    @property
    def loads(self) -> tuple[LoadOverTime, ...]:
        """What the minimap draws, from the top."""
        return (self.load,)

    @property
    def is_one(self) -> bool:
        """Whether one trace is looked at, and not two."""
        return True

    @property
    def key(self) -> int | str:
        """What a page calls what it looks at: lanes may have other numbers under another key."""
        return self.revision

    @property
    def diverged(self) -> tuple[int, int] | None:
        """When each of two traces diverges from the other, from the origin."""
        return None

    def times_beside(self, t0: int, t1: int, width: int) -> dict[str, Any] | None:
        """What a second ruler says of a window; None where there is one trace."""
        del t0, t1, width
        return None

    @property
    def diverged_places(self) -> dict[str, Any] | None:
        """The same as places on the minimap, in percent, and in words."""
        return None

    @property
    def is_whole(self) -> bool:
        """Whether all rows of one trace are there, as who steps through it needs."""
        return self.live is None

    @property
    def name(self) -> str:
        """What is looked at."""
        return self.trace.name

    def about(self) -> list[Block]:
        """What is said where nothing is selected, if that is not what is said of a trace."""
        return []

    def describe(self, selection: Selection, timeline: Timeline) -> list[Block]:
        """What is said of a selection; empty where nothing is selected."""
        return selection_blocks(selection, timeline, self.trace)

    @cached_property
    def session(self) -> Session:
        """The session of the usual rank; who moves it holds `session_lock` until all is read."""
        return Session(self.trace)

    @cached_property
    def debugger(self) -> Debugger:
        """Finds conditions and goes to their hits with the session; it is under the same lock."""
        debugger = Debugger(self.trace, session=self.session)
        if self.result:
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

    def answer(self, query: str) -> Answer:
        """What a query gives; the last is kept, as every move on the page draws it again."""
        last = self._answer
        if last is None or last.query != query:
            last = self._answer = answer(self.trace, query, keeps=self.keeps_queries)
        return last

    @cached_property
    def leads(self) -> Leads:
        """Where rows of answers lead."""
        return Leads(self.timeline, self.composition, tuple(self.findings.values()))

    @cached_property
    def names(self) -> Names:
        """The tables and columns that a query may name."""
        return names_of(self.trace)

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


def keyed(findings: Sequence[Finding]) -> dict[str, Finding]:
    """Findings by what an address calls them."""
    return dict(zip(finding_keys(findings), findings, strict=True))
