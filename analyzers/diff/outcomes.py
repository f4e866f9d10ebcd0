"""What became of each request in two runs, and who gained by the one or the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.partial import partial
from stepscope.analyzers.views.requests import REQUEST
from stepscope.analyzers.views.token_gaps import token_gaps
from stepscope.ingest.quantiles import quantile_of
from stepscope.ingest.summary import tokens_came
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

Pair = tuple[Any, Any]
ENDED = {"finished": "finish", "aborted": "abort", "rejected": "reject", "failed": "error"}
BEFORE_ADMISSION = ("receive", "arrive", "defer", "ready", "reject")
"""Events after which a request has no token yet."""
NOT_RECORDED = {"waiting", "unknown"}
"""Causes of time that has another cause, which is not recorded."""
OF_GPU = {"gemm", "attention", "kernel", "copy", "gpu-wait", "launch"}
"""Causes of the time of a run that is split by what its GPUs did."""
SERVED = ("outcome", "latency_ns", "ttft_ns", "num_preempted")


@dataclass(frozen=True)
class Outcomes:
    """How two runs ended.

    `requests` has a row per request of either: rank, request, and outcome, latency_ns, ttft_ns and
    num_preempted of each run, with `_a` and `_b` behind; `gain_ns` is by how much it is faster in B
    where it finished in both, and `change` is "gained", "lost" or null. `totals` are numbers of
    both runs by name, None where a trace does not tell: latencies are those of the finished alone,
    and `open` is who was still there at the end. `causes` is the time of each cause of latency, in
    nanoseconds; None of a run that does not tell. What each total is stands at `totals`. `partial`
    says what each recording lacks, so that some of its figures are partial.
    """

    requests: pl.DataFrame
    totals: dict[str, Pair]
    causes: dict[str, Pair]
    partial: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def whose(self) -> str:
        """Whose time `causes` is: that of requests, or where none is named, of the run itself."""
        return "the whole run" if self.requests.is_empty() else "all requests"


def outcomes(a: Trace, b: Trace) -> Outcomes:
    """Compare the ends of two runs, request by request."""
    ours, theirs = blame(a), blame(b)
    served = [_served(trace, blamed) for trace, blamed in ((a, ours), (b, theirs))]
    both = served[0].join(served[1], on=REQUEST, how="full", coalesce=True, suffix="_b")
    both = both.rename({name: f"{name}_a" for name in SERVED})
    came = [_totals(trace, each) for trace, each in zip((a, b), served, strict=True)]
    return Outcomes(
        _compared(both, a, b).sort("rank", "request"),
        {name: (came[0][name], came[1][name]) for name in came[0]},
        _causes((a, b), (ours, theirs)),
        (partial(a), partial(b)),
    )


def totals(trace: Trace, blamed: Blame | None = None) -> dict[str, Any]:
    """What a run came to, by name; None where the trace does not tell.

    steps, makespan_ns  how many steps, and from the first one's begin to the last one's end;
                        null where no step says how long it took
    requests, arrived   who there was, and who of them arrived while it was recorded
    finished, aborted, rejected, failed, open, preemptions   what became of them
    tokens, tokens_per_s         tokens of all requests, and by the makespan
    latency_*_ns, ttft_*_ns      of those that finished: from arrival to end, to the first token
    max_token_gap_ns    the longest that any request waited from one token to the next
    fairness            Jain's index of the tokens per second that those who finished got from
                        arrival to end: 1 where all got as many, 1/n where one of n got all
    """
    return _totals(trace, _served(trace, blamed or blame(trace)))


def _served(trace: Trace, blamed: Blame) -> pl.DataFrame:
    preempted = trace.lifecycle.filter(pl.col("event") == "preempt").group_by(REQUEST)
    return (
        blamed.requests.filter(pl.col("request").is_not_null())
        .with_columns(ttft_ns=pl.col("first_token_ns") - pl.col("arrive_ns"))
        .join(preempted.agg(num_preempted=pl.len()).collect(), on=REQUEST, how="left")
        .select(*REQUEST, *SERVED)
        .with_columns(
            pl.when(pl.lit(_tells_of_moves(trace))).then(pl.col("num_preempted").fill_null(0))
        )
    )


def _tells_of_moves(trace: Trace) -> bool:
    """Tell whether events say whose they are and when: else nobody is known not to have moved."""
    return knows(trace, *(f"lifecycle.{name}" for name in ("request", "event", "ts_ns")))


def _compared(both: pl.DataFrame, a: Trace, b: Trace) -> pl.DataFrame:
    """A request that finished in one run alone gained or lost, whatever the times are.

    Where one run does not tell who finished, none did either.
    """
    if not (_tells_of_moves(a) and _tells_of_moves(b)):
        unknown = pl.lit(None, pl.Int64), pl.lit(None, pl.String)
        return both.with_columns(gain_ns=unknown[0], change=unknown[1])
    finished = [pl.col(f"outcome_{run}").eq_missing("finish") for run in "ab"]
    gain = pl.when(*finished).then(pl.col("latency_ns_a") - pl.col("latency_ns_b"))
    gained = (finished[1] & ~finished[0]) | (gain > 0)
    lost = (finished[0] & ~finished[1]) | (gain < 0)
    change = pl.when(gained).then(pl.lit("gained")).when(lost).then(pl.lit("lost"))
    return both.with_columns(gain_ns=gain, change=change)


def _totals(trace: Trace, served: pl.DataFrame) -> dict[str, Any]:
    finished = served.filter(pl.col("outcome") == "finish")
    times = trace.steps.select(
        began=pl.col("ts_ns").min(), ended=(pl.col("ts_ns") + pl.col("dur_ns").fill_null(0)).max(),
        has_ends=pl.col("dur_ns").is_not_null().any(),
    ).collect()  # fmt: skip
    began, ended, has_ends = times.row(0)
    makespan_ns = ended - began if has_ends and began is not None else None
    each = tokens_of_each(trace)
    num_tokens = int(each["num_tokens"].sum()) or None
    if not trace.has("outputs") and _is_any_uncounted(trace, each):
        num_tokens = None
    came = of_finished(finished, each)
    return {
        "steps": trace.num_rows("steps") or None,
        "makespan_ns": makespan_ns,
        **_became(trace, served),
        "tokens": num_tokens,
        "tokens_per_s": num_tokens / makespan_ns * SECOND if num_tokens and makespan_ns else None,
        **{name: told for name, told in came.items() if name != "fairness"},
        "max_token_gap_ns": token_gaps(trace).select(pl.col("gap_ns").max()).collect().item(),
        "fairness": came["fairness"],
    }


def tokens_of_each(trace: Trace) -> pl.DataFrame:
    """How many tokens each request got, as `info` counts them: rank, request, num_tokens."""
    return tokens_came(trace).with_columns(pl.col("num_tokens").cast(pl.Int64)).collect()


def _is_any_uncounted(trace: Trace, each: pl.DataFrame) -> bool:
    """Whether a request that was let in has no number of tokens, so that their sum is too low."""
    is_inside = ~pl.col("event").is_in([*BEFORE_ADMISSION]).fill_null(value=False)
    let_in = trace.lifecycle.filter(is_inside, pl.col("request").is_not_null())
    every = let_in.select(REQUEST).unique().collect()
    return not every.join(each, on=list(REQUEST), how="anti").is_empty()


def of_finished(finished: pl.DataFrame, each: pl.DataFrame) -> dict[str, Any]:
    """What those came to who finished, with their tokens: latencies, and how fair it was."""
    return {
        "latency_mean_ns": _whole(finished["latency_ns"].mean()),
        "latency_p99_ns": quantile_of(finished["latency_ns"], 0.99),
        "latency_max_ns": _whole(finished["latency_ns"].max()),
        "ttft_mean_ns": _whole(finished["ttft_ns"].mean()),
        "ttft_p99_ns": quantile_of(finished["ttft_ns"], 0.99),
        "fairness": _fairness(finished.join(each, on=list(REQUEST))),
    }


def _fairness(finished: pl.DataFrame) -> float | None:
    """Jain's index; None where fewer than two requests say when they came and ended.

    Source: Jain, Chiu and Hawe, A Quantitative Measure of Fairness and Discrimination (1984).
    """
    lasted = pl.col("latency_ns")
    rates = finished.filter(lasted > 0).select(pl.col("num_tokens") / lasted).to_series()
    if len(rates) < 2:
        return None
    return float(rates.sum()) ** 2 / (len(rates) * float((rates**2).sum()))


def _became(trace: Trace, served: pl.DataFrame) -> dict[str, int | None]:
    """How many requests there were, and what became of them: a list of arrivals does not say."""
    event, is_named = pl.col("event"), pl.col("request").is_not_null()
    told = trace.lifecycle.select(
        arrived=(event == "arrive").sum(), preempted=(event == "preempt").sum(),
        went_on=(event != "arrive").any(), are_named=((event != "arrive") & is_named).any(),
    )  # fmt: skip
    arrived, preempted, went_on, are_named = told.collect().row(0)
    # Spans and logs say when a request began and ended, and of preemptions those that they saw.
    has_preemptions = bool(preempted) or (went_on and trace.manifest.is_recording)
    outcome = served.join(_ends_without_time(trace), on=list(REQUEST), how="left").select(
        pl.coalesce("outcome", "ended")
    )["outcome"]
    became = {name: int((outcome == event).sum()) for name, event in ENDED.items()}
    became["open"] = outcome.null_count()
    return {
        "requests": len(served) or arrived or None,
        "arrived": arrived or None,
        **{name: number if are_named else None for name, number in became.items()},
        "preemptions": preempted if has_preemptions else None,
    }


def _ends_without_time(trace: Trace) -> pl.DataFrame:
    """How requests ended of which it is not known when: rank, request, ended."""
    is_end = pl.col("event").is_in(list(ENDED.values())) & pl.col("ts_ns").is_null()
    ends = trace.lifecycle.filter(is_end).group_by(REQUEST)
    return ends.agg(ended=pl.col("event").min()).collect()


def _tells_of_causes(trace: Trace, spent: dict[str, int]) -> bool:
    """Tell whether a cause that took no time of a run is known to have taken none."""
    is_recording = trace.manifest.is_recording
    return not partial(trace) and not (is_recording and spent.keys() & NOT_RECORDED)


def _whole(number: Any) -> int | None:
    return None if number is None else round(number)


def _causes(traces: tuple[Trace, Trace], runs: tuple[Blame, Blame]) -> dict[str, Pair]:
    """The time of requests by cause; that of a run is none of it where the other's requests are."""
    some_are_named = any(run.names_requests for run in runs)
    spent = [
        {each.cause.name: each.total_ns for each in run.totals()}
        if run.names_requests or not some_are_named
        else {}
        for run in runs
    ]
    # Of a run whose requests it names these are all causes; one without any says nothing of others.
    is_of_gpu = [not some_are_named and bool(known.keys() & OF_GPU) for known in spent]
    absent = [
        0
        if is_of_gpu[0] == is_of_gpu[1]
        and (run.names_requests or known)
        and _tells_of_causes(trace, known)
        else None
        for trace, run, known in zip(traces, runs, spent, strict=True)
    ]
    return {
        name: (spent[0].get(name, absent[0]), spent[1].get(name, absent[1]))
        for name in dict.fromkeys((*spent[0], *spent[1]))
    }
