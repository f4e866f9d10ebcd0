"""The summaries of two traces held against each other: SLO, latencies, load, GPUs, steps, cores.

Each figure is that of the summary of one trace (`analyzers/summary/`); here B less A is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from stepscope.analyzers.latency.blame import Blame
from stepscope.analyzers.summary.load_over_time import load_over_time
from stepscope.analyzers.summary.slo import (
    MISSED,
    UNKNOWN,
    VERDICTS,
    Judged,
    Objective,
    Slo,
    judged,
)
from stepscope.app.paired.delta_rows import (
    Cells,
    Row,
    each_of,
    row,
    said_row,
    share_row,
    table_of,
    tables_of,
)
from stepscope.app.paired.device_deltas import device_deltas
from stepscope.app.present.blocks import Block, Heading, Paragraph, Tone
from stepscope.app.present.summary.serving import (
    LOADS,
    NO_SLO,
    QUANTILES,
    is_served,
    latency_names,
    spreads,
)  # fmt: skip
from stepscope.app.present.summary.slo_words import limits, rate
from stepscope.app.printable import plain
from stepscope.app.units import count
from stepscope.ingest.trace import Trace

NOT_KNOWN = "not known"
CALLED = {UNKNOWN: "neither met nor missed"}
OF_OBJECTIVE: dict[str, Callable[[Objective], int]] = {
    "met": lambda each: each.num_met,
    "missed": lambda each: each.num_missed,
    "neither met nor missed": lambda each: each.num_unknown,
}
Traces = tuple[Trace, Trace]
Blames = tuple[Blame, Blame]


def summary_deltas(traces: Traces, blamed: Blames, slo: Slo | None) -> Iterator[Block]:
    """Tables of what the summaries of both say; what neither of them has is not there."""
    if any(map(is_served, traces, blamed)):
        yield from _slo(traces, blamed, slo)
        yield from tables_of("latencies", _latencies(traces, blamed))
    yield from tables_of("load over time", _load(traces))
    yield from device_deltas(traces)


def _slo(traces: Traces, blamed: Blames, slo: Slo | None) -> Iterator[Block]:
    if slo is None:
        yield Heading("SLO")
        yield Paragraph(NO_SLO, Tone.MUTED)
        return
    both = tuple(
        judged(trace, each, slo) if is_served(trace, each) else None
        for trace, each in zip(traces, blamed, strict=True)
    )
    yield Heading("SLO", limits(slo))
    yield table_of("requests", _verdicts(both, slo))
    yield from tables_of("missed, mostly by", _causes(both))


def _verdicts(both: Sequence[Judged | None], slo: Slo) -> Iterator[Row]:
    yield "goodput", *_goodput(both)
    yield "finished", *said_row(*each_of(both, lambda side: side.throughput), rate)
    yield "in all", *row("requests", *each_of(both, lambda side: len(side.requests)))
    for verdict in VERDICTS:
        counts = [None if side is None else side.counts[verdict] for side in both]
        yield CALLED.get(verdict, verdict), *row("requests", *counts)
    told = [{each.metric: each for each in side.objectives()} if side else {} for side in both]
    for metric in slo.limits_ns:
        objectives = [side.get(metric) for side in told]
        for name, number in OF_OBJECTIVE.items():
            yield f"{metric} {name}", *row("requests", *each_of(objectives, number))


def _goodput(both: Sequence[Judged | None]) -> Cells:
    """Requests a second that met all; without a delta where one of the two is but a least."""
    cells = said_row(*each_of(both, lambda side: side.goodput), rate)
    least = [bool(each and each.goodput is not None and each.counts[UNKNOWN]) for each in both]
    first, second = (
        f"{'at least ' * is_least}{said}" for said, is_least in zip(cells, least, strict=False)
    )
    return first, second, NOT_KNOWN if any(least) else cells[2]


def _causes(both: Sequence[Judged | None]) -> Iterator[Row]:
    """Of how many requests that missed each cause took most of the time that was too long."""
    told = [None if each is None else _by_cause(each) for each in both]
    for name in dict.fromkeys(name for each in told if each for name in each):
        counts = [None if side is None else side.get(name, 0) for side in told]
        yield plain(name), *row("requests", *counts)


def _by_cause(side: Judged) -> dict[str, int]:
    missed = side.requests.filter(verdict=MISSED)
    counted = missed.group_by("cause").len().sort(-pl.col("len").cast(pl.Int64), "cause")
    return {name or "unknown": number for name, number in counted.iter_rows()}


def _latencies(traces: Traces, blamed: Blames) -> Iterator[Row]:
    are_served = [*map(is_served, traces, blamed)]
    told = [
        spreads(trace, each) if served else {}
        for trace, each, served in zip(traces, blamed, are_served, strict=True)
    ]
    for name, (title, _) in latency_names(*traces).items():
        both = [each.get(name) for each in told]
        if both == [None, None]:
            continue
        numbers = [
            None if not served else one.num if one else 0
            for served, one in zip(are_served, both, strict=True)
        ]
        yield f"{title}, known of", *row("requests", *numbers)
        for each in QUANTILES:
            times = [None if side is None else side.quantiles_ns[each] for side in both]
            yield f"{title} {each}", *row("_ns", *times)


def _load(traces: Traces) -> Iterator[Row]:
    told = [load_over_time(trace) for trace in traces]
    for name, (title, _) in LOADS.items():
        sides = [{line.rank: line for line in each.get(name, ())} for each in told]
        ranks = sorted(sides[0].keys() | sides[1].keys())
        cells = share_row if name == "kv_usage" else _counts
        for rank in ranks:
            of = f"rank {rank}: {title}" if len(ranks) > 1 else title
            both = [each.get(rank) for each in sides]
            yield f"{of}, on average", *cells(*each_of(both, lambda line: line.mean))
            yield f"{of}, at most", *cells(*each_of(both, lambda line: line.most))


def _counts(a: float | None, b: float | None) -> Cells:
    return said_row(a, b, count)
