"""Who was in each slot and what it did there: the one definition for lanes and exports.

A request is in a slot from its claim to its release (`allocations`). Where a rank records no claims
of slots, it is there from its first batch row in the slot until the last before another request's.
Within that time it runs a *phase* while it has rows in the batches of consecutive steps, and is
*idle* while it has none: its row was masked. In a rank whose batch rows name no slot, what it does
there is *unknown*.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.derive.holding_intervals import holds
from stepscope.ingest.derive.states import step_times
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

SLOT = ("rank", "slot")
PREFILL, DECODE, RECOMPUTE, IDLE, UNKNOWN = "prefill", "decode", "recompute", "idle", "unknown"
COLUMNS = (*SLOT, "request", "state", "from_ns", "to_ns", "table", "ref")
_TYPES = {"rank": pl.Int32, "slot": pl.Int64, "request": pl.String}


def slot_spans(trace: Trace) -> pl.DataFrame:
    """Return what each slot's request did from when to when, by rank, slot and time.

    Columns: COLUMNS. `to_ns` is null where no end is recorded; `ref` is the row of `table` that the
    span begins with: the first of its batch rows, or the claim. Spans of a slot overlap only where
    two requests have a row for it in one step.
    """
    runs, stays = _runs(trace), slot_stays(trace)
    recorded = stays.select("rank").unique()
    inferred = _stays_of_runs(runs.join(recorded, on="rank", how="anti"))
    every = pl.concat([stays.select(inferred.columns), inferred])
    spans = pl.concat([runs, _idle(trace, runs, every)]).select(COLUMNS)
    return spans.sort(*SLOT, "from_ns", "to_ns", maintain_order=True)


def slot_stays(trace: Trace) -> pl.DataFrame:
    """Return the claims of slots: rank, slot, request, from_ns, to_ns, table, ref, step, seq."""
    claims = trace.allocations.with_row_index("ref").filter(pl.col("resource") == "slot")
    return (
        holds(claims.drop_nulls(["rank", "id", "ts_ns"]))
        .select(
            "rank", pl.col("id").alias("slot"), pl.col("owner").alias("request"),
            _clipped("ts_ns").alias("from_ns"), _clipped("to_ns"),
            pl.lit("allocations").alias("table"), "ref", "step", "seq", "to_seq",
        )
        .collect()
    )  # fmt: skip


def old_tokens(trace: Trace) -> pl.DataFrame:
    """Return when a slot that a request uses still held tokens that are not of that request.

    Columns: rank, slot, request, from_ns, to_ns (null while it goes on), num_tokens (all that lie
    in the slot), num_own (those of the request; null in a rank without its batch rows), table, ref.
    A slot that is cleared after its claim, before anything was computed in it, has none.
    """
    stays = slot_stays(trace).with_row_index("stay")
    if stays.is_empty() or not trace.has("slot_tokens"):
        return _NO_TOKENS
    points = _token_points(trace, stays)
    own, left = pl.col("num_own"), pl.col("num_tokens").first().over("stay")
    is_kept = pl.col("num_tokens").cum_min().over("stay") >= left
    are_more = pl.when(own.is_null()).then(is_kept).otherwise(pl.col("num_tokens") > own)
    points = points.with_columns(is_old=(left > 0) & are_more)
    following = pl.col("is_old").shift(-1).over("stay")
    used = pl.when("is_claim").then(following.fill_null(pl.col("has_rows"))).otherwise(True)
    is_new = pl.col("is_old").ne(pl.col("is_old").shift(1)).fill_null(value=True).over("stay")
    shown = points.with_columns(is_old=pl.col("is_old") & used).with_columns(
        run=is_new.cum_sum().over("stay"),
        until=pl.col("from_ns").shift(-1).over("stay").fill_null(pl.col("to_ns")),
    )
    return (
        shown.filter("is_old")
        .group_by("stay", "run", maintain_order=True)
        .agg(
            pl.col(*SLOT, "request", "from_ns").first(), to_ns=pl.col("until").last(),
            num_tokens=pl.col("num_tokens").first(), num_own=own.first(),
            table=pl.lit("slot_tokens"), ref=pl.col("ref").first(),
        )
        .select(_NO_TOKENS.columns)
        .filter(pl.col("to_ns").is_null() | (pl.col("from_ns") < pl.col("to_ns")))
        .sort(*SLOT, "from_ns")
    )  # fmt: skip


_NO_TOKENS = pl.DataFrame(
    schema={
        **_TYPES, "from_ns": pl.Int64, "to_ns": pl.Int64, "num_tokens": pl.Int64,
        "num_own": pl.Int64, "table": pl.String, "ref": pl.UInt32,
    }
)  # fmt: skip


def _clipped(name: str) -> pl.Expr:
    return pl.col(name).clip(-FAR_NS, FAR_NS)


def _rows(trace: Trace) -> pl.LazyFrame:
    rows = trace.batch_rows.with_row_index("ref")
    return rows.drop_nulls(["rank", "ts_ns", "step", "request", "slot"])


def _runs(trace: Trace) -> pl.DataFrame:
    """Batch rows of a slot joined while one request has one in each step, in one phase."""
    place = pl.int_range(pl.len(), dtype=pl.Int64).over("rank")
    times = step_times(trace).select("rank", "step", "from_ns", "to_ns", place=place)
    phase = pl.when("is_recompute").then(pl.lit(RECOMPUTE)).otherwise("phase")
    rows = (
        _rows(trace)
        .select("rank", "step", "request", "ref", pl.col("slot").cast(pl.Int64),
                state=phase.fill_null(UNKNOWN))
        .join(times, on=["rank", "step"], how="left", maintain_order="left")
        .drop_nulls("from_ns")
        .collect()
        .sort(*SLOT, "from_ns", "request", maintain_order=True)
    )  # fmt: skip
    same = (*SLOT, "request", "state")
    changes = [pl.col(name) != pl.col(name).shift(1) for name in same]
    apart = ~(pl.col("place") - pl.col("place").shift(1)).is_between(0, 1)
    is_first = pl.any_horizontal(*changes, apart).fill_null(value=True)
    rows = rows.with_columns(is_first=is_first)
    is_last = rows["is_first"].shift(-1).fill_null(value=True)
    runs = rows.filter("is_first").drop("to_ns", "place", "is_first", "step")
    runs = runs.with_columns(rows.filter(is_last)["to_ns"], table=pl.lit("batch_rows"))
    following = pl.col("from_ns").shift(-1).over(SLOT)
    is_cut = following > pl.col("from_ns")
    cut = pl.when(is_cut).then(pl.min_horizontal("to_ns", following)).otherwise("to_ns")
    return runs.with_columns(to_ns=cut).select(COLUMNS)


def _stays_of_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """From when to when one request had a slot, by its batch rows alone."""
    is_new = pl.col("request").ne(pl.col("request").shift(1)).fill_null(value=True).over(SLOT)
    return (
        runs.with_columns(stay=is_new.cum_sum().over(SLOT))
        .group_by(*SLOT, "stay", maintain_order=True)
        .agg(pl.col("request", "from_ns").first(), pl.col("to_ns").last(),
             pl.col("table", "ref").first())
        .drop("stay")
    )  # fmt: skip


def _idle(trace: Trace, runs: pl.DataFrame, stays: pl.DataFrame) -> pl.DataFrame:
    """The parts of stays in which no run is, cut at the stays' ends."""
    opens = stays.with_columns(until="from_ns", change=pl.lit(1))
    closes = stays.with_columns(
        from_ns=pl.col("to_ns").fill_null(FAR_NS), until=pl.col("to_ns").fill_null(FAR_NS),
        change=pl.lit(-1), request=pl.lit(None, pl.String),
    )  # fmt: skip
    busy = runs.with_columns(
        until=pl.col("to_ns").fill_null(FAR_NS), change=pl.lit(0), request=pl.lit(None, pl.String)
    )
    columns = [*SLOT, "from_ns", "until", "change", "request", "table", "ref"]
    marks = pl.concat([each.select(columns) for each in (closes, opens, busy)])
    is_open = pl.col("request").is_not_null() | (pl.col("change") > 0)
    of_stay = {
        name: pl.when(is_open).then(name).forward_fill().over(SLOT)
        for name in ("request", "table", "ref")
    }
    gaps = (
        marks.sort(*SLOT, "from_ns", maintain_order=True)
        .with_columns(
            num_open=pl.col("change").cum_sum().over(SLOT),
            busy_ns=pl.col("until").cum_max().over(SLOT),
            next_ns=pl.col("from_ns").shift(-1).over(SLOT),
            **of_stay,
        )
        .filter(pl.col("num_open") > 0, pl.col("busy_ns") < pl.col("next_ns"))
    )
    named = _rows(trace).select("rank").unique().collect()["rank"].implode()
    is_known = pl.col("rank").is_in(named)
    end = pl.when(pl.col("next_ns") < FAR_NS).then("next_ns")
    return gaps.with_columns(
        from_ns="busy_ns", to_ns=end,
        state=pl.when(is_known).then(pl.lit(IDLE)).otherwise(pl.lit(UNKNOWN)),
    ).select(COLUMNS)  # fmt: skip


def _token_points(trace: Trace, stays: pl.DataFrame) -> pl.DataFrame:
    """Claims and changes of a slot's tokens by stay and time, with what lies there from then on.

    A claim has the tokens that lay there before; `num_own` are those of the stay's request.
    """
    claims = stays.select("stay", *SLOT, "request", "from_ns", "to_ns", "step", "seq",
                          is_claim=pl.lit(value=True), since="step")  # fmt: skip
    changes = (
        trace.slot_tokens.with_row_index("ref")
        .drop_nulls(["rank", "slot", "ts_ns", "num_tokens"])
        .select("rank", pl.col("slot").cast(pl.Int64), "step", "seq", "ref", "num_tokens",
                from_ns=_clipped("ts_ns"), is_claim=pl.lit(value=False))
        .collect()
    )  # fmt: skip
    releases = stays.drop_nulls("to_ns").select(
        *SLOT, from_ns="to_ns", seq="to_seq", stay=pl.lit(None, pl.UInt32),
        is_claim=pl.lit(value=False), is_release=pl.lit(value=True),
    )  # fmt: skip
    points = pl.concat([releases, claims, changes], how="diagonal").sort(
        *SLOT, "from_ns", "seq", maintain_order=True
    )
    number = pl.when("is_release").then(-1).otherwise(pl.col("stay").cast(pl.Int64))
    points = points.with_columns(
        number.forward_fill().over(SLOT).alias("stay"),
        pl.col("num_tokens", "ref").forward_fill().over(SLOT),
    ).filter(pl.col("stay") >= 0, pl.col("is_release").is_null())
    of_stay = [pl.col(name).first().over("stay") for name in ("request", "to_ns", "since")]
    points = points.with_columns(*of_stay, pl.col("num_tokens").fill_null(0))
    return _with_own(trace, points)


def _with_own(trace: Trace, points: pl.DataFrame) -> pl.DataFrame:
    """Add `num_own`: the tokens that the request has computed in the slot by a point's step.

    At its claim these are the tokens that it came with; null without batch rows of the request.
    """
    by = [*SLOT, "request"]
    rows = (
        _rows(trace)
        .select("rank", pl.col("slot").cast(pl.Int64), "request", "step", row_step="step",
                came_with="num_computed", length=pl.col("num_computed") + pl.col("num_tokens"))
        .collect()
        .sort("step", maintain_order=True)
    )  # fmt: skip
    first = rows.select(*by, "came_with", since="step", first_step="step")
    ordered = points.with_row_index("at").sort("since", nulls_last=False, maintain_order=True)
    with_first = ordered.join_asof(
        first, on="since", by=by, strategy="forward", check_sortedness=False
    )
    with_last = (
        with_first.sort("step", nulls_last=False, maintain_order=True)
        .join_asof(rows.select(*by, "step", "row_step", "length"), on="step", by=by,
                   check_sortedness=False)
        .sort("at")
    )  # fmt: skip
    has_rows = pl.col("first_step").is_not_null()
    is_later = ~pl.col("is_claim") & (pl.col("row_step") >= pl.col("since"))
    own = pl.when(is_later).then("length").otherwise("came_with")
    return with_last.with_columns(has_rows=has_rows, num_own=own)
