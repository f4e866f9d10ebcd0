"""Where two runs diverge, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from stepscope.app.mcp.answering.uncut import Answer, NotRecorded
from stepscope.app.mcp.tools.tool import Arguments, Tool, TraceName

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTraces


class Two(Arguments, frozen=True):
    """Which two traces."""

    a: TraceName
    b: TraceName
    rules: Annotated[
        bool, msgspec.Meta(description="Also run the rules on both, and compare what they find.")
    ] = True


def _answer(held: HeldTraces, asked: Two) -> Answer:
    from stepscope.analyzers.diff.compare import INCOMPARABLE
    from stepscope.app.replay.compared import compared

    a, b = held.trace(asked.a), held.trace(asked.b)
    both = compared((a.trace, b.trace), rules=asked.rules, report=lambda *_told: None)
    found = both.found
    diverged = found.divergence
    facts = {
        "a": a.name,
        "b": b.name,
        "verdict": found.verdict,
        "diverged_at": None
        if diverged is None
        else {"rank": diverged.rank, "step": diverged.step, "stage": diverged.stage},
        "shorter": found.shorter,
        "totals": {
            name: {"a": pair[0], "b": pair[1]}
            for name, pair in found.outcomes.totals.items()
            if pair != (None, None)
        },
    }
    lacking = []
    if found.verdict == INCOMPARABLE:
        told = "decisions of an engine that both have rows of, so that nothing can be compared"
        lacking.append(NotRecorded(told, "two recordings of an engine have them"))
    if found.not_compared:
        told = f"in one of the two: {', '.join(found.not_compared)}"
        lacking.append(NotRecorded(told, "record both in the same way"))
    return Answer(facts, both.lines(), "lines of the comparison", tuple(lacking))


DIFF = Tool(
    "diff",
    "Compare two traces",
    "Find the first step at which two runs decide differently: the settings and inputs that "
    "differ, what each scheduler knew at that step, and what it cost: totals, causes, who became "
    "faster and slower, and with rules what they find in each.",
    Two,
    _answer,
)
