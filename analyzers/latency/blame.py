"""Where each request's time went: its latency split into causes that add up to it exactly.

A request's time is cut into intervals in which one thing holds (`intervals.py`). An interval in a
batch is prefill, decode or recompute, less what its step waited for a collective or for its
device; one outside of a batch has the cause that the last decision about the request gives, or
that about the head of the queue that it stands behind (`behind.py`). A run
that names no request is split by what its GPU did, where that is known (`gpu_time.py`). What the
trace does not tell is idle or unknown, and `notes` say why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

import polars as pl

from stepscope.analyzers.latency.attribution import attributions, run_attributions
from stepscope.analyzers.latency.behind import passed_on, with_heads
from stepscope.analyzers.latency.causes import CAUSES, Cause
from stepscope.analyzers.latency.gpu_time import executed, windows
from stepscope.analyzers.latency.intervals import FRONT_END, NOTHING, intervals
from stepscope.analyzers.latency.notes import notes, stated_notes
from stepscope.analyzers.latency.request_lines import (
    lines,
    phases_of_lifecycle,
    scheduled,
    steps,
    untimed,
)
from stepscope.analyzers.latency.run_line import run_lines, run_scheduled
from stepscope.analyzers.latency.stated import stated_requests, stated_tables
from stepscope.analyzers.views.requests import REQUEST, external_ids
from stepscope.ingest.derive.states import is_list_of_arrivals
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.quantiles import quantile_of
from stepscope.ingest.trace import Trace

COLUMNS = tuple(cause.column for cause in CAUSES)
ABOUT = (
    "rank", "request", "arrive_ns", "first_token_ns", "engine_first_token_ns", "ended_ns",
    "outcome", "latency_ns",
)  # fmt: skip
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True, slots=True)
class CauseTotal:
    """What a cause came to: in all, its share of all, of how many requests, and of each of them."""

    cause: Cause
    total_ns: int
    share: float
    num_requests: int
    each_ns: dict[str, int]


@dataclass(frozen=True)
class Blame:
    """The latencies of a trace's requests, by cause.

    `requests` has a row per request, in order of arrival: rank, request (null where the trace names
    none and the run as a whole is blamed), arrive_ns, first_token_ns (when the client had it, where
    that is recorded), engine_first_token_ns (when the engine sampled it), ended_ns, outcome,
    latency_ns and a column per cause, `front_end_ns` to `unknown_ns`, which add up to latency_ns.
    `to_first_token` has the same rows and the causes' time until the first token, or all of it
    where there was none. `intervals` has rank, request, from_ns, to_ns, cause and what of it went
    there, `ns`, in order of time. `notes` say what the trace did not tell.
    """

    trace: str
    requests: pl.DataFrame
    to_first_token: pl.DataFrame
    intervals: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def names_requests(self) -> bool:
        """Whether its rows are requests, and not the whole run of each rank."""
        return bool(self.requests["request"].is_not_null().any())

    @cached_property
    def total_ns(self) -> int:
        """All latencies together."""
        return int(self.requests["latency_ns"].sum())

    def totals(self) -> Iterator[CauseTotal]:
        """Each cause that took any time, in the order of the causes."""
        for cause in CAUSES:
            spent = self.requests[cause.column]
            if not (spent > 0).any():
                continue
            total = int(spent.sum())
            share = total / max(self.total_ns, 1)
            yield CauseTotal(cause, total, share, int((spent > 0).sum()), spread(spent))


def spread(times_ns: pl.Series) -> dict[str, int]:
    """The quantiles of times that some requests took, by name."""
    return {name: quantile_of(times_ns, at) or 0 for name, at in QUANTILES.items()}


def blame(trace: Trace, request: str | None = None) -> Blame:
    """Split the latency of every request, or of one.

    A request is named by the engine's id, or by its client's, which several may share. A list of
    arrivals has no latencies. Raises ConfigError, naming near matches, for a request that the trace
    does not have.
    """
    if not trace.manifest.clock.has_times and not is_list_of_arrivals(trace):
        return _stated(trace, request)
    every_step = steps(trace).collect().lazy()
    names_requests = _names_requests(trace)
    ran = executed(trace)
    in_batches = scheduled(trace, every_step) if names_requests else run_scheduled(every_step, ran)
    told = lines(trace, in_batches) if names_requests else _runs(trace, every_step, ran)
    every = told.collect()
    asked = every
    if request is not None:
        asked = asked.filter(pl.col("request").is_in(_named(trace, asked, request)))
    if is_list_of_arrivals(trace):
        asked = asked.clear()
    known = with_heads(trace, asked, every)
    if names_requests:
        inferred = phases_of_lifecycle(trace).select(in_batches.collect_schema().names())
        others = in_batches.join(inferred, on=REQUEST, how="anti")
        in_batches = pl.concat([others, inferred])
    cut = intervals(trace, known.lazy(), every_step, in_batches)
    cut = passed_on(trace, cut, known).join(asked.lazy().select("line"), on="line", how="semi")
    cut = _without_front_end(trace, cut, known)
    caused = (attributions if names_requests else run_attributions)(trace, cut, every_step, ran)
    return Blame(
        trace.name,
        _table(asked, caused),
        _table(asked, caused.filter("is_before_first")),
        _in_order(asked, caused),
        tuple(notes(trace, asked, caused, ran)),
    )


def _without_front_end(trace: Trace, cut: pl.LazyFrame, known: pl.DataFrame) -> pl.LazyFrame:
    """Where the time of an arrival is missing, it is unknown how long the front end had it."""
    came = untimed(trace, ["arrive"]).collect()
    lines = known.join(came, on=REQUEST, how="semi")["line"]
    is_open = pl.col("line").is_in(lines.implode()) & (pl.col("state") == FRONT_END)
    return cut.with_columns(state=pl.when(is_open).then(NOTHING).otherwise("state"))


def _stated(trace: Trace, request: str | None) -> Blame:
    """The requests of a log without a clock, as far as it states how long they took."""
    requests = stated_requests(trace)
    if request is not None:
        requests = requests.filter(pl.col("request").is_in(_named(trace, requests, request)))
    return Blame(trace.name, *stated_tables(requests), notes=tuple(stated_notes(requests)))


def _runs(trace: Trace, every_step: pl.LazyFrame, ran: pl.DataFrame) -> pl.LazyFrame:
    """The whole run of each rank that has steps, or whose GPU did anything."""
    has_gpu = pl.col("rank").is_in(ran["rank"].unique().implode())
    return run_lines(every_step, windows(trace).filter(has_gpu))


def _names_requests(trace: Trace) -> bool:
    """Whether any row says whose it is; the log of an engine may tell of requests without names."""
    tables = (trace.lifecycle, trace.batch_rows)
    named = [
        each.filter(pl.col("request").is_not_null()).select("request").head(1) for each in tables
    ]
    return any(not found.is_empty() for found in pl.collect_all(named))


def _named(trace: Trace, asked: pl.DataFrame, request: str) -> list[str]:
    """The requests of which that is the id, or that of the client."""
    known = asked["request"].drop_nulls().unique().sort().to_list()
    if request in known:
        return [request]
    clients = external_ids(trace).collect()
    found = clients.filter(pl.col("external_id") == request)["request"].to_list()
    if found:
        return found
    known += clients["external_id"].unique().sort().to_list()
    near = get_close_matches(request, known, n=3) or known[:3]
    todo = (
        f"did you mean {', '.join(near)}?" if near else "it names no requests: leave --request out"
    )
    raise ConfigError(f"the trace has no request {request!r}", todo=todo)


def _table(asked: pl.DataFrame, caused: pl.DataFrame) -> pl.DataFrame:
    """A row per line, with what each cause took of it."""
    by_cause = caused.group_by("line", "cause").agg(pl.col("ns").sum())
    spent = by_cause.group_by("line").agg(
        pl.col("ns").filter(pl.col("cause") == number).sum().alias(cause.column)
        for number, cause in enumerate(CAUSES, start=1)
    )
    return (
        asked.join(spent, on="line", how="left", maintain_order="left")
        .with_columns(pl.col(COLUMNS).fill_null(0), latency_ns=pl.col("to_ns") - pl.col("from_ns"))
        .rename({"from_ns": "arrive_ns", "to_ns": "ended_ns"})
        .select(*ABOUT, *COLUMNS)
    )


def _in_order(asked: pl.DataFrame, caused: pl.DataFrame) -> pl.DataFrame:
    names = dict(enumerate((cause.name for cause in CAUSES), start=1))
    named = pl.col("cause").replace_strict(names, return_dtype=pl.Enum(list(names.values())))
    who = asked.select("line", "request")
    return (
        caused.filter(pl.col("ns") > 0)
        .sort("line", "from_ns", "cause")
        .join(who, on="line", maintain_order="left")
        .select("rank", "request", "from_ns", "to_ns", "is_before_first", cause=named, ns="ns")
    )
