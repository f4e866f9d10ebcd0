"""decode-in-buckets: requests that could decode are left out for another bucket, step after step.

## What it finds
An engine that pads batches runs sequences of one length together, a *bucket* a step. The rule looks
at steps of decodes alone in which more than one bucket competed, and counts who could decode and
was not in the batch. It fires when that is more than `max_share` of all the turns that there were
in steps of decodes. Decodes of different lengths in any one step say that lengths do not keep them
apart: whatever does, an image among text, is then not this. Nor are steps of which the engine says
that modalities or adapters keep buckets apart.

## Why it hurts
A decode is one token, however long what comes before it: paged attention takes a length for each
row, and pads nothing. A step of decodes reads all weights once, for one row or for forty, so
buckets of ten take four steps, and the time of four, for what one step does.

## Example
    in 100 of 297 steps of decodes somebody was left out for another bucket: 1,040 of 4,996 turns,
    up to 16 in a step, first in step 72

## How to fix
Put prompts in buckets, if their kernels pad, and let completions of any length run together
("jagged"). What is incompatible for another reason is deferred, with its blocks.

## References
mistral.rs pull request 2034: `bucket_and_preempt_sequences` also while completions were scheduled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.views.batches import STEP, formed, rows, with_left_out
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.trace import Trace

OTHER_THAN_LENGTH = r"(?i)modalit|image|video|audio|lora|adapter"
"""What else an engine says that keeps buckets apart: such requests cannot run together."""
FIX = "let completions of any length decode together: a decode is one token, and pads nothing"


@dataclass(frozen=True, slots=True)
class DecodeInBuckets:
    """More than `max_share` of the turns to decode were lost to buckets of one length."""

    code: ClassVar[str] = "STV018"
    name: ClassVar[str] = "decode-in-buckets"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "decisions.subject_kind",
        "batch_rows.num_computed",
        "steps.num_running",
        "steps.num_prefill_reqs",
        "steps.num_decode_reqs",
    )

    max_share: float = 0.05
    at_least: int = 8
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether buckets competed at all."""
        return any_row(_buckets(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such steps, placed at the first."""
        decodes = with_left_out(formed(trace), trace).filter(
            pl.col("num_decode_reqs") > 0, pl.col("num_prefill_reqs") == 0
        )
        first = pl.all().exclude("rank").sort_by("ts_ns", "step").first()
        lost = (
            decodes.join(_buckets(trace), on=STEP, how="semi")
            .filter(pl.col("num_left_out") > 0)
            .group_by("rank")
            .agg(
                first,
                last_ns=pl.col("end_ns").max(),
                count=pl.len(),
                num_lost=pl.col("num_left_out").sum(),
                most=pl.col("num_left_out").max(),
            )
            .drop("end_ns")
            .rename({"last_ns": "end_ns"})
        )
        turns = pl.col("num_decode_reqs") + pl.col("num_left_out").fill_null(0)
        of_all = decodes.group_by("rank").agg(num_steps=pl.len(), num_turns=turns.sum())
        found = (
            lost.join(of_all, on="rank")
            .join(_jagged(trace), on="rank", how="anti")
            .filter(
                pl.col("count") >= self.at_least,
                pl.col("num_lost") > self.max_share * pl.col("num_turns"),
            )
        )
        return each(self, found.sort("rank").collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"in {row['count']:,} of {row['num_steps']:,} steps of decodes somebody was left out "
            f"for another bucket: {row['num_lost']:,} of {row['num_turns']:,} turns, up to "
            f"{row['most']:,} in a step, first in step {row['step']}"
        )
        evidence: Evidence = {
            "steps": row["count"],
            "steps of decodes": row["num_steps"],
            "turns lost": row["num_lost"],
            "turns": row["num_turns"],
            "decodes left out at most": row["most"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _buckets(trace: Trace) -> pl.LazyFrame:
    """The steps in which more than one bucket competed, and lengths kept them apart."""
    is_other = pl.col("reason").str.contains(OTHER_THAN_LENGTH).fill_null(value=False)
    about = trace.decisions.filter(pl.col("subject_kind") == "bucket", ~is_other)
    return about.filter(pl.col("step").is_not_null()).select(STEP).unique()


def _jagged(trace: Trace) -> pl.LazyFrame:
    """The ranks that decode sequences of different lengths together."""
    decodes = rows(trace).filter(pl.col("phase") == "decode")
    of_step = decodes.group_by(STEP).agg(num_lengths=pl.col("num_computed").n_unique())
    return of_step.filter(pl.col("num_lengths") > 1).select("rank").unique()
