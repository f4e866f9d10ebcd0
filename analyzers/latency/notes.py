"""Notes on latencies: what a trace does not record, and what was counted differently."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.latency.gpu_notes import gpu_notes
from stepscope.analyzers.latency.intervals import NUMBER_OF
from stepscope.analyzers.latency.request_lines import phases_of_lifecycle, steps, untimed
from stepscope.analyzers.latency.run_line import is_split
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.partial import partial, without_durations
from stepscope.analyzers.views.requests import REQUEST, events
from stepscope.ingest.derive import states
from stepscope.ingest.derive.log_steps import LENGTHS
from stepscope.ingest.derive.states import is_list_of_arrivals
from stepscope.ingest.quantiles import quantile_of
from stepscope.ingest.readers.benchmark.decode import ITL, LATENCY, TTFT
from stepscope.ingest.schema import STEP_KINDS
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace


def notes(
    trace: Trace, lines: pl.DataFrame, attributed: pl.DataFrame, ran: pl.DataFrame
) -> Iterator[str]:
    """Return notes on what was counted differently than a reader expects, and why time is unknown.

    `ran` is what GPUs executed, as `gpu_time.executed` has it.
    """
    if empty := _without_latencies(trace, lines, ran):
        yield from empty
        return
    named = lines.filter(pl.col("request").is_not_null())
    if named.is_empty():
        yield from _of_runs(trace, lines)
    elif late := int((~named["has_arrival"]).sum()):
        yield f"{times(late, 'request')} without an arrival: counted from the first event or row"
    yield from _without_ends(trace, named.filter(pl.col("outcome").is_null()))
    if again := _used_again(trace):
        yield f"{times(again, 'request id')} used again: all rows with one id count as one request"
    yield from _inferred(trace)
    yield from partial(trace)
    yield from gpu_notes(trace, ran)
    if named.is_empty():
        yield from _cut_in_two(trace, ran)
    yield from _unknown(trace, lines, attributed, ran)


def stated_notes(requests: pl.DataFrame) -> Iterator[str]:
    """Return notes on a trace without a clock; `requests` are rows of `stated_requests`."""
    known = requests["latency_ns"].count()
    if not known:
        yield (
            "the file has no times: only the order of its rows is known, so there are no "
            "latencies; let the engine log the time of each line"
        )
        return
    yield (
        "the file has no times: each request is counted from 0, for as long as the log states; "
        "when it arrived and what it waited for are not known"
    )
    if without := len(requests) - known:
        yield f"{times(without, 'request')} for which the log states no total time: left out"


def _without_latencies(trace: Trace, lines: pl.DataFrame, ran: pl.DataFrame) -> list[str]:
    """Why a trace has no latencies; nothing where it has some."""
    if stated := list(_stated_latencies(trace)):
        return [
            "when requests were sent is not recorded, so no cause of a latency is known",
            *stated,
        ]
    if is_list_of_arrivals(trace):
        num_arrivals = trace.num_rows("lifecycle")
        return [
            f"a list of {times(num_arrivals, 'arrival')}: it does not say when any of them was "
            "served or ended, so there are no latencies"
        ]
    if not lines.is_empty():
        return []
    if not ran.is_empty():
        return ["what its GPU did lies too far from time 0 to be added up: 2^61 ns, about 73 years"]
    cores = "the overview shows what its cores did and how long they were held"
    return [
        "the trace has no requests, no steps and no kernels of a GPU, so there is no latency "
        "to explain",
        *([cores] if trace.has("core_spans") else []),
    ]


def _without_ends(trace: Trace, lines: pl.DataFrame) -> Iterator[str]:
    """Notes on how long requests without an end are counted; `lines` are theirs."""
    without_time = lines.join(untimed(trace, states.ENDS).collect(), on=REQUEST, how="semi")
    if num := len(without_time):
        yield (
            f"{times(num, 'request')} without the time of the end: counted until the last time "
            "that is known of each"
        )
        lines = lines.join(without_time, on=REQUEST, how="anti")
    with_events = events(trace).select(REQUEST).unique().collect()
    present = len(lines.join(with_events, on=REQUEST, how="semi"))
    if present:
        yield f"{times(present, 'request')} without an end: counted until the end of the trace"
    if others := len(lines) - present:
        yield (
            f"{times(others, 'request')} without any event: counted until the end of the last "
            "batch that each was in; what happened to them after that is not recorded"
        )


def _stated_latencies(trace: Trace) -> Iterator[str]:
    """Latencies that a file without times states of each request."""
    if trace.manifest.clock.has_times:
        return
    for name in (TTFT, ITL, LATENCY):
        is_it = (pl.col("name") == name) & (pl.col("unit") == "s")
        seconds = trace.counters.filter(is_it).select("value").collect()["value"]
        if seconds.is_empty():
            continue
        lengths = (seconds * SECOND).round().cast(pl.Int64)
        quantiles = ", ".join(
            f"{label} {duration(quantile_of(lengths, at) or 0)}"
            for label, at in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
        )
        yield f"{name} of {times(len(seconds), 'request')}: {quantiles}"


def _of_runs(trace: Trace, lines: pl.DataFrame) -> Iterator[str]:
    """Notes on a trace that names no requests."""
    yield "the trace names no requests, so the time of the whole run is explained"
    ranks = steps(trace).select("rank").unique().collect()
    if alone := len(lines.join(ranks, on="rank", how="anti")):
        yield (
            f"no step of {times(alone, 'rank')} is known: the time from the first span to the last "
            "end is explained"
        )


def _inferred(trace: Trace) -> Iterator[str]:
    inferred = phases_of_lifecycle(trace).select(*REQUEST, "work").unique().collect()
    if num := inferred.select(REQUEST).n_unique():
        is_prefill = inferred["work"] == NUMBER_OF["prefill"]
        prefill = "prefill is the time from admission to the first token, "
        decode = "decode from there to the end"
        alone = "decode is the time from the first token to the end"
        yield (
            f"no batches of {times(num, 'request')} are recorded: "
            f"{prefill + decode if is_prefill.any() else alone}"
        )
    if unknown := _admission_unknown(trace):
        yield (
            f"when {times(unknown, 'request')} {'was' if unknown == 1 else 'were'} admitted is not "
            "recorded: whether the time before the first token was queue or prefill is unknown"
        )
    sources = trace.steps.select(pl.col("inferred").drop_nulls().unique().sort()).head(3).collect()
    if not sources.is_empty():
        yield f"kinds of steps are inferred from {' and '.join(sources['inferred'])}"
    durations = tuple(without_durations(trace))
    if not set(durations) <= set(partial(trace)):
        yield from durations
    report = trace.manifest.report
    if num := report.inferred.get(LENGTHS, 0) if report else 0:
        how = LENGTHS.partition(", ")[2]
        yield f"how long {times(num, 'step')} took is inferred: {how}"


def _admission_unknown(trace: Trace) -> int:
    """How many requests were served without a recorded admission."""
    is_unknown = pl.col("state") == states.UNKNOWN
    rows = states.request_states(trace.lifecycle).filter(is_unknown)
    return int(rows.select(pl.struct(REQUEST).n_unique()).collect().item())


def _used_again(trace: Trace) -> int:
    arrivals = events(trace).filter(pl.col("event") == "arrive").group_by(REQUEST).len()
    return int(arrivals.select((pl.col("len") > 1).sum()).collect().item())


def _cut_in_two(trace: Trace, ran: pl.DataFrame) -> Iterator[str]:
    if mixed := _num_steps(trace, ran, is_split()):
        yield (
            f"{times(mixed, 'mixed step')} cut in two by tokens: the times of prompts and decodes "
            "were not measured"
        )


def _num_steps(trace: Trace, ran: pl.DataFrame, like: pl.Expr) -> int:
    """The number of steps that meet `like`, on ranks whose GPU time is not recorded."""
    has_gpu = pl.col("rank").is_in(ran["rank"].unique().implode())
    return int(trace.steps.filter(like, ~has_gpu).select(pl.len()).collect().item())


def _unknown(
    trace: Trace, lines: pl.DataFrame, attributed: pl.DataFrame, ran: pl.DataFrame
) -> Iterator[str]:
    spent = int(attributed.filter(pl.col("cause") == NUMBER_OF["unknown"])["ns"].sum())
    whole = int((lines["to_ns"] - lines["from_ns"]).sum())
    if spent and whole:
        yield f"{spent / whole:.1%} is unknown: {_why(trace, lines, ran)}"


def _why(trace: Trace, lines: pl.DataFrame, ran: pl.DataFrame) -> str:
    if lines["request"].is_null().all():
        return _why_of_steps(trace, ran)
    if not trace.has("batch_rows") and _admission_unknown(trace):
        return "the admission of requests is not recorded"
    if not trace.has("decisions"):
        return "the trace has no decisions, which say why a request is not in a batch"
    if not trace.has("batch_rows"):
        return "the trace has no batch_rows, which say which requests are in a batch"
    return _why_in_part(trace)


def _why_in_part(trace: Trace) -> str:
    if not knows(trace, "steps.ts_ns", "steps.dur_ns"):
        return "how long a batch that took the token budget lasted is not recorded"
    if not untimed(trace, ["arrive"]).collect().is_empty():
        return "when requests arrived is not recorded of all"
    return "no decision says why a request is not in a batch"


def _why_of_steps(trace: Trace, ran: pl.DataFrame) -> str:
    kind = pl.col("kind").fill_null("")
    untold = "the steps do not say of what kind they were"
    mixed = _num_steps(trace, ran, (kind == "mixed") & ~is_split())
    if not mixed:
        return untold
    tokens = (
        f"{times(mixed, 'mixed step')} did not record how many tokens were of prompts and how many "
        "of decodes"
    )
    return f"{untold}, and {tokens}" if _num_steps(trace, ran, ~kind.is_in(STEP_KINDS)) else tokens
