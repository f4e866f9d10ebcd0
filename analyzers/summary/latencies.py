"""Each request's latencies: to its first token, per token after that, and in all.

Times come from `Blame`, so that a request's causes add up to its latency. TTFT, TPOT and latency
are those of vLLM's `benchmark_serving`, as the client sees them where a front end recorded its
deliveries: TPOT is (latency - TTFT) / (tokens - 1). A client that does not stream, such as
`LLM.generate`, gets all tokens at once: its TTFT is its latency, and it has no TPOT. The engine
TTFT and engine TPOT are of the same request when the engine sampled its tokens, as in vLLM's
`vllm:request_time_per_output_token_seconds`. Where no delivery was recorded they are the same,
and where only clients were recorded they are not known.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.blame import Blame
from stepscope.analyzers.latency.request_lines import brings_tokens
from stepscope.analyzers.views.requests import REQUEST, events
from stepscope.analyzers.views.token_gaps import token_gaps
from stepscope.ingest.derive.states import BEFORE
from stepscope.ingest.summary import tokens_came
from stepscope.ingest.trace import Trace

METRICS = ("ttft", "tpot", "latency", "engine_ttft", "engine_tpot")
OF_ENGINE = ("engine_ttft", "engine_tpot")
FINISHED = "finish"


def latencies(trace: Trace, blamed: Blame) -> pl.DataFrame:
    """A row for each of `blamed.requests`, in their order: what is known of its latencies.

    Columns: rank, request, outcome, arrive_ns, engine_first_token_ns, ended_ns, num_tokens,
    ttft_ns, tpot_ns (a fraction), latency_ns, so_far_ns (how long it had been there when it
    ended, or the trace did), is_delivered (whether the client's tokens were recorded),
    engine_ttft_ns and engine_tpot_ns (a fraction). Null is what is not known: ttft_ns without a
    first token, tpot_ns of a request that has not finished, has no second token or got all tokens
    at once, latency_ns of one that has not finished, and all of a request whose arrival was not
    recorded.
    """
    if not blamed.names_requests:
        return _with_times(blamed.requests.clear(), trace)
    return _with_times(blamed.requests, trace)


def _with_times(requests: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    at, event = pl.col("ts_ns"), pl.col("event")
    recorded = (
        events(trace)
        .group_by(REQUEST)
        .agg(
            has_arrived=event.is_in(BEFORE).any(),
            is_delivered=brings_tokens().any(),
            engine_end_ns=at.filter(event == FINISHED).min(),
        )
        .collect()
    )
    tokens = tokens_came(trace).with_columns(pl.col("num_tokens").cast(pl.Int64)).collect()
    has_arrived = pl.col("has_arrived").fill_null(value=False)
    has_finished = has_arrived & pl.col("outcome").eq_missing(FINISHED)
    ttft_ns = pl.when(has_arrived).then(pl.col("first_token_ns") - pl.col("arrive_ns"))
    after_first = (pl.col("ended_ns") - pl.col("first_token_ns")) / (pl.col("num_tokens") - 1)
    is_spread = has_finished & (pl.col("num_tokens") > 1)
    engine_ns = pl.col("engine_end_ns") - pl.col("engine_first_token_ns")
    engine_ttft_ns = pl.col("engine_first_token_ns") - pl.col("arrive_ns")
    return (
        requests.join(recorded, on=REQUEST, how="left", maintain_order="left")
        .join(tokens, on=REQUEST, how="left", maintain_order="left")
        .select(
            *REQUEST, "outcome", "arrive_ns", "engine_first_token_ns", "ended_ns", "num_tokens",
            ttft_ns=ttft_ns,
            tpot_ns=pl.when(is_spread & (after_first > 0)).then(after_first),
            latency_ns=pl.when(has_finished).then("latency_ns"),
            so_far_ns=pl.when(has_arrived).then("latency_ns"),
            is_delivered=pl.col("is_delivered").fill_null(value=False),
            engine_ttft_ns=pl.when(has_arrived).then(engine_ttft_ns),
            engine_tpot_ns=pl.when(is_spread & (engine_ns > 0)).then(
                engine_ns / (pl.col("num_tokens") - 1)
            ),
        )
    )  # fmt: skip


def gaps_ns(trace: Trace) -> pl.Series:
    """The time before each token of a request but its first, of all requests together."""
    return token_gaps(trace).select("gap_ns").collect()["gap_ns"]
