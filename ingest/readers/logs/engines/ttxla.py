"""Telemetry of tt-xla's vLLM plug-in as JSON lines: what its scheduler decides and its runner does.

{"schema":1,"layer":"scheduler","ts":s,"step":7,"num_running":3,"max_running":32,"num_waiting":1,
    "num_free_blocks":90,"num_total_blocks":100,"prefill_new":1,"prefill_resumed":0,
    "prefill_partial":0,"running_scheduled":0,"preempted":0,"decode_gated":true,
    "decodes_displaced":2,"total_scheduled_tokens":128,...}
{"schema":1,"layer":"runner","event":"step","ts":s,"step":7,"num_prefilling":1,"num_decoding":2,
    "prefill_passes":1,"decode_passes":1,"emitted_tokens":2,"step_dt_s":0.03,...}
{"schema":1,"layer":"runner","event":"request_admitted","request_id":"a","slot":0,"prompt_len":..}
{"schema":1,"layer":"runner","event":"request_completed","request_id":"a","output_len":9,...}

The scheduler runs prefill first: where `decode_gated`, the batch is prefills alone, and what is
scheduled of running requests goes on with a prompt; else it is decodes alone. A line of the
scheduler is written when a batch is formed; one of the runner when its step has ended, and the time
since the last one is taken for its length. The two layers are of two processes, and each counts its
own steps: in one file they are shown as two ranks.

The format: tt-xla, `integrations/vllm_plugin/vllm_tt/telemetry.py`.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import msgspec

from stepscope.ingest.derive.step_tags import kind_of
from stepscope.ingest.readers.text.collect import Line, LogRows, Source
from stepscope.ingest.readers.text.fields import Number, whole
from stepscope.ingest.readers.text.times import Stamp
from stepscope.ingest.times import SECOND

SCHEDULED, RAN, REQUESTS = (
    "tt-xla scheduler records", "tt-xla runner steps", "tt-xla runner requests",
)  # fmt: skip
VERSION = 1
UNNAMED = "preempted requests that the log does not name"
MOST_PREEMPTED = 65_536
LAST_SECOND = 1 << 32
MOST_S = 10
"""A longer time between two steps is taken for a runner without work."""
_LAST_TOKENS = 1 << 48
_LIMIT_CHARS = 256
_EVENTS = {"request_admitted": "admit", "request_completed": "finish"}
_PREFILLS = ("prefill_new", "prefill_resumed")
# What columns of steps hold, and what says which record it is: no counters.
_IN_STEPS = {
    "schema", "ts", "step", "num_waiting", "num_running", "num_free_blocks", "num_total_blocks",
    "step_dt_s", "num_prefilling", "num_decoding",
}  # fmt: skip
Json = dict[str, Any]


class TtxlaLines:
    """Reads what a scheduler decided and a runner ran as steps, and what became of requests."""

    name = "tt-xla"
    markers = tuple(
        f'"layer":{space}"{layer}"' for layer in ("scheduler", "runner") for space in ("", " ")
    )

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read a record."""
        said = _decoded(line.text)
        layer, seconds = said.get("layer"), said.get("ts")
        if said.get("schema") != VERSION or not _is_time(seconds):
            return None
        source = rows.source(self.name, line, str(layer), 0)
        source.stamps["dated"] += 1
        rows.knows_year = True
        stamp = Stamp(_ns(seconds), 1)
        source.last_ns = stamp.ns
        if layer == "scheduler":
            return _scheduled(said, source, line, stamp, rows)
        if said.get("event") == "step":
            return _ran(said, source, line, stamp, rows)
        return _request(said, source, stamp, rows)

    def end(self, rows: LogRows) -> None:
        """Nothing stays open."""


def _decoded(text: str) -> Json:
    try:
        said = msgspec.json.decode(text[max(text.find("{"), 0) :])
    except (msgspec.DecodeError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _is_time(seconds: Any) -> TypeGuard[float]:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return is_number and math.isfinite(seconds) and 0 <= seconds < LAST_SECOND


def _ns(seconds: float) -> int:
    """Nanoseconds, to the last digit that the number has."""
    return int(seconds) * SECOND + round((seconds - int(seconds)) * SECOND)


def _scheduled(said: Json, source: Source, line: Line, stamp: Stamp, rows: LogRows) -> str:
    new = [whole(said.get(name)) for name in _PREFILLS]
    going_on = whole(said.get("running_scheduled"))
    gated = said.get("decode_gated")
    is_known = None not in new and going_on is not None and isinstance(gated, bool)
    prefills = sum(num or 0 for num in new) + (going_on or 0) * bool(gated) if is_known else None
    decodes = (0 if gated else going_on) if is_known else None
    tokens = whole(said.get("total_scheduled_tokens"), _LAST_TOKENS)
    _, begins = rows.step(
        source,
        line,
        inferred=SCHEDULED,
        number=whole(said.get("step"), _LAST_TOKENS),
        at=stamp,
        kind=kind_of(prefills or 0, decodes or 0) if is_known else None,
        num_prefill_reqs=prefills,
        num_decode_reqs=decodes,
        num_prefill_tokens=(tokens if prefills else 0) if is_known else None,
        num_decode_tokens=(tokens if decodes else 0) if is_known else None,
        num_waiting=whole(said.get("num_waiting")),
        num_running=whole(said.get("num_running")),
        kv_blocks_free=whole(said.get("num_free_blocks"), _LAST_TOKENS),
        kv_blocks_total=whole(said.get("num_total_blocks"), _LAST_TOKENS),
    )
    _preempted(whole(said.get("preempted")) or 0, source, begins, rows)
    rows.counters(source, begins, _numbers(said))
    return SCHEDULED


def _preempted(num: int, source: Source, ts_ns: int, rows: LogRows) -> None:
    named = min(num, MOST_PREEMPTED)
    rows.inferred[UNNAMED] += named
    if num > named:
        rows.skipped[f"preemptions beyond {MOST_PREEMPTED:,} in a line"] += num - named
    for _ in range(named):
        rows.add("lifecycle", source, ts_ns, event="preempt", step=source.step)


def _ran(said: Json, source: Source, line: Line, stamp: Stamp, rows: LogRows) -> str:
    """A step of the runner: who is in the batch, not what of it was computed, is told."""
    passes = [whole(said.get(name)) for name in ("prefill_passes", "decode_passes")]
    is_known = None not in passes
    rows.step(
        source,
        line,
        inferred=RAN,
        number=whole(said.get("step"), _LAST_TOKENS),
        at=stamp,
        dur_ns=_since_the_last(said),
        is_end=True,
        kind=kind_of(passes[0] or 0, passes[1] or 0) if is_known else None,
        num_prefill_reqs=whole(said.get("num_prefilling")),
        num_decode_reqs=whole(said.get("num_decoding")),
        num_running=whole(said.get("slots_occupied")),
    )
    rows.counters(source, stamp.ns, _numbers(said))
    return RAN


def _since_the_last(said: Json) -> int | None:
    """The time since the step before ended; None where it is not told, or is over MOST_S."""
    seconds = said.get("step_dt_s")
    return round(seconds * 1e9) if _is_time(seconds) and seconds < MOST_S else None


def _request(said: Json, source: Source, stamp: Stamp, rows: LogRows) -> str | None:
    event, request = _EVENTS.get(str(said.get("event"))), said.get("request_id")
    if event is None or not isinstance(request, str):
        return None
    if said.get("readmission") is True:
        event = "resume"
    generated = whole(said.get("output_len"), _LAST_TOKENS) if event == "finish" else None
    rows.add(
        "lifecycle", source, stamp.ns, request=request[:_LIMIT_CHARS], event=event,
        num_generated=generated,
    )  # fmt: skip
    return REQUESTS


def _numbers(said: Json) -> dict[str, Number]:
    return {
        name[:_LIMIT_CHARS]: Number(float(value), None)
        for name, value in said.items()
        if name not in _IN_STEPS and isinstance(value, int | float) and abs(value) < 1e300
    }
