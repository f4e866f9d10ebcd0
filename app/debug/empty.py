"""What a trace says to be empty, where no row tells a state: none is not unknown."""

from __future__ import annotations

import polars as pl

from stepscope.ingest.trace import Trace

_NO_BATCH = (pl.col("num_prefill_reqs") == 0) & (pl.col("num_decode_reqs") == 0)
_NOBODY = (pl.col("num_waiting") == 0) & (pl.col("num_running") == 0)
_NO_BLOCK_HELD = (pl.col("kv_blocks_total") > 0) & (
    pl.col("kv_blocks_free") == pl.col("kv_blocks_total")
)


def has_only_empty_batches(trace: Trace, rank: int) -> bool:
    """Whether the rank has steps, and each of them says that nobody was in its batch."""
    return _holds_throughout(_NO_BATCH, trace, rank)


def has_only_empty_queues(trace: Trace, rank: int) -> bool:
    """Whether the rank has steps, and each of them says that nobody waited or ran."""
    return _holds_throughout(_NOBODY, trace, rank)


def has_only_free_blocks(trace: Trace, rank: int) -> bool:
    """Whether the rank has steps, and each of them says that all KV blocks were free."""
    return _holds_throughout(_NO_BLOCK_HELD, trace, rank)


def _holds_throughout(said: pl.Expr, trace: Trace, rank: int) -> bool:
    steps = trace.steps.filter(pl.col("rank") == rank).select(said.fill_null(value=False))
    answers = steps.collect().to_series()
    return len(answers) > 0 and answers.all()
