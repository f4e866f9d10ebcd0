"""Serving in short: latencies and how they are spread, the SLO, the queue and the KV cache."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analyzers.latency.blame import Blame
from stepscope.analyzers.latency.request_lines import brings_tokens
from stepscope.analyzers.summary.distribution import Distribution, distribution
from stepscope.analyzers.summary.latencies import gaps_ns, latencies
from stepscope.analyzers.summary.load_over_time import OverTime, load_over_time
from stepscope.analyzers.summary.slo import Slo, judged
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph, Table, Tone
from stepscope.app.present.summary.parts import Histogram, Part, TimeLines
from stepscope.app.present.summary.slo_words import NOT_STREAMED, is_not_streamed, slo_blocks
from stepscope.app.units import count, duration, length
from stepscope.ingest.derive.states import is_list_of_arrivals
from stepscope.ingest.summary import lengths
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

QUANTILES = ("p50", "p90", "p99", "max")
OF = {
    "ttft": ("TTFT", "the events `arrive` and `first-token` of requests"),
    "gap": ("token gap", "the times of tokens, in the table `outputs`"),
    "tpot": ("TPOT", "first tokens and ends, and tokens that do not come all at once"),
    "latency": ("latency", "the events `arrive` and `finish` of requests"),
}
OF_BOTH = {
    "ttft": ("TTFT, client", OF["ttft"][1]),
    "engine_ttft": ("TTFT, engine", OF["ttft"][1]),
    "gap": ("token gap, engine", OF["gap"][1]),
    "tpot": ("TPOT, client", OF["tpot"][1]),
    "engine_tpot": ("TPOT, engine", "the events `first-token` and `finish` of requests"),
    "latency": ("latency, client", OF["latency"][1]),
}
"""Labels for traces with deliveries to clients: each names the client or the engine."""
"""What each distribution is called, and what has to be recorded for it."""
LOADS = {
    "num_waiting": ("requests waiting", "the step's `num_waiting`, or requests' events"),
    "num_running": ("requests running", "the step's `num_running`"),
    "kv_usage": ("KV in use", "the step's `kv_blocks_free` and `kv_blocks_total`"),
}
NO_SLO = "Not given. Add --slo ttft=500ms,tpot=50ms to see goodput, who missed it, and why."


def serving_parts(trace: Trace, blamed: Blame, slo: Slo | None) -> Iterator[Part]:
    """What requests got; a trace that names none has only its load, if it tells that."""
    if is_list_of_arrivals(trace):
        yield Part(tuple(_arrivals(trace)))
        return
    if blamed.names_requests:
        yield _slo_part(trace, blamed, slo)
        yield _latencies(trace, blamed, slo)
    if part := _load(trace, asked=blamed.names_requests):
        yield part


def _arrivals(trace: Trace) -> Iterator[Block]:
    """A list of requests that nobody has served yet."""
    known = trace.lifecycle.select("ts_ns").drop_nulls().collect()["ts_ns"].sort().to_list()
    yield Heading("requests", "a list of arrivals: none was served, so none has a latency")
    if not known:
        return
    lasted = known[-1] - known[0]
    rate = f", {len(known) * SECOND / lasted:,.3g} a second" if lasted else ""
    yield Fact("arrivals", (f"{count(len(known))} over {length(lasted)}{rate}",))
    for name, told in lengths(trace).items():
        if told:
            each = f"{told.mean:,.1f} on average, {count(told.most)} at most"
            yield Fact(name, (f"{count(told.total)} tokens, {each}",))


def is_served(trace: Trace, blamed: Blame) -> bool:
    """Whether a trace tells of requests that somebody served."""
    return blamed.names_requests and not is_list_of_arrivals(trace)


def served_slo(trace: Trace, blamed: Blame, slo: Slo | None) -> Part | None:
    """What became of the SLO; None where nobody was served."""
    return _slo_part(trace, blamed, slo) if is_served(trace, blamed) else None


def _slo_part(trace: Trace, blamed: Blame, slo: Slo | None) -> Part:
    if slo is None:
        return Part((Heading("SLO"), Paragraph(NO_SLO, Tone.MUTED)))
    return Part(tuple(slo_blocks(judged(trace, blamed, slo))))


def spreads(trace: Trace, blamed: Blame) -> dict[str, Distribution | None]:
    """The distribution of each latency of OF_BOTH; None if no request has it."""
    return _spreads(trace, latencies(trace, blamed))


def _spreads(trace: Trace, requests: pl.DataFrame) -> dict[str, Distribution | None]:
    return {
        name: distribution(gaps_ns(trace) if name == "gap" else requests[f"{name}_ns"].round())
        for name in OF_BOTH
    }


def latency_names(*traces: Trace) -> dict[str, tuple[str, str]]:
    """OF, or OF_BOTH where any of the traces records when clients got their tokens."""
    delivered = [trace.lifecycle.filter(brings_tokens()).head(1) for trace in traces]
    return OF if all(rows.is_empty() for rows in pl.collect_all(delivered)) else OF_BOTH


def _latencies(trace: Trace, blamed: Blame, slo: Slo | None) -> Part:
    requests = latencies(trace, blamed)
    told = _spreads(trace, requests)
    names = latency_names(trace)
    rows = [_spread(title, told[name]) for name, (title, _) in names.items()]
    table = Table(("", "of", *QUANTILES), tuple(rows), to_right=QUANTILES)
    is_at_once = is_not_streamed(requests)
    missing = tuple(
        Fact(
            title,
            (
                f"not known of any; {NOT_STREAMED}"
                if name == "tpot" and is_at_once
                else f"not known of any; it takes {recorded}",
            ),
            Tone.MUTED,
        )
        for name, (title, recorded) in names.items()
        if told[name] is None
    )
    limits = slo.limits_ns if slo else {}
    charts = [
        Histogram(title, each, limits.get(name))
        for name, (title, _) in names.items()
        if (each := told[name]) is not None
    ]
    return Part((Heading("latencies"), table, *missing), tuple(charts))


def _spread(name: str, told: Distribution | None) -> tuple[object, ...]:
    if told is None:
        return (name, None, *(None for _ in QUANTILES))
    return (name, told.num, *(duration(told.quantiles_ns[each]) for each in QUANTILES))


def _load(trace: Trace, *, asked: bool) -> Part | None:
    """Who waited and ran, and how full the KV was; nothing where nobody asks and nothing says."""
    told = load_over_time(trace)
    if not told and not asked:
        return None
    facts = [
        Fact(title, (_of_lines(told[name], are_shares=name == "kv_usage"),))
        if name in told
        else Fact(title, (f"not recorded; it takes {recorded}",), Tone.MUTED)
        for name, (title, recorded) in LOADS.items()
    ]
    charts = [
        TimeLines(LOADS[name][0], lines, are_shares=name == "kv_usage")
        for name, lines in told.items()
        if any(len(line.ts_ns) > 1 for line in lines)
    ]
    return Part((Heading("load over time"), *facts), tuple(charts))


def _of_lines(lines: tuple[OverTime, ...], *, are_shares: bool) -> str:
    return "; ".join(
        f"{f'rank {line.rank}: ' if len(lines) > 1 else ''}{_of_line(line, are_shares=are_shares)}"
        for line in lines
    )


def _of_line(line: OverTime, *, are_shares: bool) -> str:
    def said(value: float) -> str:
        return f"{value:.1%}" if are_shares else count(value)

    mean = "" if line.mean is None else f"{said(line.mean)} on average, "
    return f"{mean}{said(line.most)} at most"
