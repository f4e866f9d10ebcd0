"""Spans and requests of OpenTelemetry as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from stepscope.ingest.frames import polars_schema
from stepscope.ingest.readers.otlp.collect import Collected, RequestSpan
from stepscope.ingest.readers.profile_tables import FORM, span_frame
from stepscope.ingest.schema import LIFECYCLE

SERVICE = "service"
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


def _names(names: Mapping[int, str], number: str, name: str) -> pl.DataFrame:
    schema = {number: pl.Int64, name: pl.String}
    return pl.DataFrame([*names.items()], schema=schema, orient="row")
