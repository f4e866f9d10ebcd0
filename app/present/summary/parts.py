"""The parts of a summary: blocks that each front renders, and numbers that each draws in its way.

A chart here is numbers alone: what draws them is of a front, or of a report.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.analyzers.summary.distribution import Distribution
from stepscope.analyzers.summary.load_over_time import OverTime
from stepscope.app.present.blocks import Block


@dataclass(frozen=True, slots=True)
class Histogram:
    """How a time is spread over requests or tokens; `limit_ns` is what an SLO allows of it."""

    title: str
    of: Distribution
    limit_ns: int | None = None


@dataclass(frozen=True, slots=True)
class TimeLines:
    """Numbers over the time of the trace, a line for each rank; shares where they `are_shares`."""

    title: str
    lines: tuple[OverTime, ...]
    are_shares: bool = False


Chart = Histogram | TimeLines


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a summary says: its blocks, and the charts that stand below them."""

    blocks: tuple[Block, ...]
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What is said of a run in short; there is always a part, if only to say what is not there."""

    parts: tuple[Part, ...]

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all parts, without their charts."""
        return [block for part in self.parts for block in part.blocks]
