"""What ran in the step of a span: who computed how much, and whether the step took long.

A decode that takes long is one whose step did more than decode: prompts of others were in its
batch, or a preempted request computed again. The usual time is the median of its rank's decodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.latency.causes import BY_NAME
from stepscope.app.palette import DECODE, MIXED, PREFILL, RECOMPUTE, STATES
from stepscope.app.present.blocks import AtSpan, Block, Fact, Paragraph, Swatch, Table
from stepscope.app.present.inspected.span_wait import wait_of
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.units import count, duration
from stepscope.ingest.trace import Trace

LONG = 2.0
"""How many times the usual time a step takes that took long."""
MOST_REQUESTS = 6
KINDS = {"decode": DECODE, "prefill": PREFILL, "recompute": RECOMPUTE}
IN_BATCH = ("decode", "prefill", "recompute")

_USUAL: WeakKeyDictionary[Trace, dict[int, int]] = WeakKeyDictionary()


def step_blocks(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """What ran in the step of a span of a step or of a batch; nothing of any other span."""
    step = _step_of(span, trace)
    if step is None:
        return
    rows = _rows(trace, step["rank"], step["step"])
    if rows.is_empty():
        return
    by_kind = rows.group_by("kind").agg(pl.len().alias("num"), pl.col("num_tokens").sum())
    kinds = {kind: (num, tokens) for kind, num, tokens in by_kind.rows()}
    if sentence := _sentence(step, kinds, trace):
        yield Paragraph(sentence)
    yield Table(
        ("", "in the step", "requests", "tokens"),
        tuple(
            (_swatch(kind), kind, *kinds[kind]) for kind in KINDS if kind in kinds
        ),
        f"what ran in step {count(step['step'])}",
        is_ruled=False,
    )  # fmt: skip
    yield from _largest(rows, step, timeline)
    yield from _elsewhere(span, timeline, trace)


def _step_of(span: SpanView, trace: Trace) -> dict[str, Any] | None:
    """The step's rank, number and time; None of a span that is of no step, or in no batch of it."""
    table, number = span.ref
    if table not in ("batch_rows", "steps") or span.state not in (*KINDS.values(), MIXED):
        return None
    if not trace.has("batch_rows") or not trace.manifest.clock.has_times:
        return None
    row = trace.table(table).select("rank", "step").slice(number, 1).collect().row(0, named=True)
    if row["rank"] is None or row["step"] is None:
        return None
    return {**row, "ns": span.end_ns - span.start_ns, "at": span.start_ns}


def _rows(trace: Trace, rank: int, step: int) -> pl.DataFrame:
    is_again = pl.col("is_recompute").fill_null(value=False)
    kind = pl.when(is_again).then(pl.lit("recompute")).otherwise("phase")
    return (
        trace.batch_rows.filter(
            pl.col("rank") == rank, pl.col("step") == step, pl.col("num_tokens") > 0
        )
        .select("request", "num_tokens", "num_computed", kind=kind)
        .drop_nulls(["request", "kind"])
        .collect()
    )


def _sentence(step: dict[str, Any], kinds: dict[str, tuple[int, int]], trace: Trace) -> str | None:
    """Why a step took long, where it did and its batch says why."""
    usual_ns = _usual(trace).get(step["rank"])
    if not usual_ns or step["ns"] < LONG * usual_ns or "decode" not in kinds:
        return None
    ratio = step["ns"] / usual_ns
    start = (
        f"Step {count(step['step'])} took {duration(step['ns'])}, {ratio:,.0f} times the "
        f"{duration(usual_ns)} of a usual decode"
    )
    others = [
        f"{times(num, 'request')} {verb} {times(tokens, 'token')}"
        for kind, verb in (("prefill", "prefilled"), ("recompute", "computed again"))
        for num, tokens in (kinds.get(kind, (0, 0)),)
        if num
    ]
    if not others:
        return f"{start}; its batch had decodes alone."
    return f"{start}: {' and '.join(others)} in it."


def _usual(trace: Trace) -> dict[int, int]:
    """The median time of the steps of decodes alone, for each rank that has any."""
    if trace not in _USUAL:
        medians = (
            trace.steps.filter(pl.col("kind") == "decode", pl.col("dur_ns") > 0)
            .group_by("rank")
            .agg(pl.col("dur_ns").median())
            .collect()
        )
        _USUAL[trace] = {rank: int(ns) for rank, ns in medians.rows()}
    return _USUAL[trace]


def _largest(rows: pl.DataFrame, step: dict[str, Any], timeline: Timeline) -> Iterator[Block]:
    """Who computed most in a step in which not all computed the same."""
    if rows["num_tokens"].n_unique() < 2:
        return
    shown = rows.sort("num_tokens", descending=True, maintain_order=True).head(MOST_REQUESTS)
    lanes = [timeline.lane_of_request(step["rank"], name) for name in shown["request"]]
    start = step["at"] - timeline.bounds[0]
    yield Table(
        ("request", "", "tokens", "computed before"),
        tuple(
            (request, kind, tokens, "-" if before is None else before)
            for request, tokens, before, kind in shown.rows()
        ),
        "who computed most",
        is_ruled=False,
        num_more=len(rows) - len(shown),
        leads=tuple(None if lane is None else AtSpan(lane, start) for lane in lanes),
    )


def _elsewhere(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """What of a request's time in the batch went to something else than computing, by `blame`."""
    who = timeline.request_of(span.lane)
    if who is None:
        return
    spent = wait_of(trace, *who, span.start_ns, span.end_ns)
    for reason in spent.reasons:
        if reason.cause not in IN_BATCH and reason.cause in BY_NAME:
            share = reason.ns / max(spent.ns, 1)
            yield Fact(reason.cause, (f"{duration(reason.ns)}, {share:.0%} of it: "
                                      f"{reason.meaning}",))  # fmt: skip


def _swatch(kind: str) -> Swatch:
    look = STATES[KINDS[kind]]
    return Swatch(look.glyph, look.colour, look.cue)
