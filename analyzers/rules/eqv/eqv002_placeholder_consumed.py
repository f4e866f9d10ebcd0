"""placeholder-consumed: a decode read a placeholder, or a token that was not sampled last.

## What it finds
Reads of `input_ids` (recorded where output is deferred) whose `epoch`, the step that sampled the
token which was read, is 0, which stands for a placeholder, or not the last step before this one
that sampled a token for the request. Those of a request are one finding for each of the two.

## Why it hurts
With deferred output the host holds a placeholder for a token until the next step. A request that
was in the step before takes its token from the device; one that idled a step takes it from the
host, and must not get the placeholder. It then decodes on from a token that it never said. Scores
fall by some percent, and only under load, when decodes are left out.

## Example
    254 requests decoded from a placeholder, 254 times: first req-00 in step 512, in place of the
    token of step 3

## How to fix
Write a token over its placeholder when it arrives, before the next batch is laid out, and take the
token of a request that idled from there; or keep sampled tokens on the device by request, not by
row of the batch before.

## References
ATOM pull request 1271: GSM8K fell from 0.95 to 0.87, because a decode that idled across chunks of
prompts took the placeholder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.known import any_row, knows
from stepscope.analyzers.views.requests import REQUEST
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "write a token over its placeholder before the next batch is laid out, "
    "and take the token of a request that idled from there"
)
INPUT_IDS = "input_ids"
PLACEHOLDER = 0


@dataclass(frozen=True, slots=True)
class PlaceholderConsumed:
    """An input token was a placeholder, or not the one that was sampled last."""

    code: ClassVar[str] = "EQV002"
    name: ClassVar[str] = "placeholder-consumed"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "accesses.step",
        "accesses.first",
        "accesses.epoch",
        "batch_rows.row",
        "outputs",
    )

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it was recorded which tokens decodes read, and which steps sampled them."""
        sampled = any(knows(trace, f"outputs.{step}") for step in ("source_step", "step"))
        return sampled and any_row(trace.accesses.filter(pl.col("buffer") == INPUT_IDS))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and kind, with the number of such reads, placed at the first."""
        first = ("ts_ns", "step", "request", "epoch", "sampled_step", "stream")
        kinds = (
            _inputs(trace)
            .filter(pl.col("epoch") != pl.col("sampled_step"))
            .with_columns(is_placeholder=pl.col("epoch") == PLACEHOLDER)
            .group_by("rank", "is_placeholder")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                num_requests=pl.col("request").n_unique(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "is_placeholder")
        )
        return each(self, kinds.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        read = "a placeholder" if row["is_placeholder"] else "a token that was not their last"
        message = (
            f"{times(row['num_requests'], 'request')} decoded from {read}, "
            f"{times(row['count'], 'time')}: first {row['request']} in step {row['step']}, in "
            f"place of the token of step {row['sampled_step']}"
        )
        evidence: Evidence = {
            "reads": row["count"],
            "requests": row["num_requests"],
            "read from": row["stream"],
            "token of step": row["epoch"],
            "last sampled in step": row["sampled_step"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _inputs(trace: Trace) -> pl.LazyFrame:
    """Which step's token each decode read, and the last one that had sampled a token for it."""
    known = [pl.col(name).is_not_null() for name in ("step", "ts_ns", "first", "epoch")]
    in_batch = trace.batch_rows.group_by("rank", "step", pl.col("row").cast(pl.Int64)).agg(
        pl.col("request").min()
    )
    sampled = trace.outputs.filter(pl.col("request").is_not_null()).select(
        *REQUEST, sampled_step=pl.coalesce("source_step", "step")
    )
    return (
        trace.accesses.filter(*known, pl.col("buffer") == INPUT_IDS, pl.col("op") == "read")
        .select("rank", "step", pl.col("ts_ns").clip(-FAR_NS, FAR_NS), "epoch", "stream",
                row="first")
        .join(in_batch, on=["rank", "step", "row"], how="left")
        .filter(pl.col("request").is_not_null())
        .sort("step")
        .join_asof(
            sampled.drop_nulls("sampled_step").unique().sort("sampled_step"), left_on="step",
            right_on="sampled_step", by=list(REQUEST), coalesce=False, check_sortedness=False,
            allow_exact_matches=False,
        )
        .filter(pl.col("sampled_step").is_not_null())
    )  # fmt: skip
