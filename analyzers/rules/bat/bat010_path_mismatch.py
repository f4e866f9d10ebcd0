"""path-mismatch: the code that ran is not the code for that kind of batch.

## What it finds
Four kinds of mismatch, each a finding of its own:

- a step or segment whose `executed_path` names one kind (prefill, decode or mixed) that is not its
  own. A path that names none or several of them (`ragged-decode, host-mirror`) is not judged;
- a step whose segments do not have its rows: of each phase as many as the batch has;
- draft tokens in a mixed batch of an engine that refuses them (`engine.refuses_mixed_drafts` of the
  manifest's config says so);
- a mixed batch on a path with two-batch overlap (`mixed+tbo`) of an engine that refuses that
  (`engine.refuses_mixed_tbo`).

## Why it hurts
A mixed batch taken for a prefill computes its decodes by a kernel for prompts, with masks and
lengths of the wrong shape. It often runs through, and gives slightly wrong tokens for as long as
mixed batches form.

## Example
    12 mixed steps ran as prefill: first step 4

## How to fix
Ask for mixed before prefill and decode: `is_prefill` is true of a mixed batch too. Better, let a
batch have one kind, not several flags. Refuse combinations that no path supports when the engine
starts.

## References
ATOM's mixed batches: a mixed batch has `is_prefill` set as well, and the order of tests decides;
two-batch overlap cuts a batch in two as if its rows were alike, and is switched off for mixed ones.
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
from stepscope.analyzers.views.declared import refuses_mixed_drafts, refuses_mixed_tbo
from stepscope.analyzers.views.known import any_row, knows
from stepscope.ingest.schema import PHASES
from stepscope.ingest.trace import Trace

FIX = (
    "ask for mixed before prefill and decode, or let a batch have one kind; "
    "refuse combinations that no path supports"
)
KIND = r"prefill|decode|mixed"
_ROWS = ("segments", "steps.num_prefill_reqs", "steps.num_decode_reqs")
_DRAFTS = ("batch_rows.num_draft",)
_TBO = r"\btbo\b"


@dataclass(frozen=True, slots=True)
class PathMismatch:
    """The executed path names another kind than the batch's, or not all rows ran as what they are.

    What ran is read from `steps` and `segments`, what the batch held from `steps` and `batch_rows`.
    """

    code: ClassVar[str] = "BAT010"
    name: ClassVar[str] = "path-mismatch"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("steps.kind",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether a path names a kind, or segments or drafts tell what ran."""
        if knows(trace, *_ROWS) or (refuses_mixed_drafts(trace) and knows(trace, *_DRAFTS)):
            return True
        if refuses_mixed_tbo(trace) and any_row(trace.steps.filter(_runs_halved())):
            return True
        names_one = pl.col("executed_path").str.contains(KIND)
        return any(any_row(ran.filter(names_one)) for ran in (trace.steps, trace.segments))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, kind and what it ran as, with the number, placed at the first."""
        first = ("ts_ns", "step")
        wrong = (
            pl.concat([each_kind(trace) for each_kind in _KINDS])
            .group_by("rank", "what", "kind", "ran_as")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "what", "kind", "ran_as")
        )
        return each(self, wrong.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        thing = times(row["count"], f"{row['kind']} {row['what']}")
        message = f"{thing} ran {row['ran_as']}: first step {row['step']}"
        evidence: Evidence = {"kind": row["kind"], "ran": row["ran_as"], "count": row["count"]}
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _named(path: pl.Expr) -> pl.Expr:
    """The one kind that a path names, null where it names none or several."""
    kinds = path.str.extract_all(KIND).list.unique()
    return pl.when(kinds.list.len() == 1, ~path.str.contains(r"[,+&]")).then(kinds.list.first())


def _wrong(frame: pl.LazyFrame, what: str, kind: str, ran_as: pl.Expr) -> pl.LazyFrame:
    return frame.select(
        *STEP, "ts_ns", what=pl.lit(what), kind=pl.col(kind).fill_null("unknown"), ran_as=ran_as
    )


def _wrong_path(trace: Trace) -> pl.LazyFrame:
    named = _named(pl.col("executed_path"))
    is_batch = pl.col("kind").is_in(["prefill", "decode", "mixed"])
    steps = (
        formed(trace).with_columns(named=named).filter(is_batch, pl.col("named") != pl.col("kind"))
    )
    return _wrong(steps, "step", "kind", pl.format("as {}", "named"))


def _wrong_segment(trace: Trace) -> pl.LazyFrame:
    segments = trace.segments.with_columns(named=_named(pl.col("executed_path")))
    wrong = segments.filter(pl.col("named") != pl.col("phase"))
    return _wrong(wrong, "segment", "phase", pl.format("as {}", "named"))


def _uncovered(trace: Trace) -> pl.LazyFrame:
    """Steps of which a phase has another number of rows in the segments than in the batch."""
    ran = [
        pl.col("num_rows").filter(pl.col("phase") == phase).sum().alias(f"ran_{phase}")
        for phase in PHASES
    ]
    by_phase = trace.segments.filter(pl.col("step").is_not_null()).group_by(STEP).agg(ran)
    differs = [pl.col(f"ran_{phase}") != pl.col(f"num_{phase}_reqs") for phase in PHASES]
    steps = formed(trace).join(by_phase, on=STEP, how="left").filter(pl.any_horizontal(differs))
    return _wrong(steps, "step", "kind", pl.lit("in segments that do not have its rows"))


def _drafts(trace: Trace) -> pl.LazyFrame:
    refuses = pl.lit(refuses_mixed_drafts(trace))
    drafted = rows(trace).filter(refuses, pl.col("num_draft") > 0).select(STEP).unique()
    mixed = formed(trace).filter(pl.col("kind") == "mixed").join(drafted, on=STEP, how="semi")
    return _wrong(mixed, "step", "kind", pl.lit("with draft tokens, which it refuses"))


def _runs_halved() -> pl.Expr:
    return pl.col("executed_path").str.contains(_TBO)


def _halved(trace: Trace) -> pl.LazyFrame:
    refuses = pl.lit(refuses_mixed_tbo(trace))
    mixed = formed(trace).filter(refuses, pl.col("kind") == "mixed", _runs_halved())
    return _wrong(mixed, "step", "kind", pl.lit("with two-batch overlap, which it refuses"))


_KINDS = (_wrong_path, _wrong_segment, _uncovered, _drafts, _halved)
