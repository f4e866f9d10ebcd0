"""A trace in rows of windows of its steps, each with the columns and definitions of a trace's row.

What is counted is counted in the window in which it happened: an arrival, a preemption and a token
when they came, a request that ended when it ended, a latency with the request that had it. So these
columns add up to the trace's: `SUMMED`. What rules found, GPUs and cores are told of a whole trace
alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from stepscope.analyzers.diff.outcomes import ENDED, of_finished, tokens_of_each
from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.analyzers.many_runs.step_windows import Window, Windows
from stepscope.analyzers.many_runs.trace_row import SCHEMA, loads, quantiles
from stepscope.analyzers.summary.latencies import FINISHED, latencies
from stepscope.analyzers.summary.load_over_time import OverTime, load_over_time
from stepscope.analyzers.summary.slo import MET, VERDICTS, Slo, judged
from stepscope.analyzers.views.batches import tokens
from stepscope.analyzers.views.requests import REQUEST
from stepscope.analyzers.views.token_gaps import token_gaps
from stepscope.ingest.errors import TraceError
from stepscope.ingest.times import FAR_NS, SECOND
from stepscope.ingest.trace import Trace

SUMMED = (
    "steps", "makespan_ns", "arrived", *ENDED, "preemptions", "tokens", "slo_met", "slo_missed",
    "slo_unknown", "slo_not_served",
)  # fmt: skip
"""Columns whose sum over all windows is the trace's, where windows tell of them."""
OF_THE_TRACE = (
    "summary_version", "trace", "producer", "producer_version", "scenario", "variant", "clock",
    "num_ranks", "is_closed", "partial", "config", "config_digest", "workload_digest", "slo",
)  # fmt: skip
Row = dict[str, Any]


def window_rows(
    trace: Trace, row: Mapping[str, Any], size: int, slo: Slo | None = None
) -> list[Row]:
    """A row for each window of `size` steps in which there is a step; `row` is the trace's own.

    Raises TraceError where a trace has no steps, ConfigError where windows are too many.
    """
    windows = Windows.of(trace, size)
    if not windows:
        raise TraceError("it has no steps, and so no windows of them", where=trace.name,
                         todo="leave --window out")  # fmt: skip
    blamed = blame(trace)
    parts = [
        *(_steps(trace, windows),),
        _events(trace, windows),
        _requests(trace, blamed, windows),
        _tokens(trace, windows),
        [loads(each) for each in _over_time(trace, windows)],
        _slo(trace, blamed, windows, slo),
    ]
    shared = {name: row.get(name) for name in OF_THE_TRACE}
    return [
        _known(shared | {k: v for part in told for k, v in part.items()}, row)
        for told in zip(*parts, strict=True)
    ]


def _known(told: Row, row: Mapping[str, Any]) -> Row:
    """What the whole trace does not tell, no window of it does."""
    may_be_told = {"window", "first_step", "last_step", *OF_THE_TRACE}
    return {
        name: value
        for name, value in told.items()
        if name in SCHEMA and (name in may_be_told or row.get(name) is not None)
    }


def _steps(trace: Trace, windows: Windows) -> Iterator[Row]:
    clock = trace.manifest.clock
    for window in windows:
        yield {
            "window": window.number, "first_step": window.first_step,
            "last_step": window.last_step, "steps": window.num_steps,
            "began_ns": clock.epoch_ns + window.from_ns,
            "makespan_ns": window.to_ns - window.from_ns,
        }  # fmt: skip


def _events(trace: Trace, windows: Windows) -> Iterator[Row]:
    names = {"arrived": "arrive", "preemptions": "preempt"}
    told = trace.lifecycle.filter(pl.col("event").is_in([*names.values()]))
    for part in windows.parts(told.select("ts_ns", "event").collect(), "ts_ns"):
        yield {name: int((part["event"] == event).sum()) for name, event in names.items()}


def _requests(trace: Trace, blamed: Blame, windows: Windows) -> Iterator[Row]:
    """Who was there, who ended how, and the latencies of those that finished."""
    each, gaps = latencies(trace, blamed), token_gaps(trace).select("ts_ns", "gap_ns").collect()
    every_token = tokens_of_each(trace)
    spent = blamed.requests.filter(pl.col("request").is_not_null()).select(
        *REQUEST, whole_ns="latency_ns", first_ns=pl.col("first_token_ns") - pl.col("arrive_ns")
    )
    named = each.join(spent, on=REQUEST, how="left", maintain_order="left")
    came = np.searchsorted(windows.inner_ns, _numbers(named["arrive_ns"], -FAR_NS), "right")
    has_ended = named["outcome"].is_not_null().to_numpy()
    ended = np.searchsorted(windows.inner_ns, _numbers(named["ended_ns"], FAR_NS), "right")
    ended = np.where(has_ended, ended, len(windows))
    gone = named.filter(pl.col("outcome").is_not_null())
    ends = windows.parts(gone.with_columns(pl.col("ended_ns").fill_null(FAR_NS)), "ended_ns")
    for at, (part, gap) in enumerate(zip(ends, windows.parts(gaps, "ts_ns"), strict=True)):
        finished = part.filter(pl.col("outcome") == FINISHED)
        totals = of_finished(
            finished.select(*REQUEST, latency_ns="whole_ns", ttft_ns="first_ns"), every_token
        )
        yield {
            "requests": int(((came <= at) & (ended >= at)).sum()),
            "open": int(((came <= at) & (ended > at)).sum()),
            **{name: int((part["outcome"] == event).sum()) for name, event in ENDED.items()},
            **totals,
            "max_token_gap_ns": gap["gap_ns"].max(),
            **quantiles(part, gap["gap_ns"]),
        }


def _numbers(times: pl.Series, absent: int) -> Any:
    return times.fill_null(absent).to_numpy()


def _tokens(trace: Trace, windows: Windows) -> Iterator[Row]:
    """Tokens by their times, which only `outputs` has: an event says how many came until then."""
    if not trace.has("outputs"):
        yield from ({} for _ in windows)
        return
    parts = windows.parts(tokens(trace).select("ts_ns").collect(), "ts_ns")
    for window, part in zip(windows, parts, strict=True):
        lasted = window.to_ns - window.from_ns
        rate = len(part) / lasted * SECOND if lasted else None
        yield {"tokens": len(part), "tokens_per_s": rate}


def _over_time(trace: Trace, windows: Windows) -> Iterator[dict[str, list[OverTime]]]:
    lines = load_over_time(trace)
    last = len(windows) - 1
    for window in windows:
        span = _span(window, last)
        parts = {name: [each.within(*span) for each in every] for name, every in lines.items()}
        yield {name: [each for each in every if each] for name, every in parts.items()}


def _span(window: Window, last: int) -> tuple[int, int]:
    """The time of a window, with what is before the first and behind the last."""
    from_ns = window.from_ns if window.place else -FAR_NS
    return from_ns, window.to_ns if window.place < last else FAR_NS


def _slo(trace: Trace, blamed: Blame, windows: Windows, slo: Slo | None) -> list[Row]:
    if slo is None or not blamed.names_requests:
        return [{} for _ in windows]
    told = judged(trace, blamed, slo).requests
    # Who is still there has not been judged in any window but the last.
    ends = pl.when(pl.col("outcome").is_not_null()).then("ended_ns").fill_null(FAR_NS)
    rows = []
    parts = windows.parts(told.with_columns(_judged_ns=ends), "_judged_ns")
    for window, part in zip(windows, parts, strict=True):
        counts = {verdict: int((part["verdict"] == verdict).sum()) for verdict in VERDICTS}
        lasted = window.to_ns - window.from_ns
        goodput = counts[MET] / lasted * SECOND if lasted else None
        rows.append({f"slo_{name.replace(' ', '_')}": number for name, number in counts.items()}
                    | {"goodput": goodput})  # fmt: skip
    return rows
