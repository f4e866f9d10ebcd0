"""What became of an SLO, in words and tables: goodput, who missed it, and what took the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from stepscope.analyzers.summary.latencies import METRICS, OF_ENGINE
from stepscope.analyzers.summary.slo import (
    MET,
    MISSED,
    NOT_SERVED,
    UNKNOWN,
    Judged,
    Objective,
    Slo,
)  # fmt: skip
from stepscope.app.present.blame_tables import WIDEST_NAME, row_name
from stepscope.app.present.blocks import AtRequest, Block, Fact, Heading, Paragraph, Table, Tone
from stepscope.app.units import count, duration

MOST_MISSED = 8
MOST_CAUSES = 3
NO_REQUESTS = "Of no request is a latency recorded, so no SLO can be judged."
WHAT_RECORDS = {
    "ttft": "requests' events `arrive` and `first-token`",
    "tpot": "their `first-token`, `finish` and number of tokens, which must not come all at once",
    "latency": "requests' events `arrive` and `finish`",
    "engine_ttft": "requests' events `arrive` and `first-token`",
    "engine_tpot": "their `first-token`, `finish` and number of tokens",
}
"""What has to be recorded for a metric to be known."""
NOT_STREAMED = "the clients got all tokens at once"
"""Why no client has a TPOT where the engine's is known."""


def limits(slo: Slo) -> str:
    """An SLO as people write it: `ttft ≤ 500 ms, tpot ≤ 50.0 ms`."""
    return ", ".join(f"{metric} ≤ {duration(ns)}" for metric, ns in slo.limits_ns.items())


def slo_blocks(judged: Judged, most: int = MOST_MISSED) -> Iterator[Block]:
    """Goodput, what became of each SLO, and the `most` requests that missed by most."""
    yield Heading("SLO", limits(judged.slo))
    if judged.requests.is_empty():
        yield Paragraph(NO_REQUESTS)
        return
    yield Fact("goodput", (_goodput(judged),))
    yield from _verdicts(judged)
    yield _objectives(judged)
    missed = judged.missed()
    if len(missed):
        rows = missed.head(most).to_dicts()
        yield _missed(rows, len(missed) - len(rows), judged.slo)


def request_slo(judged: Judged) -> Table:
    """What became of the SLO of the one request that was judged."""
    row = judged.requests.row(0, named=True)
    rows = [
        (
            metric, duration(limit_ns), _taken(row, metric), _word(row[f"met_{metric}"]),
            row[f"cause_{metric}"] or "", _share(row[f"cause_share_{metric}"]),
        )
        for metric, limit_ns in judged.slo.limits_ns.items()
    ]  # fmt: skip
    columns = ("SLO", "limit", "took", "", "main cause", "share")
    return Table(columns, tuple(rows), to_right=("limit", "took", "share"))


def _goodput(judged: Judged) -> str:
    finished = f"{rate(judged.throughput)} finished"
    if judged.goodput is None:
        return f"not known: of no request is it known whether it met all; {finished}"
    least = "at least " if judged.counts[UNKNOWN] else ""
    return (
        f"{least}{rate(judged.goodput)} met all of it, over {duration(judged.span_ns)}; {finished}"
    )


def rate(per_s: float | None) -> str:
    """Requests a second in three digits or more; a dash where it is not known."""
    if per_s is None:
        return "—"
    return f"{per_s:,.0f} requests/s" if abs(per_s) >= 100 else f"{per_s:,.3g} requests/s"


def _verdicts(judged: Judged) -> Iterator[Block]:
    counts, total = judged.counts, len(judged.requests)
    yield Fact("met", (f"{_of(counts[MET], total)} requests met all of it",))
    if counts[MISSED]:
        yield Fact("missed", (f"{_of(counts[MISSED], total)} missed some of it",))
    if counts[UNKNOWN]:
        unknown = f"{_of(counts[UNKNOWN], total)}: neither met nor missed"
        yield Fact("not known", (unknown,), Tone.WARNING)
    if counts[NOT_SERVED]:
        ended = f"{_of(counts[NOT_SERVED], total)} were refused, given up or failed"
        yield Fact("not served", (f"{ended}, and missed nothing that is known",), Tone.WARNING)
    for each in judged.objectives():
        if each.num_unknown == total:
            missing = f"not known of any: {_why_unknown(judged, each)}"
            yield Fact(each.metric, (missing,), Tone.WARNING)


def _why_unknown(judged: Judged, objective: Objective) -> str:
    if objective.metric == "tpot" and is_not_streamed(judged.requests):
        return f"{NOT_STREAMED}; --slo engine_tpot=... judges tokens as the engine sampled them"
    return f"it takes {WHAT_RECORDS[objective.metric]}"


def is_not_streamed(requests: pl.DataFrame) -> bool:
    """Whether no client saw one token after another, although the engine's TPOT is known."""
    at_once = pl.col("tpot_ns").is_null().all() & pl.col("engine_tpot_ns").is_not_null().any()
    return bool(requests.select(at_once & pl.col("is_delivered").any()).item())


def _of(number: int, total: int) -> str:
    return f"{count(number)} of {count(total)} ({number / total:.1%})"


def _objectives(judged: Judged) -> Table:
    rows = [
        (
            each.metric, duration(each.limit_ns), each.num_met, each.num_missed, each.num_unknown,
            ", ".join(f"{name} {number:,}" for name, number in each.causes[:MOST_CAUSES]),
        )
        for each in judged.objectives()
    ]  # fmt: skip
    columns = ("SLO", "limit", "met", "missed", "not known", "main cause of those missed")
    return Table(columns, tuple(rows), to_right=("limit",))


def _missed(rows: list[dict[str, Any]], num_more: int, slo: Slo) -> Table:
    metrics = [name for name in METRICS if name not in OF_ENGINE or name in slo.limits_ns]
    told = [
        (
            row_name(row, WIDEST_NAME), row["missed"], *(_taken(row, name) for name in metrics),
            row["cause"], _share(row["cause_share"]),
        )
        for row in rows
    ]  # fmt: skip
    columns = ("request", "missed", *metrics, "main cause", "share")
    leads = tuple(AtRequest(row["rank"], row["request"]) for row in rows)
    return Table(
        columns, tuple(told), "missed, the worst first", (*metrics, "share"), num_more, leads=leads
    )


def _taken(row: Mapping[str, Any], metric: str) -> str:
    """What a request took of a metric; of what has not ended, how long it is until now."""
    ns = row[f"{metric}_ns"]
    if ns is not None:
        return duration(round(ns))
    is_open = metric == "latency" and row["outcome"] is None and row["so_far_ns"] is not None
    return f"> {duration(row['so_far_ns'])}" if is_open else "—"


def _word(met: bool | None) -> str:
    return UNKNOWN if met is None else MET if met else MISSED


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
