"""The phases of each request: in the front end, queue, prefill, decode, preempted, delivery.

They are the states of `ingest.derive.states`, and what a request ran is told apart: prefill until
its first token, or until the last of its prefills had ended, and decode from then on. Where neither
is recorded it is *running*, and which of both is not known.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.derive.states import (
    ENDED,
    REQUEST,
    RUNNING,
    UNKNOWN,
    WAITING,
    request_states,
    step_times,
)
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

QUEUE, PREFILL, DECODE = "queue", "prefill", "decode"


def request_phases(trace: Trace) -> pl.DataFrame:
    """Columns: rank, request, from_ns, to_ns (null where it is not over), phase; in order of time.

    Neighbours of one phase are one, and no phase is without duration.
    """
    states = _states(trace)
    running = states.filter(pl.col("phase") == RUNNING)
    split = _split(running, _with_cuts(trace, running))
    return (
        pl.concat([states.filter(pl.col("phase") != RUNNING), split])
        .filter(
            ~pl.col("phase").is_in([ENDED, UNKNOWN]), pl.col("to_ns").ne_missing(pl.col("from_ns"))
        )
        .sort(*REQUEST, "from_ns")
    )


def _states(trace: Trace) -> pl.DataFrame:
    """The states with neighbours of one kind made one, and with the field's word for waiting."""
    state = pl.col("state")
    return (
        request_states(trace.lifecycle)
        .filter(state.ne_missing(state.shift(1).over(REQUEST)))
        .select(
            *REQUEST,
            "from_ns",
            to_ns=pl.col("from_ns").shift(-1).over(REQUEST),
            phase=pl.when(state == WAITING).then(pl.lit(QUEUE)).otherwise(state),
        )
        .collect()
    )


def _split(running: pl.DataFrame, cuts: pl.DataFrame) -> pl.DataFrame:
    """Each running interval as its prefill and its decode, or as it is where no cut is known."""
    told = running.join(cuts, on=[*REQUEST, "from_ns"], how="left", maintain_order="left")
    cut, ends = pl.col("cut_ns"), pl.col("to_ns")
    known = told.filter(pl.col("cut_ns").is_not_null())
    is_over = ends.is_not_null()
    prefill = known.with_columns(to_ns=pl.when(cut < FAR_NS).then(cut).otherwise(ends))
    decode = known.filter(cut < FAR_NS, ~is_over | (cut < ends)).with_columns(from_ns=cut)
    parts = [
        told.filter(pl.col("cut_ns").is_null()),
        prefill.with_columns(phase=pl.lit(PREFILL)),
        decode.with_columns(phase=pl.lit(DECODE)),
    ]
    return pl.concat(part.drop("cut_ns") for part in parts)


def _with_cuts(trace: Trace, running: pl.DataFrame) -> pl.DataFrame:
    """Where prefill ends in each interval, `cut_ns`: `FAR_NS` where all of it is prefill."""
    first = (
        trace.lifecycle.filter(pl.col("event") == "first-token")
        .drop_nulls(["request", "ts_ns"])
        .select(*REQUEST, token_ns=pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
        .sort("token_ns")
        .collect()
    )
    told = running.sort("from_ns").join_asof(
        first, left_on="from_ns", right_on="token_ns", by=REQUEST, strategy="forward",
        check_sortedness=False,
    )  # fmt: skip
    earliest = first.group_by(REQUEST).agg(first_ns=pl.col("token_ns").min())
    told = told.join(earliest, on=REQUEST, how="left").join(
        _of_batches(trace, running), on=[*REQUEST, "from_ns"], how="left"
    )
    begins, ends = pl.col("from_ns"), pl.col("to_ns").fill_null(FAR_NS)
    token_is_in = (pl.col("token_ns") <= ends).fill_null(value=False)
    has_decoded, is_final = (pl.col(name).fill_null(value=False) for name in ("decodes", "final"))
    has_none_yet = (pl.col("first_ns") > begins) | pl.col("first_ns").is_null()
    tells_no_batch = not trace.has("batch_rows") and len(first) > 0
    cut = (
        pl.when(token_is_in)
        .then("token_ns")
        .when(pl.col("rows") > 0, pl.col("prefills") == 0)
        .then(begins)
        .when(pl.col("rows") > 0, has_decoded | is_final)
        .then(pl.col("prefill_ends_ns").clip(begins, ends))
        .when((pl.col("rows") > 0) | (has_none_yet & tells_no_batch))
        .then(FAR_NS)
    )
    return told.select(*REQUEST, "from_ns", cut_ns=cut)


def _of_batches(trace: Trace, running: pl.DataFrame) -> pl.DataFrame:
    """What each running interval was in batches, where they are recorded."""
    ends = step_times(trace).select("rank", "step", "to_ns")
    rows = (
        trace.batch_rows.select(*REQUEST, "step", "ts_ns", "phase", "is_final_chunk")
        .drop_nulls(["request", "ts_ns", "phase"])
        .join(ends, on=["rank", "step"], how="left")
        .rename({"to_ns": "row_ends_ns", "phase": "does"})
        .sort("ts_ns")
        .collect()
    )
    intervals = running.select(*REQUEST, "from_ns", "to_ns").sort("from_ns")
    is_prefill = pl.col("does") == PREFILL
    return (
        rows.join_asof(
            intervals, left_on="ts_ns", right_on="from_ns", by=REQUEST, strategy="backward",
            check_sortedness=False,
        )
        .filter(pl.col("from_ns").is_not_null())
        .filter(pl.col("ts_ns") < pl.col("to_ns").fill_null(FAR_NS))
        .group_by(*REQUEST, "from_ns")
        .agg(
            rows=pl.len(),
            prefills=is_prefill.sum(),
            decodes=(pl.col("does") == DECODE).any(),
            final=pl.col("is_final_chunk").filter(is_prefill).last(),
            prefill_ends_ns=pl.col("row_ends_ns").filter(is_prefill).max(),
        )
    )  # fmt: skip
