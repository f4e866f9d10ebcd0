"""A trace with all that looks at it, and random moments and ranges to look at."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.app.debug import Session
from stepscope.app.timeline import Timeline
from stepscope.ingest.trace import Trace

NUM_PLACES = 12
Row = dict[str, Any]


@dataclass(frozen=True)
class Looked:
    """A trace, all that looks at it, and a seed of places."""

    trace: Trace

    @cached_property
    def timeline(self) -> Timeline:
        return Timeline.of(self.trace)

    @cached_property
    def session(self) -> Session:
        return Session(self.trace)

    @cached_property
    def blamed(self) -> Blame:
        return blame(self.trace)

    @cached_property
    def blocks(self) -> list[dict[str, Any]]:
        return self.rows(
            "select rank, core, ts_ns, end_ns, coalesce(dispatch_ns, ts_ns) as given_ns "
            "from core_spans where core is not null"
        )

    def rows(self, query: str) -> list[dict[str, Any]]:
        """What a query gives for the session's rank."""
        found = self.trace.sql(query).to_dicts()
        return [row for row in found if row["rank"] == self.session.rank]

    def moments(self) -> Iterator[int]:
        """Random moments, half of them when something happens."""
        at = random.Random(self.trace.name)
        first, last = self.timeline.bounds
        happened = self.session.moments.event_ns.tolist() or [first]
        for _ in range(NUM_PLACES):
            yield at.randrange(first, last)
            yield at.choice(happened)

    def ranges(self) -> Iterator[tuple[int, int]]:
        moments = list(self.moments())
        for one, other in zip(moments[::2], moments[1::2], strict=True):
            if one != other:
                yield min(one, other), max(one, other)
