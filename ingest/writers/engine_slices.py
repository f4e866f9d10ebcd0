"""What an engine recorded, as slices and counters that a timeline viewer can show.

Every function gives a frame with rank, track (`process / thread`), name, category, form, ts_ns,
dur_ns and args (JSON text). What was inferred from spans is left out: the spans are shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.ingest.derive.buffer_contents import buffer_contents
from stepscope.ingest.derive.collectives.calls import BLOCKED, calls
from stepscope.ingest.derive.kv_blocks import block_spans
from stepscope.ingest.derive.queue_positions import queue_positions
from stepscope.ingest.derive.segments import segment_times
from stepscope.ingest.derive.slot_spans import IDLE, old_tokens, slot_spans
from stepscope.ingest.derive.states import (
    DELIVERY,
    FRONT_END,
    PREEMPTED,
    WAITING,
    request_states,
    step_times,
    with_held,
)
from stepscope.ingest.trace import Trace

FIELDS = ("rank", "track", "name", "category", "form", "ts_ns", "dur_ns", "args")


def engine_slices(trace: Trace) -> list[pl.DataFrame]:
    """Slices of steps and their segments, requests, core groups, collectives, slots, the waiting
    queue, KV blocks and what buffers held; instants of decisions and of accesses.
    """
    makers = (
        _steps,
        _segments,
        _batch_rows,
        _states,
        _events,
        _slots,
        _old_tokens,
        _queue,
        _core_spans,
        _pending,
        _held,
        _collectives,
        _kv_blocks,
        _decisions,
        _accesses,
        _contents,
    )
    return [frame for make in makers if len(frame := make(trace).select(FIELDS).collect())]


def engine_counters(trace: Trace) -> pl.DataFrame:
    """Queue lengths, tokens and free KV blocks after each step's batch was formed."""
    measures = {
        "num_waiting": "waiting",
        "num_running": "running",
        "kv_blocks_free": "KV blocks free",
        "num_prefill_tokens": "prefill tokens",
        "num_decode_tokens": "decode tokens",
    }
    steps = trace.steps.filter(pl.col("inferred").is_null()).select("rank", "ts_ns", *measures)
    long = steps.rename(measures).unpivot(
        index=["rank", "ts_ns"], variable_name="name", value_name="value"
    )
    return (
        long.drop_nulls("value")
        .select(
            "rank",
            "ts_ns",
            pl.lit("engine").alias("track"),
            "name",
            pl.col("value").cast(pl.Float64),
        )
        .sort("rank", "name", "ts_ns", maintain_order=True)
        .collect()
    )


def _slice(
    frame: pl.LazyFrame, track: pl.Expr, name: pl.Expr, category: str, shown: Sequence[str]
) -> pl.LazyFrame:
    """Give the frame the columns of a slice; `shown` are those that become its arguments."""
    return frame.with_columns(
        track.alias("track"),
        name.alias("name"),
        pl.lit(category).alias("category"),
        _form().alias("form"),
        _json(shown).alias("args"),
    )


def _form() -> pl.Expr:
    return pl.when(pl.col("dur_ns").is_null()).then(pl.lit("instant")).otherwise(pl.lit("slice"))


def _json(columns: Sequence[str]) -> pl.Expr:
    """The columns of a row that are known, as a JSON object."""
    whole = pl.struct(columns).struct.json_encode()
    return whole.str.replace_all(r',"\w+":null', "").str.replace(r'^\{"\w+":null,?', "{")


def _number(name: str) -> pl.Expr:
    return pl.col(name).fill_null(0)


def _steps(trace: Trace) -> pl.LazyFrame:
    steps = trace.steps.filter(pl.col("inferred").is_null())
    shown = [
        name
        for name in steps.collect_schema()
        if name not in ("rank", "ts_ns", "dur_ns", "inferred")
    ]
    kind = pl.col("kind")
    is_halved = pl.col("executed_path").str.contains(r"\btbo\b")
    tbo = pl.when(is_halved).then(pl.lit(" tbo=1")).otherwise(pl.lit(""))
    tag = (
        pl.when(kind == "prefill")
        .then(
            pl.format(
                "prefill[bs={} tok={}{}]",
                _number("num_prefill_reqs"),
                _number("num_prefill_tokens"),
                tbo,
            )
        )
        .when(kind == "decode")
        .then(
            pl.format(
                "decode[bs={} tok={}{}]",
                _number("num_decode_reqs"),
                _number("num_decode_tokens"),
                tbo,
            )
        )
        .when(kind == "mixed")
        .then(
            pl.format(
                "mixed[n_p={} n_d={}{}]",
                _number("num_prefill_tokens"),
                _number("num_decode_tokens"),
                tbo,
            )
        )
        .otherwise(kind)
    )
    return _slice(
        steps, pl.lit("engine / steps"), pl.coalesce("tag", tag, pl.lit("step")), "step", shown
    )


def _segments(trace: Trace) -> pl.LazyFrame:
    """The parts of a batch; `division` says how a step's time was divided among them, if it was."""
    times = segment_times(trace).with_columns(
        ts_ns="from_ns", dur_ns=pl.col("to_ns") - pl.col("from_ns")
    )
    numbered = trace.segments.with_row_index("ref").drop("rank", "step", "ts_ns", "segment")
    rows = times.join(numbered, on="ref", how="left", maintain_order="left")
    shown = ("step", "segment", "first_row", "num_rows", "num_tokens", "executed_path", "division")
    name = pl.format("{} {}", pl.col("phase").fill_null("segment"), _number("num_tokens"))
    slices = _slice(rows, pl.lit("engine / segments"), name, "segment", shown)
    return slices.with_columns(_unfinished())


def _request_track() -> pl.Expr:
    return pl.format("requests / {}", "request")


def _batch_rows(trace: Trace) -> pl.LazyFrame:
    """A row lasts as long as its step runs, which may begin later than the batch was formed."""
    times = step_times(trace).select("rank", "step", "from_ns", "to_ns")
    rows = trace.batch_rows.join(
        times, on=["rank", "step"], how="left", maintain_order="left"
    ).with_columns(
        ts_ns=pl.coalesce("from_ns", "ts_ns"), dur_ns=pl.col("to_ns") - pl.col("from_ns")
    )
    shown = (
        "step",
        "row",
        "slot",
        "num_tokens",
        "num_computed",
        "num_cached",
        "prompt_len",
        "is_final_chunk",
    )
    phase = pl.when("is_recompute").then(pl.lit("recompute")).otherwise("phase")
    return _slice(
        rows, _request_track(), pl.format("{} {}", phase, "num_tokens"), "batch row", shown
    )


def _states(trace: Trace) -> pl.LazyFrame:
    """What a request is in between its events: waiting, or preempted until it is let in again."""
    numbered = trace.lifecycle.with_row_index("ref")
    about = numbered.select("ref", "cause", "by_request", "queue_index")
    waits = (
        request_states(numbered)
        .filter(pl.col("state").is_in([FRONT_END, WAITING, PREEMPTED, DELIVERY]))
        .with_columns(ts_ns="from_ns", dur_ns=pl.col("to_ns") - pl.col("from_ns"))
        .join(about, on="ref", how="left", maintain_order="left")
    )
    shown = ("step", "cause", "by_request", "queue_index")
    slices = _slice(waits, _request_track(), pl.col("state"), "request state", shown)
    return slices.with_columns(_unfinished())


def _events(trace: Trace) -> pl.LazyFrame:
    events = trace.lifecycle.with_columns(pl.lit(None, pl.Int64).alias("dur_ns"))
    shown = (
        "step",
        "cause",
        "by_request",
        "queue_index",
        "prompt_len",
        "max_tokens",
        "num_generated",
        "external_id",
    )
    return _slice(events, _request_track(), pl.col("event"), "lifecycle", shown)


def _slots(trace: Trace) -> pl.LazyFrame:
    """Who is in each slot, and what it does there."""
    spans = slot_spans(trace).lazy().with_columns(ts_ns="from_ns", dur_ns=_lasts())
    state = pl.col("state").replace(IDLE, "in no batch")
    name = pl.format("{} {}", pl.col("request").fill_null("unknown request"), state)
    shown = ("request", "state")
    slices = _slice(spans, pl.format("slots / slot {}", "slot"), name, "slot", shown)
    return slices.with_columns(_unfinished())


def _old_tokens(trace: Trace) -> pl.LazyFrame:
    """Tokens that an earlier request left in a slot that the next one uses."""
    spans = old_tokens(trace).lazy().with_columns(ts_ns="from_ns", dur_ns=_lasts())
    track = pl.format("slots / slot {} / old tokens", "slot")
    shown = ("request", "num_tokens", "num_own")
    return _slice(spans, track, pl.lit("old tokens"), "slot", shown).with_columns(_unfinished())


def _queue(trace: Trace) -> pl.LazyFrame:
    """Who is at each position of a waiting queue."""
    spans = queue_positions(trace).lazy().with_columns(ts_ns="from_ns", dur_ns=_lasts())
    queue = pl.when(pl.col("queue").is_not_null()).then(pl.format("{} / ", "queue"))
    track = pl.format("waiting queue / {}position {}", queue.otherwise(pl.lit("")), "position")
    name = pl.col("request").fill_null("unknown request")
    slices = _slice(spans, track, name, "queue position", ("request", "position"))
    return slices.with_columns(_unfinished())


def _lasts() -> pl.Expr:
    return pl.col("to_ns") - pl.col("from_ns")


_CORE = ("core group {} / core {} {}", "group", "core", pl.col("core_kind").fill_null(""))


def _blocks(trace: Trace) -> pl.LazyFrame:
    named = trace.tasks.select("rank", "task", task_name="name").unique(
        ["rank", "task"], keep="first", maintain_order=True
    )
    return trace.core_spans.join(named, on=["rank", "task"], how="left", maintain_order="left")


_BLOCK_NAME = pl.format("{} [{}]", pl.coalesce("task_name", pl.format("task {}", "task")), "block")
_BLOCK_SHOWN = (
    "step",
    "task",
    "block",
    "shape",
    "slot",
    "ready_ns",
    "dispatch_ns",
    "end_ns",
    "thread",
)


def _core_spans(trace: Trace) -> pl.LazyFrame:
    blocks = _blocks(trace).with_columns((pl.col("end_ns") - pl.col("ts_ns")).alias("dur_ns"))
    slices = _slice(blocks, pl.format(*_CORE), _BLOCK_NAME, "task block", _BLOCK_SHOWN)
    return slices.with_columns(_unfinished())


def _unfinished() -> pl.Expr:
    form = pl.when(pl.col("dur_ns").is_null()).then(pl.lit("unfinished")).otherwise("form")
    return form.alias("form")


def _pending(trace: Trace) -> pl.LazyFrame:
    """A block behind another one, from its dispatch until it has the core to itself."""
    return _not_begun(
        trace, "given_ns", "held_ns", _CORE[0] + " / pending", _BLOCK_NAME, "pending block"
    )


def _held(trace: Trace) -> pl.LazyFrame:
    """A block that has a core to itself and has not begun."""
    name = pl.format("held for {}", _BLOCK_NAME)
    return _not_begun(trace, "held_ns", "ts_ns", _CORE[0], name, "held core")


def _not_begun(
    trace: Trace, since: str, until: str, track: str, name: pl.Expr, category: str
) -> pl.LazyFrame:
    lasts = pl.col(until) - pl.col(since)
    waits = with_held(_blocks(trace)).filter(lasts > 0).with_columns(ts_ns=since, dur_ns=lasts)
    shown = ("step", "task", "block", "shape")
    return _slice(waits, pl.format(track, *_CORE[1:]), name, category, shown)


def _collectives(trace: Trace) -> pl.LazyFrame:
    """Calls by their group; one that never returned is open until the end of the file."""
    recorded = calls(trace).lazy().with_columns(dur_ns=pl.col("to_ns") - pl.col("from_ns"))
    track = pl.format(
        "collectives / {}", pl.when(pl.col("group") != "").then("group").otherwise(pl.lit("all"))
    )
    shown = (
        "step",
        "ordinal",
        "dtype",
        "num_elements",
        "num_bytes",
        "expected_ranks",
        "command",
        "slot",
        "mark",
    )
    never_returned = pl.when(fate=BLOCKED).then(pl.lit("unfinished")).otherwise("form")
    slices = _slice(recorded, track, pl.col("op"), "collective", shown)
    return slices.with_columns(form=never_returned)


def _kv_blocks(trace: Trace) -> pl.LazyFrame:
    """A track for each KV block: who owned it, and when only the prefix cache could find it."""
    spans = block_spans(trace)
    about = trace.allocations.with_row_index("ref").select(
        "ref", "step", "generation", "group", "block_hash"
    )
    rows = (
        spans.lazy()
        .join(about, on="ref", how="left", maintain_order="left")
        .with_columns(ts_ns="from_ns", dur_ns=pl.col("to_ns") - pl.col("from_ns"))
    )
    owner = pl.coalesce("owner", pl.when("is_cached").then(pl.lit("cached")), pl.lit("unknown"))
    shown = ("step", "generation", "group", "block_hash")
    slices = _slice(rows, pl.format("KV blocks / block {}", "id"), owner, "KV block", shown)
    return slices.with_columns(_unfinished())


def _decisions(trace: Trace) -> pl.LazyFrame:
    decided = trace.decisions.with_columns(pl.lit(None, pl.Int64).alias("dur_ns"))
    name = pl.format("{} {} {}", "verdict", "subject_kind", "subject")
    shown = ("step", "reason", "resource", "needed", "available", "holder", "instead", "thread")
    return _slice(decided, pl.lit("engine / decisions"), name, "decision", shown)


_ACCESS_SHOWN = ("step", "op", "buffer", "first", "last", "stream", "segment", "epoch", "event")


def _accesses(trace: Trace) -> pl.LazyFrame:
    """An instant for each access: it is told when it was issued, not how long it took."""
    rows = trace.accesses.drop_nulls("stream").with_columns(dur_ns=pl.lit(None, pl.Int64))
    what = pl.coalesce("buffer", "event", pl.lit("")).fill_null("")
    name = pl.format("{} {}", pl.col("op").fill_null("access"), what).str.strip_chars_end()
    track = pl.format("streams / {}", "stream")
    return _slice(rows, track, name, "access", _ACCESS_SHOWN)


def _contents(trace: Trace) -> pl.LazyFrame:
    """What each buffer held until its last read, and for how long that was needed and overwritten.

    `buffer_contents` says what that is.
    """
    has_times = trace.manifest.clock.has_times
    derived = buffer_contents(trace.accesses, trace.segments, has_times=has_times)
    contents = derived.contents.lazy()
    epoch = pl.when(pl.col("epoch").is_not_null()).then(pl.format("epoch {}", "epoch"))
    written = pl.format("written by {}", "stream")
    return pl.concat(
        _slice(
            contents.drop_nulls(since)
            .select("ref", ts_ns=since, dur_ns=pl.col(until) - pl.col(since))
            .join(trace.accesses.with_row_index("ref").drop("ts_ns"), on="ref"),
            pl.format("buffers / {}", "buffer"),
            name,
            category,
            _ACCESS_SHOWN,
        )
        for since, until, name, category in (
            ("from_ns", "to_ns", pl.coalesce(epoch, written), "buffer contents"),
            ("lost_from_ns", "lost_to_ns", pl.lit("overwritten"), "overwritten contents"),
        )
    )
