"""The line of a trace that names no request: from its first step to its last, rank by rank.

The line of a rank with a GPU is the window of its GPU figures (`gpu_time.windows`). A
profile knows what each step was, and not for whom. So what is blamed is the run itself. Where it
tells what the GPU executed, that is it (`gpu_time`). Where it does not, steps are what their tags
say, and a mixed one is cut in two by its tokens, as the share of each is not known; where its
tokens are not told apart, neither is its time.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.intervals import CODE, NUMBER_OF
from stepscope.ingest.times import FAR_NS


def run_lines(steps: pl.LazyFrame, windows: pl.DataFrame) -> pl.LazyFrame:
    """One row per rank, with the columns of `intervals.lines`; the request is null.

    `windows` has rank, from_ns and to_ns of ranks with a GPU (`gpu_time.windows`): those are their
    lines. A last step of which no end is known does not count.
    """
    is_known = pl.col("to_ns") < FAR_NS
    to_ns = pl.max_horizontal(pl.col("to_ns").filter(is_known).max(), pl.col("from_ns").max())
    lasts = steps.group_by("rank").agg(pl.col("from_ns").min(), to_ns)
    to_far = pl.col("to_ns").clip(upper_bound=FAR_NS)
    near = windows.lazy().filter(pl.col("from_ns") < FAR_NS).with_columns(to_far)
    without_gpu = lasts.join(near, on="rank", how="anti")
    return (
        pl.concat([without_gpu, near.select("rank", "from_ns", "to_ns")])
        .select(
            "rank",
            "from_ns",
            "to_ns",
            request=pl.lit(None, pl.String),
            sampled_ns=pl.lit(None, pl.Int64),
            first_token_ns=pl.lit(None, pl.Int64),
            engine_first_token_ns=pl.lit(None, pl.Int64),
            outcome=pl.lit(None, pl.String),
            has_arrival=pl.lit(True),
        )
        .sort("rank")
        .with_row_index("line")
    )


def is_split() -> pl.Expr:
    """Whether a step is cut in two by its tokens: it has prompts and decodes, and says how many."""
    is_told = pl.col("num_prefill_tokens", "num_decode_tokens").is_not_null()
    return pl.all_horizontal(is_told, (pl.col("kind") == "mixed").fill_null(value=False))


def run_scheduled(steps: pl.LazyFrame, ran: pl.DataFrame) -> pl.LazyFrame:
    """What each step was for, with the columns of `scheduled`; `ran` is what GPUs executed.

    What was executed tells more of a step than its kind, and is not cut.
    """
    has_gpu = pl.col("rank").is_in(ran["rank"].unique().implode())
    steps = steps.with_columns(kind=pl.when(~has_gpu).then("kind"))
    length = pl.col("to_ns") - pl.col("from_ns")
    prefill, decode = (
        pl.col(f"num_{phase}_tokens").clip(0, 2**31) for phase in ("prefill", "decode")
    )
    share = prefill / (prefill + decode).clip(lower_bound=1)
    cut = pl.col("from_ns") + (length * share).cast(pl.Int64)
    kind = pl.col("kind")
    numbers = {each: NUMBER_OF[each] for each in ("prefill", "decode", "idle")}
    numbers["dummy"] = NUMBER_OF["idle"]
    of_kind = kind.fill_null("").replace_strict(numbers, default=NUMBER_OF["unknown"])
    parts = [
        _part(steps.filter(~is_split()), of_kind),
        _part(steps.filter(is_split()).with_columns(to_ns=cut), pl.lit(NUMBER_OF["prefill"])),
        _part(steps.filter(is_split()).with_columns(from_ns=cut), pl.lit(NUMBER_OF["decode"])),
    ]
    return pl.concat(parts)


def _part(steps: pl.LazyFrame, work: pl.Expr) -> pl.LazyFrame:
    request = pl.lit(None, pl.String).alias("request")
    times = ("from_ns", "to_ns")
    return steps.select("rank", request, "step", *times, formed_ns="from_ns", work=work.cast(CODE))
