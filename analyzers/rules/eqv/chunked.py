"""Requests whose output is wrong from the token on that the last chunk of a prompt gives."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.rules.eqv.solo_runs import NOT_A_NUMBER, REQUEST, compared, diverged
from stepscope.analyzers.views.batches import rows
from stepscope.ingest.trace import Trace

SAMPLED = (*REQUEST, "from_step")


def prompt_tokens(trace: Trace) -> pl.LazyFrame:
    """Tokens of `solo.compared` that the end of a prompt gave, with num_chunks that it came in."""
    chunks = _chunks(trace)
    return (
        compared(trace)
        .join(chunks, on=SAMPLED, how="left")
        .filter(pl.col("num_chunks").is_not_null())
    )


def wrong_by_chunks(trace: Trace) -> pl.LazyFrame:
    """Requests that differ first at such a token of a prompt in chunks, where no others differ.

    Columns: those of `solo.diverged` and num_chunks. Where a request differs first at another token
    (of a decode, or of a prompt that came whole), something else is wrong on that rank.
    """
    wrong = (
        diverged(trace)
        .filter(pl.col("digest") != NOT_A_NUMBER)
        .join(_chunks(trace), on=SAMPLED, how="left")
        .with_columns(is_chunked=(pl.col("num_chunks") > 1).fill_null(value=False))
    )
    return wrong.filter(pl.col("is_chunked").all().over("rank")).drop("is_chunked")


def _chunks(trace: Trace) -> pl.LazyFrame:
    """How many chunks each prompt came in: rank, request, from_step (of the last), num_chunks.

    A prompt begins where nothing of it was computed but what a prefix cache had; a preemption lets
    it begin again.
    """
    begins = pl.col("num_computed").fill_null(0) <= pl.col("num_cached").fill_null(0)
    number = pl.col("_begins").cum_sum().over(REQUEST)
    return (
        rows(trace)
        .filter(pl.col("phase") == "prefill")
        .group_by(*REQUEST, "step")
        .agg(pl.col("num_computed", "num_cached").min(), pl.col("is_final_chunk").any())
        .sort(*REQUEST, "step")
        .with_columns(_begins=begins)
        .with_columns(_prompt=number)
        .with_columns(num_chunks=pl.int_range(1, pl.len() + 1).over(*REQUEST, "_prompt"))
        .filter(pl.col("is_final_chunk"))
        .select(*REQUEST, pl.col("step").alias("from_step"), "num_chunks")
    )
