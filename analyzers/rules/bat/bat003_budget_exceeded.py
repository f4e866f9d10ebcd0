"""budget-exceeded: a batch held more than it may, or prompts took what was reserved for decodes.

## What it finds
Steps that break one of three limits, each a finding of its own:

- more tokens than the token budget;
- more requests than there are running slots (the manifest's `max_num_seqs` or number of slots);
- with tokens reserved for decodes: more tokens of prompts than the budget without the reserve, or a
  reserve that is larger than the budget or below zero.

## Why it hurts
Buffers, captured graphs and workspaces are as large as the limits say. Beyond them a kernel writes
out of bounds, or falls back to a path that nobody measured. A reserve that prompts may spend is
none: decodes wait as if there were no reserve (STV004, BAT001).

## Example
    prompts took more than the 1,934 tokens that the reserve leaves them in 31 steps: worst step 12,
    2,048 tokens with 114 of 2,048 reserved

## How to fix
Compute what is left from one number that every phase of the scheduler counts down, and assert
before the batch is run that rows, tokens and reserve add up.

## References
ATOM's mixed batches: `prefill_budget = max_num_batched_tokens - reserve`, which both prefill phases
spend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import STEP, formed, rows
from stepscope.analyzers.views.declared import max_num_seqs
from stepscope.analyzers.views.known import knows
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "count one budget down through all phases of the scheduler, "
    "and assert that rows, tokens and reserve add up before the batch runs"
)
# What tells how much of a limit a step had; either of each.
_SCHEDULED = (("batch_rows",), ("steps.num_prefill_reqs", "steps.num_decode_reqs"))
_HELD = (
    ("batch_rows",),
    ("steps.num_prefill_tokens", "steps.num_decode_tokens"),
    ("steps.reserved_tokens",),
)


@dataclass(frozen=True, slots=True)
class BudgetExceeded:
    """A batch is over its token budget, `max_num_seqs`, or what the reserve leaves to prompts."""

    code: ClassVar[str] = "BAT003"
    name: ClassVar[str] = "budget-exceeded"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("steps",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any of the limits is known, and what steps had of it."""
        is_bounded = max_num_seqs(trace) is not None
        if is_bounded and any(knows(trace, *held) for held in _SCHEDULED):
            return True
        return any(knows(trace, "steps.token_budget", *held) for held in _HELD)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and broken limit, with the number of steps, worst step first."""
        steps = _counted(trace)
        worst = ("excess", "ts_ns", "step", "end_ns", "had", "at_most", "reserved", "budget")
        broken = (
            pl.concat([_over(steps, *limit) for limit in _limits(trace)])
            .group_by("rank", "what")
            .agg(
                pl.col(worst).sort_by("excess", -pl.col("ts_ns"), "step", *worst[4:]).last(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "what")
        )
        return each(self, broken.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        steps = times(row["count"], "step")
        where = f"worst step {row['step']}"
        if row["what"] == "reserve":
            message = (
                f"the reserve does not fit the budget in {steps}: {where}, "
                f"{row['had']:,} of {row['at_most']:,} tokens reserved"
            )
        elif row["what"] == "prompts":
            message = (
                f"prompts took more than the {times(row['at_most'], 'token')} that the reserve "
                f"leaves them in {steps}: {where}, {times(row['had'], 'token')} with "
                f"{row['reserved']:,} of {row['budget']:,} reserved"
            )
        else:
            message = (
                f"batches held more than {times(row['at_most'], row['what'])} in {steps}: "
                f"{where}, {times(row['had'], row['what'])}"
            )
        evidence: Evidence = {
            "limit": row["at_most"],
            "worst": row["had"],
            "steps": row["count"],
            "reserved_tokens": row["reserved"],
            "budget_tokens": row["budget"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _counted(trace: Trace) -> pl.LazyFrame:
    """Steps with the tokens and requests of their batches, by their rows where there are any."""
    listed = rows(trace).group_by(STEP).agg(
        row_tokens=pl.col("num_tokens").clip(0, FAR_NS).sum(),
        row_reqs=pl.col("request").n_unique().cast(pl.Int64),
    )  # fmt: skip
    return (
        formed(trace)
        .join(listed, on=STEP, how="left")
        .with_columns(
            tokens=pl.max_horizontal("num_tokens", "row_tokens"),
            reqs=pl.max_horizontal("num_reqs", "row_reqs"),
        )
    )


def _limits(trace: Trace) -> list[tuple[str, pl.Expr, pl.Expr]]:
    """What is limited, how much of it a step had, and how much it may have."""
    reserved, budget = pl.col("reserved_tokens"), pl.col("token_budget")
    some = pl.when(reserved > 0)
    below = pl.when(reserved < 0).then(budget + 1).otherwise(reserved)
    return [
        ("token", pl.col("tokens"), budget),
        ("request", pl.col("reqs"), pl.lit(max_num_seqs(trace), pl.Int64)),
        ("prompts", pl.col("num_prefill_tokens"), some.then((budget - reserved).clip(0, FAR_NS))),
        ("reserve", below, budget),
    ]


def _over(steps: pl.LazyFrame, what: str, had: pl.Expr, at_most: pl.Expr) -> pl.LazyFrame:
    return steps.filter(had > at_most).select(
        *STEP, "ts_ns", "end_ns", what=pl.lit(what), had=had, at_most=at_most,
        excess=had - at_most, reserved="reserved_tokens", budget="token_budget",
    )  # fmt: skip
