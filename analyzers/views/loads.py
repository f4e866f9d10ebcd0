"""How loaded an engine said that it is: in its log every few seconds, or in each step.

Engines call the same thing by other names, and write it as a share or in percent. Here it has one
name and one unit, whoever wrote it.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.once import once
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

# vLLM's interval lines and metrics, mistral.rs's lines, SGLang's, TensorRT-LLM's and llama.cpp's.
RUNNING = (
    "Running", "running", "vllm:num_requests_running", "sglang:num_running_reqs",
    "llamacpp:requests_processing",
)  # fmt: skip
WAITING = (
    "Waiting", "Pending", "waiting", "vllm:num_requests_waiting", "sglang:num_queue_reqs",
    "llamacpp:requests_deferred",
)  # fmt: skip
KV_USAGE = (
    "GPU KV cache usage", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "token usage",
    "full token usage", "kv_cache_util", "sglang:token_usage", "llamacpp:kv_cache_usage_ratio",
)  # fmt: skip
PROMPTS = ("Avg prompt throughput", "num_prompt_tokens")
DECODES = (
    "Avg generation throughput", "gen throughput", "Throughput decode", "sglang:gen_throughput",
    "num_generation_tokens",
)  # fmt: skip
OTHER_POOL = r"(?i)\busage$"
"""Shares of pools beside the KV cache, such as SGLang's `mamba usage` and `swa token usage`."""
NO_POOL = r"(?i)\b(?:cpu|gpu|npu|memory|disk)\b"
_NAMES = {
    **dict.fromkeys(RUNNING, "num_running"),
    **dict.fromkeys(WAITING, "num_waiting"),
    **dict.fromkeys(KV_USAGE, "kv_usage"),
    **dict.fromkeys(PROMPTS, "prompt_rate"),
    **dict.fromkeys(DECODES, "decode_rate"),
}
COLUMNS = ("num_running", "num_waiting", "kv_usage", "prompt_rate", "decode_rate")
MOMENT = ("rank", "ts_ns")


def loads(trace: Trace) -> pl.LazyFrame:
    """What each rank said of itself at a moment, in order, with null for what was not said.

    Columns: rank, step (null where it was said of no step), ts_ns, num_running, num_waiting,
    kv_usage (a share from 0 to 1), prompt_rate and decode_rate (tokens a second, or in the step),
    pool_usage and pool (the fullest pool of something other than KV) and is_recorded (by the
    engine, in a step).
    """
    return once(trace, "loads", lambda: _loads(trace))


def _loads(trace: Trace) -> pl.LazyFrame:
    told = pl.concat([_of_counters(trace), _of_steps(trace)], how="diagonal_relaxed")
    return (
        told.group_by(MOMENT)
        .agg(
            pl.col("step", *COLUMNS).max(),
            pl.col("pool_usage").max(),
            pool=pl.col("pool").sort_by("pool_usage", nulls_last=False).last(),
            is_recorded=pl.col("is_recorded").any(),
        )
        .sort(MOMENT)
    )


def _of_counters(trace: Trace) -> pl.LazyFrame:
    """One row for each moment with a counter that is known; a percentage is made a share."""
    is_percent = (pl.col("unit") == "%").fill_null(value=False)
    column = pl.col("name").replace_strict(_NAMES, default=None, return_dtype=pl.String)
    value = pl.when(is_percent).then(pl.col("value") / 100).otherwise("value")
    known = (
        trace.counters.filter(
            pl.col("name").is_in(list(_NAMES)),
            pl.col("ts_ns").is_not_null(),
            pl.col("value").is_finite() & (pl.col("value") >= 0),
        )
        .with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS), column=column, value=value)
        .group_by(MOMENT)
        .agg(pl.col("value").filter(pl.col("column") == name).max().alias(name) for name in COLUMNS)
    )
    named = pl.col("name")
    is_pool = named.str.contains(OTHER_POOL) & ~named.str.contains(NO_POOL)
    pools = (
        trace.counters.filter(
            is_pool, ~named.is_in(list(KV_USAGE)), pl.col("ts_ns").is_not_null(),
            pl.col("value").is_finite(),
        )
        .with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS), value=value)
        .filter(pl.col("value").is_between(0, 1))
        .select(*MOMENT, pool=named, pool_usage="value")
    )  # fmt: skip
    rows = pl.concat([known, pools], how="diagonal_relaxed")
    return rows.with_columns(is_recorded=pl.lit(value=False))


def _of_steps(trace: Trace) -> pl.LazyFrame:
    """One row for each step that says who runs or waits."""
    total = pl.col("kv_blocks_total").cast(pl.Float64)
    used = pl.when(total > 0).then(1 - pl.col("kv_blocks_free") / total)
    return trace.steps.filter(
        pl.col("ts_ns").is_not_null(),
        pl.any_horizontal(pl.col("num_running", "num_waiting").is_not_null()),
    ).select(
        "rank",
        "step",
        pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
        num_running=pl.col("num_running").cast(pl.Float64),
        num_waiting=pl.col("num_waiting").cast(pl.Float64),
        kv_usage=used,
        prompt_rate=pl.col("num_prefill_tokens").cast(pl.Float64),
        decode_rate=pl.col("num_decode_tokens").cast(pl.Float64),
        is_recorded=pl.col("inferred").is_null(),
    )
