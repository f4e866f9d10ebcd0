"""Spans of requests: one for each, with what happened to it as events, and one for each phase.

They are called as vLLM calls its own (`vllm/tracing`): `llm_request`, of the kind *server*, with
`gen_ai.*`; phases lie within it. Names of attributes:
https://opentelemetry.io/docs/specs/semconv/gen-ai/, and `ingest/readers/otlp/names.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.app.otel.laid_out import LaidOut
from stepscope.app.otel.phases import request_phases
from stepscope.app.otel.telemetry import Event, Span, Value
from stepscope.ingest.derive.states import BEFORE, ENDS, REQUEST
from stepscope.ingest.readers.otlp import names
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

NAME = "llm_request"
AT_A_TIME = 4_096
FAILURES = ("error", "reject")
_ABOUT = ("rank", "request", "event", "ts_ns")
_USE = {
    "input": ("input_tokens", "prompt_tokens"),
    "output": ("output_tokens", "completion_tokens"),
}
"""What the conventions call it, and what engines do."""
Row = Mapping[str, Any]


def requests_of(trace: Trace, laid: LaidOut) -> pl.DataFrame:
    """A row for each request, in order of its first event: rank, request, `turn`, events, phases.

    An id that is used again after its request had ended is another request, with another turn.
    """
    events = _in_turns(laid.lifecycle)
    columns = [name for name in events.collect_schema() if name not in (*REQUEST, "turn")]
    told = (
        events.group_by(*REQUEST, "turn", maintain_order=True)
        .agg(pl.struct(columns).alias("events"), first_ns=pl.col("ts_ns").min())
        .sort("first_ns", *REQUEST, maintain_order=True)
        .collect()
    )
    phases = request_phases(trace).sort("from_ns")
    turns = told.select(*REQUEST, "turn", "first_ns").sort("first_ns")
    of_turn = (
        phases.join_asof(turns, left_on="from_ns", right_on="first_ns", by=REQUEST,
                         check_sortedness=False)
        .group_by(*REQUEST, "turn", maintain_order=True)
        .agg(pl.struct("phase", "from_ns", "to_ns").alias("phases"))
    )  # fmt: skip
    return told.join(of_turn, on=[*REQUEST, "turn"], how="left", maintain_order="left")


def _in_turns(lifecycle: pl.LazyFrame) -> pl.LazyFrame:
    event = pl.col("event")
    has_ended = (
        pl.when(event.is_in(ENDS)).then(True).when(event != "deliver").then(False).otherwise(None)
    )
    began_again = event.is_in(BEFORE) & pl.col("_ended").shift(1).over(REQUEST).fill_null(
        value=False
    )
    return (
        lifecycle.sort("ts_ns", maintain_order=True)
        .with_columns(event.cast(pl.String), _ended=has_ended.forward_fill().over(REQUEST))
        .with_columns(turn=began_again.cast(pl.Int32).cum_sum().over(REQUEST))
        .drop("_ended")
    )


def spans_of(requests: pl.DataFrame, laid: LaidOut) -> Iterator[Span]:
    """The spans of the requests that `requests_of` gave, a request's before its phases'."""
    for chunk in requests.iter_slices(AT_A_TIME):
        for row in chunk.iter_rows(named=True):
            yield from _Request(row, laid).spans()


@dataclass(frozen=True, slots=True)
class _Request:
    """A request whose spans are to be told."""

    row: Row
    laid: LaidOut

    def spans(self) -> Iterator[Span]:
        rank, request, turn = (self.row[name] for name in (*REQUEST, "turn"))
        whole = repr((rank, request, turn)).encode("utf-8", "surrogatepass")
        trace_id = hashlib.blake2b(self.laid.identity + whole, digest_size=16).digest()
        span_id = hashlib.blake2b(trace_id, digest_size=8).digest()
        yield self._whole(trace_id, span_id)
        phases = self.row["phases"] or ()
        for number, phase in enumerate(phases):
            own = hashlib.blake2b(trace_id + number.to_bytes(8), digest_size=8).digest()
            yield self._of_phase(phase, trace_id, own, span_id)

    def _of_phase(self, phase: Row, trace_id: bytes, own: bytes, parent: bytes) -> Span:
        ends = phase["to_ns"]
        said: dict[str, Value] = {
            names.REQUEST: self.row["request"], names.RANK: self.row["rank"],
            names.PHASE: phase["phase"],
        }  # fmt: skip
        if ends is None:
            said[names.IS_OPEN] = True
        begins = phase["from_ns"]
        last = max(begins, self.laid.ends_ns) if ends is None else ends
        return Span(trace_id, own, parent, phase["phase"], self.laid.unix_ns(begins),
                    self.laid.unix_ns(last), said)  # fmt: skip

    def _whole(self, trace_id: bytes, span_id: bytes) -> Span:
        events = self.row["events"]
        at = {each["event"]: each for each in reversed(events)}
        ended = next((at[event] for event in ENDS if event in at), None)
        said: dict[str, Value] = {names.REQUEST: self.row["request"], names.RANK: self.row["rank"]}
        said |= _asked(events) | _latencies(at, ended)
        failed = None
        if ended is None:
            said[names.IS_OPEN] = True
        else:
            said[names.CAME_TO] = ended["event"]
            if ended["event"] in FAILURES:
                failed = ended["cause"] or ended["event"]
                said["error.type"] = ended["event"]
        first = events[0]["ts_ns"]
        last = max(self.laid.ends_ns if ended is None else first, events[-1]["ts_ns"])
        return Span(
            trace_id, span_id, None, NAME, self.laid.unix_ns(first), self.laid.unix_ns(last), said,
            tuple(self._event(each) for each in events), failed,
        )  # fmt: skip

    def _event(self, row: Row) -> Event:
        said = {
            f"{names.PREFIX}{name}": value
            for name, value in row.items()
            if value is not None and name not in _ABOUT
        }
        return Event(row["event"], self.laid.unix_ns(row["ts_ns"]), said)


def _asked(events: list[Row]) -> dict[str, Value]:
    """What was asked for, and how many tokens it came to, as far as an event says so."""
    first = {
        name: next((row[name] for row in events if row[name] is not None), None)
        for name in ("prompt_len", "max_tokens", "priority")
    }
    generated = next(
        (row["num_generated"] for row in reversed(events) if row["num_generated"] is not None), None
    )
    said = {
        **{f"gen_ai.usage.{name}": first["prompt_len"] for name in _USE["input"]},
        **{f"gen_ai.usage.{name}": generated for name in _USE["output"]},
        "gen_ai.request.max_tokens": first["max_tokens"],
        "gen_ai.request.priority": first["priority"],
    }
    return {name: value for name, value in said.items() if value is not None}


def _latencies(at: Mapping[str, Row], ended: Row | None) -> dict[str, Value]:
    """How long it took to be let in, to its first token, and in all, from when it arrived."""
    if "arrive" not in at:
        return {}
    arrived = at["arrive"]["ts_ns"]
    until = {"time_in_queue": at.get("admit"), "time_to_first_token": at.get("first-token"),
             "e2e": ended}  # fmt: skip
    return {
        f"gen_ai.latency.{name}": (row["ts_ns"] - arrived) / SECOND
        for name, row in until.items()
        if row is not None and row["ts_ns"] >= arrived
    }
