"""drafts-rejected: speculative decoding drafts many tokens, and few of them are accepted.

## What it finds
An engine whose log or counters say, over at least `min_drafted` drafted tokens, that at most
`max_accepted` of them were accepted.

## Why it hurts
Each step verifies the drafts with the large model: it computes more tokens, reads more of the KV
cache and holds more blocks, and yields hardly more than one token. Without speculation the same
steps are shorter.

## Example
    28 of 2,355 drafted tokens were accepted (1.2%): each step verifies drafts and yields 1.05
    tokens

## How to fix
Turn speculation off, or give it a draft that fits the model and the prompts: a draft model of the
same family, another method (n-gram, EAGLE), fewer tokens a draft. An acceptance near 0 often means
that the draft's weights or its template do not belong to the model.

## References
vLLM, "Speculative decoding" in its documentation; SpecDecoding metrics of its log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.trace import Trace

SPEC_DECODING = "SpecDecoding"
ACCEPTED, DRAFTED, LENGTH = "Accepted", "Drafted", "Mean acceptance length"
FIX = (
    "turn speculation off, or use a draft that fits the model: another draft model or method, "
    "fewer tokens a draft; near 0 its weights may not belong to the model"
)


@dataclass(frozen=True, slots=True)
class DraftsRejected:
    """At most `max_accepted` of at least `min_drafted` drafted tokens were accepted."""

    code: ClassVar[str] = "BAT014"
    name: ClassVar[str] = "drafts-rejected"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("counters",)

    max_accepted: float = 0.1
    min_drafted: int = 1_000
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether counters say how many tokens were drafted and accepted."""
        return any_row(_sums(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank."""
        rows = (
            _sums(trace)
            .filter(
                pl.col("drafted") >= self.min_drafted,
                pl.col("accepted") <= self.max_accepted * pl.col("drafted"),
            )
            .sort("rank")
            .collect()
        )
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        accepted, drafted = int(row["accepted"]), int(row["drafted"])
        length = row["length"]
        yields = (
            "" if length is None else f": each step verifies drafts and yields {length:.2f} tokens"
        )
        message = (
            f"{accepted:,} of {times(drafted, 'drafted token')} were accepted "
            f"({accepted / drafted:.1%}){yields}"
        )
        evidence: Evidence = {
            "drafted": drafted,
            "accepted": accepted,
            "accepted_share": round(accepted / drafted, 4),
            "tokens a step": None if length is None else round(length, 3),
        }
        return finding(self, message, FIX, at=row, evidence=evidence)


def _sums(trace: Trace) -> pl.LazyFrame:
    """Tokens drafted and accepted of each rank that reports both, each for its interval."""
    known = trace.counters.filter(
        pl.col("track") == SPEC_DECODING, pl.col("value").is_finite(), pl.col("value") >= 0
    )
    value, name = pl.col("value"), pl.col("name")
    return (
        known.group_by("rank")
        .agg(
            accepted=value.filter(name == ACCEPTED).sum(),
            drafted=value.filter(name == DRAFTED).sum(),
            length=value.filter(name == LENGTH).mean(),
            num_accepted=(name == ACCEPTED).sum(),
            ts_ns=pl.col("ts_ns").filter(name == DRAFTED).min(),
            end_ns=pl.col("ts_ns").filter(name == DRAFTED).max(),
        )
        .filter(pl.col("drafted") > 0, pl.col("num_accepted") > 0)
    )
