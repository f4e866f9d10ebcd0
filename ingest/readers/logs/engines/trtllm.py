"""What TensorRT-LLM writes of each iteration: a line of its log, or statistics as JSON lines.

[05/20/2026-23:24:41] [TRT-LLM] [I] iter = 1, global_rank = 0, rank = 0, ..., host_step_time =
    45.2ms, prev_device_step_time = N/A, timestamp = 2026-05-20 23:24:41, num_scheduled_requests: 1,
    states = {'num_ctx_requests': 1, 'num_ctx_tokens': 13694, 'num_generation_tokens': 0}
{"iter": 7, "iterLatencyMS": 12.5, "numActiveRequests": 3, "numQueuedRequests": 0, "kvCacheStats":
    {"maxNumBlocks": 100, "freeNumBlocks": 20, ...}, "inflightBatchingStats": {...}, ...}

Older ones say `elapsed_time = 0.045s` for the host's step. Statistics may stand in arrays and
objects, and as Python prints them. The time of a log line is that of its iteration's end.

The format: TensorRT-LLM, `tensorrt_llm/_torch/pyexecutor/py_executor.py` and
`cpp/include/tensorrt_llm/executor/types.h`.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

import msgspec

from stepscope.ingest.derive.step_tags import kind_of
from stepscope.ingest.readers.logs.split import STATISTIC, statistics_in
from stepscope.ingest.readers.text.collect import Line, LogRows
from stepscope.ingest.readers.text.fields import (
    LAST_COUNT,
    Number,
    fields,
    millis,
    number,
    samples,
    whole,
)

ITERATION, STATISTICS = "TensorRT-LLM iteration log", "TensorRT-LLM iteration statistics"
LAST_TOKENS = 1 << 48
_BEGIN = re.compile(r"\biter = (\d{1,15}), ")
_NO = "", "", ""
_STATE = re.compile(r"'(\w{1,64})': (\d{1,15})\b")
_COUNTERS = ("host_step_time", "prev_device_step_time", "kv_cache_util")
Json = dict[str, Any]


class TrtllmLines:
    """Reads iterations as steps, and the rest of what is said of them as counters."""

    name = "TensorRT-LLM"
    markers = ("'num_ctx_requests': ", "iterLatencyMS")

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read an iteration, or the statistics of one or (in a JSON list) of several."""
        if STATISTIC not in line.text:
            return self._iteration(line, rows)
        kept = list(statistics_in(_decoded(line.text)))
        for said in kept:
            self._statistics(said, line, rows)
        rows.read[STATISTICS] += len(kept[1:])  # beside the first, for which its line is counted
        return STATISTICS if kept else None

    def end(self, rows: LogRows) -> None:
        """Nothing stays open."""

    def _iteration(self, line: Line, rows: LogRows) -> str | None:
        match = _BEGIN.search(line.text)
        between, found, behind = line.text[match.end() :].partition("states = {") if match else _NO
        inside, closed, _ = behind.partition("}")
        if not match or not found or not closed:
            return None
        said = fields(
            between.replace("num_scheduled_requests: ", "num_scheduled_requests = "), " = "
        )
        states = {name: int(value) for name, value in _STATE.findall(inside)}
        context, tokens = states.get("num_ctx_requests"), states.get("num_generation_tokens")
        if context is None or context > LAST_COUNT or tokens is None:
            return None
        rank = said.get("global_rank") or said.get("rank") or ""
        label = rank if rank.isascii() and rank.isdigit() and len(rank) < 7 else ""
        source = rows.source(self.name, line, label, int(label or 0))
        scheduled = number(said.get("num_scheduled_requests", ""))
        present = number(said.get("currank_total_requests", "").partition("/")[0])
        host = number(said.get("host_step_time", ""))
        elapsed = number(said.get("elapsed_time", ""))
        took_ms = host.value if host else elapsed.value * 1000 if elapsed else None
        dur_ns = millis(took_ms)
        _, begins = rows.step(
            source,
            line,
            inferred=ITERATION,
            number=int(match[1]),
            dur_ns=dur_ns,
            is_end=True,
            kind=kind_of(context, tokens),
            num_prefill_reqs=context,
            num_prefill_tokens=states.get("num_ctx_tokens"),
            num_decode_reqs=_decodes(scheduled, context, tokens),
            num_decode_tokens=tokens,
            num_running=present.count if present and present.value <= LAST_COUNT else None,
        )
        told = {name: said[name] for name in _COUNTERS if name in said}
        rows.counters(source, begins + (dur_ns or 0), samples(told))
        return ITERATION

    def _statistics(self, said: Json, line: Line, rows: LogRows) -> None:
        batch, blocks = _part(said, "inflightBatchingStats"), _part(said, "kvCacheStats")
        context, generation = (
            whole(batch.get("numContextRequests")),
            whole(batch.get("numGenRequests")),
        )
        rank = whole(said.get("attentionDpRank"), 1 << 20)
        source = rows.source(self.name, line, "" if rank is None else str(rank), rank or 0)
        time = said.get("timestamp")
        dur_ns = millis(said.get("iterLatencyMS"))
        is_known = context is not None and generation is not None
        _, begins = rows.step(
            source,
            line,
            inferred=STATISTICS,
            number=whole(said.get("iter"), LAST_TOKENS),
            dur_ns=dur_ns,
            is_end=True,
            at=rows.time(source, line, time if isinstance(time, str) else ""),
            kind=kind_of(context or 0, generation or 0) if is_known else None,
            num_prefill_reqs=context,
            num_prefill_tokens=whole(batch.get("numCtxTokens"), LAST_TOKENS),
            num_decode_reqs=generation,
            num_decode_tokens=None if _part(said, "specDecodingStats") else generation,
            num_waiting=whole(said.get("numQueuedRequests")),
            num_running=whole(said.get("numActiveRequests")),
            kv_blocks_free=whole(blocks.get("freeNumBlocks"), LAST_TOKENS),
            kv_blocks_total=whole(blocks.get("maxNumBlocks"), LAST_TOKENS),
        )
        rows.counters(source, begins + (dur_ns or 0), _numbers(said))


def _decoded(text: str) -> object:
    """What a line holds from its first bracket on, or from the next, where that is a stamp's."""
    places = sorted(at for at in map(text.find, "[{") if at >= 0)
    return next(filter(None, (_decoded_from(text, at) for at in places)), None)


def _decoded_from(text: str, begin: int) -> object:
    """What begins there: JSON, or an object as Python prints it; None where it is neither."""
    try:
        if f"'{STATISTIC}'" not in text:
            return msgspec.json.decode(text[begin:])
        with warnings.catch_warnings(action="ignore"):  # of what Python thinks of its escapes
            return json.loads(json.dumps(ast.literal_eval(text[begin:])))
    except (msgspec.DecodeError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _decodes(scheduled: Number | None, context: int, tokens: int) -> int | None:
    """Requests in decode: those scheduled that are not in prefill, if that can be.

    Layouts differ in which iteration the number of scheduled requests is about.
    """
    if not tokens:
        return 0
    count = scheduled.count if scheduled else None
    return count - context if count and context < count <= context + tokens else None


def _part(said: Json, name: str) -> Json:
    part = said.get(name)
    return part if isinstance(part, dict) else {}


def _numbers(said: Json) -> dict[str, Number]:
    """All numbers of the statistics, with those of its parts under `part.name`."""
    parts = {"": said} | {f"{name}.": part for name, part in said.items() if isinstance(part, dict)}
    return {
        f"{head}{name}"[:256]: Number(float(value), _unit(name))
        for head, part in parts.items()
        for name, value in part.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    }


def _unit(name: str) -> str | None:
    return "ms" if name.endswith("MS") else "bytes" if name.endswith("MemUsage") else None
