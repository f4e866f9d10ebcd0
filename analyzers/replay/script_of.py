"""Turn a recorded trace into what a replay is told: requests, and the engine's calls in order.

An engine's loop is one thread: it adds and aborts, forms a batch, takes results, each at a time of
its own. In order of time these are the calls that it made into its scheduler.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.analyzers.replay.contents import contents_of
from stepscope.analyzers.replay.holding_reasons import grammar_waits, throttled_steps
from stepscope.analyzers.replay.proposed_drafts import Drafts
from stepscope.analyzers.replay.tokens import runs_of
from stepscope.analyzers.replay.vllm_settings import whole_group
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.replay.script import (
    ABORT,
    ADD,
    CALLS,
    DUMMY,
    ERROR,
    LENGTH,
    READY,
    SCHEDULE,
    STOP,
    UPDATE,
    Asked,
    Call,
)
from stepscope.ingest.trace import Trace

ORDER = {UPDATE: 0, DUMMY: 0, ABORT: 1, ADD: 2, READY: 3, SCHEDULE: 4}
"""Which of two calls at one time came first: results are taken before the next batch is formed."""
ABORTS_WITH_STEPS = ("sglang",)
"""Whose schedulers end who runs and is given up with the results of a step, at its time."""
Json = dict[str, Any]
Steps = dict[int, Json]


def requests_and_calls(
    trace: Trace, rank: int, config: Json
) -> tuple[tuple[Asked, ...], tuple[Call, ...]]:
    """Make the requests and the calls of a rank.

    Raises `ConfigError` where the trace does not tell what a replay has to know.
    """
    recorded = _Recorded(trace, rank, int(config.get("num_spec_tokens") or 0))
    caches = bool(config.get("enable_prefix_caching"))
    if caches and not trace.has("allocations"):
        raise ConfigError(
            "prefix caching was on, and no KV block was recorded: nobody knows who shared what",
            where=trace.name, todo="replay it with --set enable_prefix_caching=false",
        )  # fmt: skip
    if config.get("max_loras") and recorded.waited_for_unknown_adapters():
        raise ConfigError(
            "LoRA adapters took turns, and which request asked for which was not recorded",
            where=trace.name, todo="replay it with --set max_loras=0",
        )  # fmt: skip
    contents = contents_of(trace, rank, whole_group(config)) if caches else {}
    asked = tuple(recorded.asked(contents))
    calls = sorted(recorded.calls(), key=lambda call: (call.ts_ns, ORDER[call.what], call.step))
    assert all(call.what in CALLS for call in calls)
    return asked, tuple(calls)


class _Recorded:
    """The rows of a rank, by step and by request."""

    def __init__(self, trace: Trace, rank: int, num_drafts: int) -> None:
        def rows(table: str) -> pl.LazyFrame:
            return trace.table(table).filter(pl.col("rank") == rank)

        self.name = trace.name
        self.aborts_with_steps = trace.manifest.producer in ABORTS_WITH_STEPS
        self.lifecycle = rows("lifecycle").sort("ts_ns", maintain_order=True).collect()
        self.batches = _grouped(
            rows("batch_rows").sort("step", "row"),
            "step", ("request", "num_tokens", "num_draft", "ts_ns"),
        )  # fmt: skip
        self.sampled: dict[int, dict[str, int]] = defaultdict(dict)
        for step, request, number in _sampled(rows("outputs")).iter_rows():
            self.sampled[step][request] = number
        self.steps = _steps(rows("steps"), self.batches)
        self.drafts = Drafts(self.batches, self.sampled, _preempted(self.lifecycle), num_drafts)
        self.waits = grammar_waits(rows("decisions"), self.lifecycle)
        self.throttled = throttled_steps(rows)
        self._waited = rows("decisions").filter(pl.col("resource") == "lora")
        self.arrived = {
            row["request"]: row
            for row in self.lifecycle.filter(pl.col("event") == "arrive").iter_rows(named=True)
        }
        self.taken = dict(
            self.lifecycle.filter(pl.col("event") == "receive").select("request", "ts_ns")
            .iter_rows()
        )  # fmt: skip
        self.ended = self._ends()
        self.generated: Counter[str] = Counter()
        for each in self.sampled.values():
            self.generated.update(each)
        self.said_generated = dict(
            self.lifecycle.filter(pl.col("event") == "finish").select("request", "num_generated")
            .iter_rows()
        )  # fmt: skip

    def waited_for_unknown_adapters(self) -> bool:
        """Whether any request waited for its adapter, and no request's adapter is told."""
        is_told = self.lifecycle["lora"].null_count() < len(self.lifecycle)
        return not is_told and not self._waited.head(1).collect().is_empty()

    def asked(self, contents: dict[str, tuple[int, ...]]) -> Iterator[Asked]:
        drafts, runs = self.drafts.taken(), runs_of(self.lifecycle)
        for request, row in self.arrived.items():
            if row["prompt_len"] is None or row["max_tokens"] is None:
                raise ConfigError(
                    f"of request {request} it is not known how long its prompt is, or how many"
                    " tokens it asks for", where=self.name,
                )  # fmt: skip
            how, _, _ = self.ended.get(request, (None, 0, None))
            generated = self.generated.get(request) or self.said_generated.get(request)
            yield Asked(
                request, row["prompt_len"], row["max_tokens"],
                self.taken.get(request, row["ts_ns"]), row["priority"],
                request in self.waits, contents.get(request, ()),
                generated if how in (LENGTH, STOP, ERROR) else None, runs.get(request, ()),
                drafts.get(request, ()), row["lora"], bool(row["ignore_eos"]),
            )  # fmt: skip

    def calls(self) -> Iterator[Call]:
        for request, row in self.arrived.items():
            yield Call(ADD, row["ts_ns"], request=request)
        for request, (how, ts_ns, step) in self.ended.items():
            if step is None and how in (ABORT, ERROR) and request in self.arrived:
                yield Call(ABORT, ts_ns, request=request, ends={request: how})
        for step, row in self.steps.items():
            if row["kind"] == "dummy":
                yield Call(DUMMY, row["end_ns"] or row["ts_ns"], step, began_ns=row["ts_ns"])
                continue
            yield self._schedule(step, row)
            if row["end_ns"] is not None:
                yield self._update(step, row)
        for request, ready_step in self.waits.items():
            if ready_step in self.steps:
                yield Call(READY, self.steps[ready_step]["formed_ns"], request=request)

    def _schedule(self, step: int, row: Json) -> Call:
        batch = tuple((each["request"], each["num_tokens"]) for each in self.batches.get(step, ()))
        return Call(
            SCHEDULE, row["formed_ns"], step, batch=batch, is_throttled=step in self.throttled
        )

    def _update(self, step: int, row: Json) -> Call:
        ends = {request: how for request, (how, _, of) in self.ended.items() if of == step}
        return Call(
            UPDATE, row["end_ns"], step, tokens=self.sampled.get(step, {}), ends=ends,
            proposed=self.drafts.proposed(step),
        )  # fmt: skip

    def _ends(self) -> dict[str, tuple[str, int, int | None]]:
        """How each request ended, when, and with the results of which step; None: from outside."""
        by_end = {row["end_ns"]: step for step, row in self.steps.items()}
        ended = {}
        for row in self.lifecycle.iter_rows(named=True):
            how = _how(row["event"], row["cause"])
            if how is not None:
                is_outside = how == ABORT and not self.aborts_with_steps
                step = None if is_outside else by_end.get(row["ts_ns"])
                ended[row["request"]] = (how, row["ts_ns"], step)
        return ended


def _grouped(rows: pl.LazyFrame, by: str, names: tuple[str, ...]) -> dict[int, list[Json]]:
    found: dict[int, list[Json]] = defaultdict(list)
    for row in rows.select(by, *names).collect().iter_rows(named=True):
        found[row[by]].append(row)
    return found


def _sampled(outputs: pl.LazyFrame) -> pl.DataFrame:
    """step, request, number of tokens that its results brought."""
    step = pl.coalesce("source_step", "step")
    return outputs.group_by(step.alias("of"), "request").agg(pl.len()).collect()


def _steps(steps: pl.LazyFrame, batches: dict[int, list[Json]]) -> Steps:
    """step -> formed_ns, ts_ns, end_ns (None where its results were never taken).

    Where it was not recorded when a batch was formed, a row of the batch tells; of a batch of
    nobody it was before the results of the step before it were taken.
    """
    told = pl.col("formed_ns") if "formed_ns" in steps.collect_schema().names() else pl.lit(None)
    names = ("step", "kind", "ts_ns", "dur_ns")
    rows = steps.select(*names, told.alias("formed_ns")).sort("step").collect()
    found: Steps = {}
    before: Json | None = None
    for step, kind, ts_ns, dur_ns, told_ns in rows.iter_rows():
        end_ns = None if dur_ns is None else ts_ns + dur_ns
        formed_ns = told_ns
        if formed_ns is None and batches.get(step):
            formed_ns = batches[step][0]["ts_ns"]
        if formed_ns is None:
            latest = (before or {}).get("end_ns") or ts_ns
            formed_ns = min(ts_ns, latest - 1)
        before = {"kind": kind, "formed_ns": formed_ns, "ts_ns": ts_ns, "end_ns": end_ns}
        found[step] = before
    return found


def _preempted(lifecycle: pl.DataFrame) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    thrown = lifecycle.filter(pl.col("event") == "preempt").select("request", "step")
    for request, step in thrown.iter_rows():
        found[request].append(step)
    return found


def _how(event: str, cause: str | None) -> str | None:
    """How a request ended, in the words of a script; None if the event is no end."""
    if event == "error" or (event == "abort" and cause == "error"):
        return ERROR
    if event == "finish":
        return LENGTH if cause in (None, "length_capped", "length") else STOP
    return ABORT if event == "abort" else None


def ranks_of(trace: Trace) -> list[int]:
    """The ranks to which requests came."""
    arrived = trace.lifecycle.filter(pl.col("event") == "arrive")
    return sorted(arrived.select(pl.col("rank").unique()).collect()["rank"])
