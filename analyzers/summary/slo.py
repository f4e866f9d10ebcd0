"""Service-level objectives: which requests met theirs, how many a second, and what the others lost.

**Goodput** is the number of requests a second that meet all of their SLOs, as in DistServe (Zhong
et al., OSDI 2024) and in `--goodput` of vLLM's `benchmark_serving`, which divides the completed
requests that do by the time of the run; here that is from the first arrival to the last end.

What is not known is neither met nor missed. A request that has not finished meets nothing that its
end decides, and misses what it is late for already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from stepscope.analyzers.latency.blame import COLUMNS, Blame
from stepscope.analyzers.latency.causes import CAUSES
from stepscope.analyzers.summary.latencies import FINISHED, METRICS, OF_ENGINE, latencies
from stepscope.analyzers.views.requests import REQUEST
from stepscope.ingest.derive.states import ENDS
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import MS, SECOND, US
from stepscope.ingest.trace import Trace

UNITS = {"ns": 1, "us": US, "µs": US, "ms": MS, "s": SECOND}
MET, MISSED, UNKNOWN, NOT_SERVED = "met", "missed", "unknown", "not served"
VERDICTS = (MET, MISSED, UNKNOWN, NOT_SERVED)
TODO = "write for example --slo ttft=500ms,tpot=50ms; units are ns, us, ms and s"
_TIME = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(ns|us|µs|ms|s)")
_LONGEST_NS = 2**53


@dataclass(frozen=True, slots=True)
class Slo:
    """The most that each latency may be, in ns, by its name (one of METRICS), in that order."""

    limits_ns: dict[str, int]


@dataclass(frozen=True, slots=True)
class Objective:
    """What became of one SLO: of how many requests it was met, missed, or is not known.

    `causes` says of how many that missed it each cause took most of the time, the most frequent
    first.
    """

    metric: str
    limit_ns: int
    num_met: int
    num_missed: int
    num_unknown: int
    causes: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Judged:
    """Which requests met an SLO.

    `requests` has the columns of `latencies`, and for each of the SLO's metrics `met_` and its
    name, which is null where that is not known; verdict (one of VERDICTS); and of one that missed
    any, missed (the first such metric), cause, cause_ns and cause_share: what took most of the time
    that was too long.
    """

    slo: Slo
    requests: pl.DataFrame

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many requests there are of each verdict."""
        found = dict(self.requests.group_by("verdict").len().iter_rows())
        return {verdict: found.get(verdict, 0) for verdict in VERDICTS}

    @property
    def span_ns(self) -> int:
        """From the first arrival to the last end; 0 where no arrival is known."""
        if self.requests["so_far_ns"].is_null().all():
            return 0
        told = self.requests.select(pl.col("ended_ns").max() - pl.col("arrive_ns").min()).item()
        return int(told or 0)

    @property
    def goodput(self) -> float | None:
        """Requests a second that met all; None where nothing took any time, or nothing is known."""
        counts = self.counts
        if not self.span_ns or counts[UNKNOWN] == len(self.requests):
            return None
        return counts[MET] / (self.span_ns / SECOND)

    @property
    def throughput(self) -> float | None:
        """Requests a second that finished; None as for `goodput`."""
        if self.counts[UNKNOWN] == len(self.requests):
            return None
        finished = int(self.requests["outcome"].eq_missing(FINISHED).sum())
        return finished / (self.span_ns / SECOND) if self.span_ns else None

    def objectives(self) -> Iterator[Objective]:
        """What became of each SLO."""
        for metric, limit_ns in self.slo.limits_ns.items():
            met = self.requests[f"met_{metric}"]
            causes = self.requests.filter(~met).group_by(f"cause_{metric}").len()
            ordered = causes.sort(-pl.col("len").cast(pl.Int64), f"cause_{metric}").rows()
            num_met, num_missed = int(met.sum()), int((~met).sum())
            yield Objective(metric, limit_ns, num_met, num_missed, met.null_count(), tuple(ordered))

    def missed(self) -> pl.DataFrame:
        """Those that missed any, the worst first: by how many times its limit each took at most."""
        worst = pl.max_horizontal(
            pl.when(~pl.col(f"met_{metric}")).then(_taken(metric) / limit_ns)
            for metric, limit_ns in self.slo.limits_ns.items()
        )
        late = self.requests.filter(verdict=MISSED).with_columns(times_limit=worst)
        return late.sort(-pl.col("times_limit"), "rank", "request")


def slo_of(text: str) -> Slo:
    """Read `ttft=500ms,tpot=50ms`; raises ConfigError, which says what is wrong with it."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals or name not in METRICS:
            known = ", ".join(METRICS)
            raise ConfigError(f"--slo {text}: {part.strip()!r} is no SLO of {known}", todo=TODO)
        if name in found:
            raise ConfigError(f"--slo {text}: {name} is given twice", todo="give it once")
        found[name] = _limit_ns(text, value)
    return Slo({metric: found[metric] for metric in METRICS if metric in found})


def _limit_ns(text: str, value: str) -> int:
    match = _TIME.fullmatch(value)
    ns = round(float(match[1]) * UNITS[match[2]]) if match else 0
    if not 0 < ns <= _LONGEST_NS:
        raise ConfigError(f"--slo {text}: {value!r} is no time above 0 with its unit", todo=TODO)
    return ns


def judged(trace: Trace, blamed: Blame, slo: Slo) -> Judged:
    """Judge every request of `blamed` by an SLO; a trace that names none has no row."""
    told = latencies(trace, blamed)
    told = told.with_columns(
        _met(metric, limit_ns).alias(f"met_{metric}") for metric, limit_ns in slo.limits_ns.items()
    )
    causes = (
        {metric: _causes(blamed, told, metric) for metric in slo.limits_ns} if len(told) else {}
    )
    for metric in slo.limits_ns:
        told = _with_cause(told, metric, *causes.get(metric, _NO_CAUSES))
    return Judged(slo, _with_verdict(told, tuple(slo.limits_ns)))


def _met(metric: str, limit_ns: int) -> pl.Expr:
    """Whether a request met an SLO; null where that is not known."""
    if metric in {"ttft", "engine_ttft"}:
        return pl.col(f"{metric}_ns") <= limit_ns
    has_finished = pl.col("outcome").eq_missing(FINISHED)
    if metric in {"tpot", "engine_tpot"}:  # of one token alone there is no time between tokens
        has_one = has_finished & (pl.col("num_tokens") == 1) & pl.col("so_far_ns").is_not_null()
        is_met = pl.col(f"{metric}_ns") <= limit_ns
        return pl.when(has_one).then(pl.lit(value=True)).otherwise(is_met)
    is_late = pl.when(pl.col("so_far_ns") > limit_ns).then(pl.lit(value=False))
    return pl.when(has_finished).then(pl.col("latency_ns") <= limit_ns).otherwise(is_late)


def _taken(metric: str) -> pl.Expr:
    """What a request took of a metric; until now, of a latency that has not ended."""
    if metric == "latency":
        return pl.coalesce("latency_ns", "so_far_ns").cast(pl.Float64)
    return pl.col(f"{metric}_ns").cast(pl.Float64)


_NO_CAUSES = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _causes(
    blamed: Blame, requests: pl.DataFrame, metric: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each request: the cause that took most of the time of a metric, how much, which share."""
    if metric in OF_ENGINE:
        spent = _spent_in_engine(blamed, requests, metric)
    else:
        whole = blamed.requests.select(COLUMNS).to_numpy()
        before = blamed.to_first_token.select(COLUMNS).to_numpy()
        spent = {"ttft": before, "tpot": whole - before, "latency": whole}[metric]
    most = spent.argmax(axis=1)
    taken = spent[np.arange(len(spent)), most]
    return most, taken, taken / np.maximum(spent.sum(axis=1), 1)


def _spent_in_engine(blamed: Blame, requests: pl.DataFrame, metric: str) -> np.ndarray:
    """The time of each cause before the engine's first token, or from there to its last."""
    first = requests.select(*REQUEST, "engine_first_token_ns")
    from_ns, to_ns, at = pl.col("from_ns"), pl.col("to_ns"), pl.col("engine_first_token_ns")
    share = (at.clip(from_ns, to_ns) - from_ns) / (to_ns - from_ns)
    if metric == "engine_tpot":
        share = 1 - share
    spent = (
        blamed.intervals.join(first, on=REQUEST)
        .filter(pl.col("cause") != "delivery")
        .group_by(REQUEST)
        .agg(
            ((pl.col("ns") * share).filter(pl.col("cause") == cause.name).sum()).alias(cause.column)
            for cause in CAUSES
        )
    )
    rows = requests.select(REQUEST).join(spent, on=REQUEST, how="left", maintain_order="left")
    return rows.select(pl.col(COLUMNS).fill_null(0).round().cast(pl.Int64)).to_numpy()


def _with_cause(
    told: pl.DataFrame, metric: str, most: np.ndarray, taken: np.ndarray, share: np.ndarray
) -> pl.DataFrame:
    names = pl.Series([CAUSES[at].name for at in most.tolist()], dtype=pl.String)
    is_missed = ~told[f"met_{metric}"].fill_null(value=True)
    columns = {"cause": names, "cause_ns": pl.Series(taken), "cause_share": pl.Series(share)}
    own = [
        pl.when(is_missed).then(values).alias(f"{name}_{metric}")
        for name, values in columns.items()
    ]
    return told.with_columns(own)


def _with_verdict(told: pl.DataFrame, metrics: tuple[str, ...]) -> pl.DataFrame:
    is_missed = [~pl.col(f"met_{metric}").fill_null(value=True) for metric in metrics]
    is_met = [pl.col(f"met_{metric}").fill_null(value=False) for metric in metrics]
    ended_else = pl.col("outcome").is_in([each for each in ENDS if each != FINISHED])
    verdict = (
        pl.when(pl.any_horizontal(is_missed)).then(pl.lit(MISSED))
        .when(ended_else.fill_null(value=False)).then(pl.lit(NOT_SERVED))
        .when(pl.all_horizontal(is_met), pl.col("outcome").eq_missing(FINISHED)).then(pl.lit(MET))
        .otherwise(pl.lit(UNKNOWN))
    )  # fmt: skip
    first = pl.coalesce(
        pl.when(each).then(pl.lit(metric)) for each, metric in zip(is_missed, metrics, strict=True)
    )
    of_first = [
        pl.coalesce(f"{name}_{metric}" for metric in metrics).alias(name)
        for name in ("cause", "cause_ns", "cause_share")
    ]
    return told.with_columns(*of_first, verdict=verdict, missed=first)
