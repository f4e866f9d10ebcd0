"""Spans and requests of OpenTelemetry as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from stepscope.ingest.frames import polars_schema
from stepscope.ingest.readers.otlp.collect import Collected, RequestSpan
from stepscope.ingest.readers.profile_tables import FORM, span_frame
from stepscope.ingest.schema import LIFECYCLE

SERVICE = "service"
PREFILLS = ("prefill_forward", "prefill_chunked_forward")
Row = dict[str, object]


def spans_of(found: Collected) -> tuple[pl.DataFrame, int]:
    """Spans as `span_frame` has them, on a track of their service and scope; and how many of them
    ended before they began."""
    length = pl.col("ends_ns") - pl.col("ts_ns")
    is_instant = pl.col("form") == "instant"
    is_endless = pl.col("ends_ns").is_null() & ~is_instant
    rows = (
        found.rows.frame()
        .join(_names(found.services, "resource", "service"), on="resource", how="left",
              maintain_order="left")
        .join(_names(found.scopes, "scope", "library"), on="scope", how="left",
              maintain_order="left")
    )  # fmt: skip
    track = pl.concat_str(pl.col("service").fill_null(SERVICE), "library", separator=" / ",
                          ignore_nulls=True)  # fmt: skip
    spans = rows.select(
        "rank", "name", "ts_ns", "args", track.alias("track"),
        length.clip(lower_bound=0).alias("dur_ns"),
        pl.when(is_endless).then(pl.lit("unfinished")).otherwise("form").cast(FORM).alias("form"),
    )  # fmt: skip
    return span_frame(spans), int(rows.select((length < 0).sum()).item())


def lifecycle_of(found: Collected) -> pl.DataFrame:
    """What happened to requests, in order of time."""
    rows = [row for span in found.requests.values() for row in _events(span)]
    rows += [row for request in found.own for row in request.rows]
    schema = polars_schema(LIFECYCLE)
    return pl.DataFrame(rows, schema=schema).sort("ts_ns", maintain_order=True)


def _events(span: RequestSpan) -> Iterator[Row]:
    if span.stages:
        yield from _events_of_stages(span)
        return
    request = span.request
    said: Row = {"rank": 0, "request": request.name}
    lengths = {"prompt_len": request.prompt_len, "max_tokens": request.max_tokens}
    yield said | lengths | {
        "event": "arrive", "ts_ns": span.begins, "priority": request.priority
    }  # fmt: skip
    ends = span.ends if request.took_ns is None else span.begins + request.took_ns
    since = {"admit": request.queued_ns, "first-token": request.first_token_ns}
    for event, after in since.items():
        # A latency that is longer than all of it took is of something else.
        if after is not None and (ends is None or span.begins + after <= ends):
            yield said | {"event": event, "ts_ns": span.begins + after}
    if ends is not None:
        ended = "finish" if span.failed is None else "error"
        yield said | {
            "event": ended, "ts_ns": max(ends, span.begins), "cause": span.failed,
            "num_generated": request.num_generated,
        }  # fmt: skip


def _events_of_stages(span: RequestSpan) -> Iterator[Row]:
    """Events at the begins and ends of the scheduler's spans; the request's own is the front end's.

    The front end receives the request when its span begins. The client has the first token after
    the latency that the attributes state, and the last one when the span ends.
    """
    request = span.request
    row: Row = {"rank": 0, "request": request.name}
    waited = span.stages.get("prefill_waiting")
    prefills = [span.stages[name] for name in PREFILLS if name in span.stages]
    decoded = span.stages.get("decode_forward")
    arrives = min(stage[0] for stage in span.stages.values())
    yield row | {"event": "receive", "ts_ns": min(span.begins, arrives)}
    yield row | {
        "event": "arrive", "ts_ns": arrives, "priority": request.priority,
        "prompt_len": request.prompt_len, "max_tokens": request.max_tokens,
    }  # fmt: skip
    admitted = [stage[0] for stage in prefills] or [stage[1] for stage in [waited] if stage]
    if admitted:
        yield row | {"event": "admit", "ts_ns": min(admitted)}
    if prefills:
        yield row | {"event": "first-token", "ts_ns": max(stage[1] for stage in prefills)}
    last = max(stage[1] for stage in span.stages.values())
    took = span.ends if request.took_ns is None else span.begins + request.took_ns
    if decoded is None and took is None:
        return
    first = request.first_token_ns
    if first is not None and prefills and (took is None or span.begins + first <= took):
        at_once = request.num_generated if span.begins + first >= last else None
        yield row | {
            "event": "deliver", "ts_ns": span.begins + first, "num_generated": at_once
        }  # fmt: skip
    yield row | {
        "event": "finish" if span.failed is None else "error", "ts_ns": last,
        "cause": span.failed, "num_generated": request.num_generated,
    }  # fmt: skip
    if took is not None and took >= last:
        yield row | {
            "event": "deliver", "ts_ns": took, "num_generated": request.num_generated
        }  # fmt: skip


def _names(names: Mapping[int, str], number: str, name: str) -> pl.DataFrame:
    schema = {number: pl.Int64, name: pl.String}
    return pl.DataFrame([*names.items()], schema=schema, orient="row")
