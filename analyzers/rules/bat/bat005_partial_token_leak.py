"""partial-token-leak: a token that should not have been given to anybody was given.

## What it finds
Tokens in `outputs` of four kinds, each a finding of its own:

- sampled by a chunk that does not end the prompt (`is_final_chunk` is false);
- at or past the request's cap (`max_tokens`);
- behind the token that ends the output (`engine.eos_token` of the manifest's config);
- an end that was not taken for one: the last token is the one that ends the output, and the request
  finished without the cause `eos`, so the client is told that its output was cut.

A token of a request that is not in the batch at all is BAT013.

## Why it hurts
A token of an unfinished prompt is noise, and it becomes part of what the request computes next.
Tokens past the end are billed, parsed and shown. An output that is called cut gets continued.

## Example
    12 tokens of 6 requests are past their cap: first req-00 in step 13, token 13 of at most 12

## How to fix
Emit for rows that reach the end of the prompt only. Check for the end, then for the cap, after each
token and before the next, also within a step that gives several (drafts, or prompt and decode).

## References
ATOM's mixed batches, where a partial prefill emits nothing; mlxcel pull request 468, where the end
goes before the cap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import STEP, rows, tokens
from stepscope.analyzers.views.declared import eos_token
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.requests import REQUEST, ends, events
from stepscope.ingest.trace import Trace

FIX = (
    "emit for rows that reach the end of their prompt only; "
    "after each token check for the end, then for the cap"
)
IS_WHAT = {
    "partial": ("of an unfinished prompt", "of unfinished prompts"),
    "past cap": ("past its cap", "past their cap"),
    "past end": ("behind the end of its output", "behind the end of their output"),
    "end unseen": ("the end of an output that is told to be cut",) * 2,
}
_WAYS = (
    ("lifecycle.max_tokens", "lifecycle.request"),
    ("batch_rows.is_final_chunk", "outputs.source_step"),
    ("batch_rows.is_final_chunk", "outputs.step"),
)


@dataclass(frozen=True, slots=True)
class PartialTokenLeak:
    """A token came from an unfinished prompt, past the cap, or after the end."""

    code: ClassVar[str] = "BAT005"
    name: ClassVar[str] = "partial-token-leak"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("outputs",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known which chunks or tokens end something."""
        has_end = eos_token(trace) is not None and knows(trace, "outputs.token")
        return has_end or any(knows(trace, *way) for way in _WAYS)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and kind, with the number of tokens, placed at the first."""
        first = ("ts_ns", "step", "request", "position", "at_most")
        leaks = (
            pl.concat([_partial(trace), _past_cap(trace), *_about_ends(trace)])
            .group_by("rank", "what")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                num_requests=pl.col("request").n_unique(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "what")
        )
        return each(self, leaks.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        one, many = IS_WHAT[row["what"]]
        is_what = f"is {one}" if row["count"] == 1 else f"are {many}"
        place = "" if row["position"] is None else f", token {row['position'] + 1:,}"
        place += "" if row["at_most"] is None else f" of at most {row['at_most']:,}"
        message = (
            f"{times(row['count'], 'token')} of {times(row['num_requests'], 'request')} {is_what}: "
            f"first {row['request']} in step {row['step']}{place}"
        )
        evidence: Evidence = {
            "tokens": row["count"],
            "requests": row["num_requests"],
            "position": row["position"],
            "at most_tokens": row["at_most"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _leaks(frame: pl.LazyFrame, what: str, at_most: pl.Expr | None = None) -> pl.LazyFrame:
    return frame.select(
        *REQUEST, "step", "ts_ns", "position", what=pl.lit(what),
        at_most=pl.lit(None, pl.Int64) if at_most is None else at_most,
    )  # fmt: skip


def _partial(trace: Trace) -> pl.LazyFrame:
    """Tokens from the logits of a chunk that does not end its prompt."""
    key = [*STEP, "request"]
    is_partial = (pl.col("phase") == "prefill") & ~pl.col("is_final_chunk").fill_null(value=True)
    scheduled = rows(trace).select(*key, is_partial=is_partial)
    ends_too = scheduled.filter(~pl.col("is_partial"))
    chunks = scheduled.filter("is_partial").unique().join(ends_too, on=key, how="anti")
    chunks = chunks.rename({"step": "from_step"})
    leaked = tokens(trace).join(chunks, on=["rank", "from_step", "request"], how="semi")
    return _leaks(leaked, "partial")


def _in_batch(found: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Tokens of requests that are in the batch; all of them where batches were not recorded."""
    if not trace.has("batch_rows"):
        return found
    scheduled = rows(trace).select(*STEP, "request").rename({"step": "from_step"})
    return found.join(scheduled, on=["rank", "from_step", "request"], how="semi")


def _past_cap(trace: Trace) -> pl.LazyFrame:
    caps = (
        events(trace)
        .filter(pl.col("event") == "arrive")
        .group_by(REQUEST)
        .agg(pl.col("max_tokens").max())
    )
    # First who has a token too many: there are many tokens, and few such requests.
    over = (
        tokens(trace)
        .group_by(REQUEST)
        .agg(last=pl.col("position").max())
        .join(caps, on=REQUEST, how="left")
        .filter(pl.col("last") >= pl.col("max_tokens"))
    )
    past = (
        tokens(trace)
        .join(over, on=REQUEST, how="inner")
        .filter(pl.col("position") >= pl.col("max_tokens"))
    )
    return _leaks(_in_batch(past, trace), "past cap", pl.col("max_tokens"))


def _about_ends(trace: Trace) -> list[pl.LazyFrame]:
    """Tokens behind the end, and ends that were not told as such."""
    eos = eos_token(trace)
    if eos is None:
        return []
    known = tokens(trace).filter(pl.col("position").is_not_null())
    ended = known.filter(pl.col("token") == eos)
    ended = _in_batch(ended, trace).group_by(REQUEST).agg(end=pl.col("position").min())
    since = known.join(ended, on=REQUEST, how="inner").filter(pl.col("position") >= pl.col("end"))
    since = _in_batch(since, trace)
    told = ends(trace).select(*REQUEST, "outcome", "cause")
    is_cut = (pl.col("outcome") == "finish") & pl.col("cause").ne_missing("eos")
    is_last = pl.col("position") == pl.col("position").max().over(REQUEST)
    unseen = (
        since.filter(is_last, pl.col("position") == pl.col("end"))
        .join(told, on=REQUEST, how="left")
        .filter(is_cut)
    )
    behind = since.filter(pl.col("position") > pl.col("end"))
    return [_leaks(behind, "past end", pl.col("end") + 1), _leaks(unseen, "end unseen")]
