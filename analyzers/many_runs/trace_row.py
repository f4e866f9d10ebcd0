"""A trace in one row of a table whose columns stay: for tables of many runs, over days and commits.

Every number is what another command says of the trace, by the same definition: totals are those of
`diff`, latencies those of the requests that finished, what an SLO came to is what `blame` says of
it, and findings are those of `check`. Null is what the trace does not tell.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.diff.compare import Difference
from stepscope.analyzers.diff.outcomes import totals
from stepscope.analyzers.latency.blame import Blame, blame, spread
from stepscope.analyzers.summary.core_use import core_use
from stepscope.analyzers.summary.gpu_use import gpu_use
from stepscope.analyzers.summary.latencies import FINISHED, METRICS, gaps_ns, latencies
from stepscope.analyzers.summary.load_over_time import OverTime, load_over_time
from stepscope.analyzers.summary.slo import MET, MISSED, NOT_SERVED, UNKNOWN, Slo, judged
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.partial import partial
from stepscope.ingest.trace import Trace

VERSION = 1
"""Goes up when a column is dropped or means something else; a new column is no reason."""
FINDING = pl.Struct({"code": pl.String, "severity": pl.String, "found": pl.Int64})


class Column(NamedTuple):
    """A column: its name, its type, and what it is, with its unit."""

    name: str
    type: pl.DataType | type[pl.DataType]
    meaning: str


def _quantiles(
    metric: str, of: str, names: tuple[str, ...] = ("p50", "p90", "p99", "max")
) -> tuple[Column, ...]:
    return tuple(Column(f"{metric}_{name}_ns", pl.Int64, f"the {name} of {of}") for name in names)


COLUMNS = (
    Column("summary_version", pl.Int32, "version of these columns"),
    Column("trace", pl.String, "the trace as it was named"),
    Column("producer", pl.String, "who wrote the trace"),
    Column("producer_version", pl.String, "and which version of it"),
    Column("scenario", pl.String, "scenario of the reference engine"),
    Column("variant", pl.String, "variant of it"),
    Column("clock", pl.String, "wall, virtual, profiler or none"),
    Column("began_ns", pl.Int64, "Unix time of the first row; null where the clock has no epoch"),
    Column("num_ranks", pl.Int32, "how many ranks"),
    Column("is_closed", pl.Boolean, "whether the recording was closed, so that nothing is missing"),
    Column("partial", pl.String, "what the recording lacks, so that figures cover only the "
           "rest; null if nothing is missing"),
    Column("config", pl.String, "configuration, as JSON with sorted keys"),
    Column("config_digest", pl.String, "digest of it"),
    Column("workload_digest", pl.String, "digest of the requests in order of arrival: the length "
           "of the prompt, the most tokens, the priority; null if no arrival has lengths"),
    Column("steps", pl.Int64, "steps of all ranks"),
    Column("makespan_ns", pl.Int64, "from the first step's begin to the last one's end"),
    Column("requests", pl.Int64, "all requests"),
    Column("arrived", pl.Int64, "requests that arrived while it was recorded"),
    Column("finished", pl.Int64, "requests that finished"),
    Column("aborted", pl.Int64, "requests that were aborted"),
    Column("rejected", pl.Int64, "requests that were rejected"),
    Column("failed", pl.Int64, "requests that ended in an error"),
    Column("open", pl.Int64, "requests that were still open at the end"),
    Column("preemptions", pl.Int64, "preemptions of all requests"),
    Column("tokens", pl.Int64, "tokens of all requests"),
    Column("tokens_per_s", pl.Float64, "these by the makespan"),
    Column("latency_mean_ns", pl.Int64, "mean of the latencies of those that finished"),
    *_quantiles("latency", "these latencies"),
    Column("ttft_mean_ns", pl.Int64, "mean of their times to the first token, at their clients "
           "if a front end recorded deliveries"),
    *_quantiles("ttft", "these times"),
    *_quantiles("tpot", "their times for each token after the first, at their clients; null if "
                "these got all tokens at once"),
    *_quantiles("engine_ttft", "their times to the first token in the engine"),
    *_quantiles("engine_tpot", "their times for each token after that, from the first to the last "
                "token in the engine"),
    *_quantiles("token_gap", "the times from one token to the next, of all requests",
                ("p50", "p90", "p99")),
    Column("max_token_gap_ns", pl.Int64, "the longest that any request waited for its next token"),
    Column("fairness", pl.Float64, "Jain's index of tokens per second of those that finished"),
    Column("slo", pl.String, "the SLO that was asked for"),
    Column("slo_met", pl.Int64, "requests that met all of it"),
    Column("slo_missed", pl.Int64, "requests that missed any of it"),
    Column("slo_unknown", pl.Int64, "requests of which that is not known"),
    Column("slo_not_served", pl.Int64, "requests that ended without being served"),
    Column("goodput", pl.Float64, "requests a second that met it"),
    Column("waiting_mean", pl.Float64, "requests that waited, all ranks added, mean over the time "
           "that all ranks recorded"),
    Column("waiting_max", pl.Float64, "the most that waited on a rank"),
    Column("running_mean", pl.Float64, "requests that ran, in the same way"),
    Column("kv_usage_mean", pl.Float64, "share of the KV cache that was in use, mean over ranks "
           "and the time that all of them recorded"),
    Column("kv_usage_max", pl.Float64, "the most of it on a rank"),
    Column("gpu_busy", pl.Float64, "share of the time in which a GPU executed anything"),
    Column("gpu_exposed", pl.Float64, "share in which it communicated and computed nothing"),
    Column("cores_run", pl.Float64, "share of the time in which a core that was used executed"),
    Column("cores_held", pl.Float64, "share in which it was held by a block that had not begun"),
    Column("rules_judged", pl.Int32, "rules that could judge"),
    Column("findings", pl.List(FINDING), "of each rule that could judge: code, severity (null "
           "where it found nothing) and how often it found something"),
    Column("errors", pl.Int64, "findings that are errors, counted as often as they occurred"),
    Column("warnings", pl.Int64, "findings that are warnings"),
    Column("not_applicable", pl.List(pl.String), "rules that could not judge"),
    Column("reference", pl.String, "the trace that it was compared with"),
    Column("divergence", pl.String, "how it compares with it: equal, prefix, diverged, "
           "incomparable"),
    Column("diverged_step", pl.Int64, "the first step at which it is not the same"),
    Column("window", pl.Int64, "of a row of a window of steps its number; null in a trace's row"),
    Column("first_step", pl.Int64, "the first step in it"),
    Column("last_step", pl.Int64, "the last step in it"),
)  # fmt: skip
SCHEMA = pl.Schema({column.name: column.type for column in COLUMNS})


def trace_row(
    trace: Trace,
    name: str,
    checked: CheckResult,
    slo: tuple[str, Slo] | None = None,
    gpus: pl.DataFrame | None = None,
) -> dict[str, Any]:
    """Sum a trace up: a value for each of COLUMNS, but for those of a comparison.

    `slo` is what was asked for, as text and as it was read; `gpus` is what `gpu_use` says of each
    rank, for who has no spans of them at hand.
    """
    blamed = blame(trace)
    came = totals(trace, blamed)
    return {
        "summary_version": VERSION,
        "trace": name,
        **_told(trace),
        **{each: came[each] for each in came if each in SCHEMA},
        **quantiles(latencies(trace, blamed), gaps_ns(trace)),
        **(_slo(trace, blamed, *slo) if slo else {}),
        **loads(load_over_time(trace)),
        **_use(trace, gpu_use(trace) if gpus is None else gpus),
        **_findings(checked),
    }


def compared_row(reference: str, found: Difference) -> dict[str, Any]:
    """The columns of a comparison with `reference`."""
    diverged = found.divergence
    return {
        "reference": reference,
        "divergence": found.verdict,
        "diverged_step": None if diverged is None else diverged.step,
    }


def table_of(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The rows as a table of COLUMNS; null is what a row does not have."""
    every = [{name: row.get(name) for name in SCHEMA} for row in rows]
    return pl.DataFrame(every, schema=SCHEMA)


def _told(trace: Trace) -> dict[str, Any]:
    manifest = trace.manifest
    config = json.dumps(manifest.config, sort_keys=True, ensure_ascii=False, default=str)
    is_unix = manifest.clock.kind == "wall" or (
        manifest.clock.kind == "profiler" and manifest.clock.epoch_ns
    )
    return {
        "producer": manifest.producer,
        "producer_version": manifest.producer_version or None,
        "scenario": manifest.scenario,
        "variant": manifest.variant,
        "clock": manifest.clock.kind,
        "began_ns": manifest.clock.epoch_ns + trace.start_ns() if is_unix else None,
        "num_ranks": len(manifest.ranks),
        "is_closed": manifest.closed,
        "partial": "; ".join(partial(trace)) or None,
        "config": config if manifest.config else None,
        "config_digest": _digest(config) if manifest.config else None,
        "workload_digest": _workload_digest(trace),
    }


def _workload_digest(trace: Trace) -> str | None:
    """The same for the same requests in the same order, whatever the engine did with them.

    A request without a priority has that of all: 0.
    """
    asked = ("prompt_len", "max_tokens", pl.col("priority").fill_null(0))
    arrivals = (
        trace.lifecycle.filter(pl.col("event") == "arrive")
        .sort("ts_ns", "rank", maintain_order=True)
        .select(asked)
        .collect()
    )
    has_lengths = knows(trace, "lifecycle.prompt_len", "lifecycle.max_tokens")
    return _digest(repr(arrivals.rows())) if has_lengths and len(arrivals) else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def quantiles(each: pl.DataFrame, gaps: pl.Series) -> dict[str, int]:
    """Quantiles, of those that finished, and of gaps between tokens; nothing of what nobody tells.

    `each` is what `latencies` gives of requests.
    """
    finished = each.filter(pl.col("outcome").eq_missing(FINISHED))
    times = {metric: finished[f"{metric}_ns"] for metric in METRICS}
    times["token_gap"] = gaps
    return {
        f"{metric}_{name}_ns": quantile
        for metric, every in times.items()
        if len(known := every.drop_nulls())
        for name, quantile in spread(known).items()
        if f"{metric}_{name}_ns" in SCHEMA
    }


def _slo(trace: Trace, blamed: Blame, text: str, slo: Slo) -> dict[str, Any]:
    if not blamed.names_requests:
        return {"slo": text}
    found = judged(trace, blamed, slo)
    names = {
        "slo_met": MET, "slo_missed": MISSED, "slo_unknown": UNKNOWN, "slo_not_served": NOT_SERVED,
    }  # fmt: skip
    counts = {name: found.counts[verdict] for name, verdict in names.items()}
    return {"slo": text, **counts, "goodput": found.goodput}


def loads(over_time: Mapping[str, Sequence[OverTime]]) -> dict[str, float | None]:
    """Queues and the KV cache: the mean over the time that all ranks recorded, the most of one."""
    told: dict[str, float | None] = {}
    for source, name in (("num_waiting", "waiting"), ("num_running", "running"),
                         ("kv_usage", "kv_usage")):  # fmt: skip
        lines = over_time.get(source, ())
        means = _means(lines)
        known = [mean for mean in means if mean is not None]
        if known and len(known) == len(means):
            whole = sum(known)
            told[f"{name}_mean"] = whole / len(known) if name == "kv_usage" else whole
        if lines:
            told[f"{name}_max"] = max(line.most for line in lines)
    return told


def _means(lines: Sequence[OverTime]) -> list[float | None]:
    """The mean of each rank over the time that all of them recorded; None where there is none."""
    if len(lines) < 2:
        return [line.mean for line in lines]
    common = max(line.ts_ns[0] for line in lines), min(line.ts_ns[-1] for line in lines)
    parts = [line.within(*map(int, common)) for line in lines]
    return [part.mean if part else None for part in parts]


def _use(trace: Trace, gpus: pl.DataFrame) -> dict[str, Any]:
    told: dict[str, Any] = {}
    cores = core_use(trace)
    if window := int(gpus["window_ns"].sum() or 0):
        told["gpu_busy"] = gpus["busy_ns"].sum() / window
        told["gpu_exposed"] = gpus["communication_ns"].sum() / window
    if window := int(cores["window_ns"].sum() or 0):
        if not cores["run_ns"].null_count():
            told["cores_run"] = cores["run_ns"].sum() / window
        if not cores["held_ns"].null_count():
            told["cores_held"] = cores["held_ns"].sum() / window
    return told


def _findings(checked: CheckResult) -> dict[str, Any]:
    severities: dict[str, str] = {}
    by_severity: Counter[str] = Counter()
    for finding in checked.findings:
        severities.setdefault(finding.code, str(finding.severity))
        by_severity[str(finding.severity)] += finding.count
    return {
        "rules_judged": len(checked.counts),
        "findings": [
            {"code": code, "severity": severities.get(code), "found": found}
            for code, found in checked.counts.items()
        ],
        "errors": by_severity["error"],
        "warnings": by_severity["warning"],
        "not_applicable": list(checked.not_applicable),
    }
