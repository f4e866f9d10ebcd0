"""Decode results of serving benchmarks: each request as its client measured it.

{"backend": "vllm", "request_rate": "inf", "duration": 5.1, "completed": 3,
    "input_lens": [100, ...], "output_lens": [10, ...],
    "ttfts": [0.1, ...], "itls": [[0.01, ...], ...],
    "start_times": [731.2, ...], "latencies": [0.2, ...], "errors": ["", ...]}

Lists have one element per request, in the order in which the requests were sent. Times are in
seconds; `start_times` come from a monotonic clock. vLLM writes one object, or one line per run with
`--append-result`; it has lists only with `--save-detailed` (`vllm/benchmarks/serve.py`). SGLang
writes one line per run; it has lists only with `--output-details`, and no start times
(`python/sglang/bench_serving.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.ingest.times import SECOND

TIMES = ("ttfts", "itls", "latencies")
TTFT, ITL, LATENCY = "time to first token", "mean time between tokens", "latency"
"""Counters of requests without a start, in seconds; the track is the request."""
LENGTHS = ("input_lens", "output_lens")
ABOUT_RUN = (
    "backend", "endpoint_type", "label", "model_id", "dataset_name", "num_prompts", "request_rate",
    "burstiness", "max_concurrency", "date", "duration", "completed", "failed",
)  # fmt: skip
"""Fields of the run itself that become its configuration."""
NOT_A_TIME = "values of requests that are not a time or a length, left out"
_LAST_S = 1 << 31
_MOST_TOKENS = 1 << 48
_LONGEST_CAUSE = 200
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as its client saw it. Times are durations; what is not in the file is None."""

    start_ns: int | None
    first_ns: int | None
    gaps_ns: tuple[int, ...] | None
    """Times between successive chunks of the response."""
    took_ns: int | None
    prompt_len: int | None
    num_tokens: int | None
    error: str | None

    @property
    def has_gap_per_token(self) -> bool:
        """Whether every chunk had one token, so that the time of each token is known."""
        return self.gaps_ns is not None and len(self.gaps_ns) + 1 == self.num_tokens


def about(result: Json) -> dict[str, Any]:
    """Return settings and totals of a run that are numbers or short texts."""
    plain = {key: result[key] for key in ABOUT_RUN if key in result}
    return {
        key: value if not isinstance(value, float) or math.isfinite(value) else str(value)
        for key, value in plain.items()
        if isinstance(value, int | float) or (isinstance(value, str) and len(value) < 256)
    }


def requests_of(result: Json, limit: int, skipped: Counter[str]) -> list[Request]:
    """Return the requests of a result, at most `limit`; none if it has only totals."""
    lists = {name: _list(result, name) for name in (*TIMES, *LENGTHS, "start_times", "errors")}
    num_requests = max((len(lists[name]) for name in (*TIMES, *LENGTHS)), default=0)
    if not any(lists[name] for name in TIMES):
        return []
    return [_request(lists, place, skipped) for place in range(min(num_requests, limit))]


def _list(result: Json, name: str) -> list[Any]:
    value = result.get(name)
    return value if isinstance(value, list) else []


def _request(lists: Mapping[str, list[Any]], place: int, skipped: Counter[str]) -> Request:
    def at(name: str) -> Any:
        return lists[name][place] if place < len(lists[name]) else None

    def duration(value: Any) -> int | None:
        if value is None:
            return None
        found = _nanoseconds(value)
        skipped[NOT_A_TIME] += found is None
        return found

    def length(value: Any) -> int | None:
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS:
            return value
        skipped[NOT_A_TIME] += 1
        return None

    error = _cause(at("errors"))
    gaps = at("itls")
    gaps_ns = [duration(gap) for gap in gaps] if isinstance(gaps, list) else None
    is_whole = gaps_ns is not None and None not in gaps_ns
    known_gaps = tuple(gap for gap in gaps_ns or () if gap is not None) if is_whole else None
    # A time of 0 means that the request got no token, or that its response was not streamed.
    first_ns = duration(at("ttfts")) or None
    num_tokens = length(at("output_lens"))
    took_ns = duration(at("latencies")) or None
    if took_ns is None and first_ns is not None and known_gaps is not None:
        is_over = bool(known_gaps) or num_tokens in {0, 1} or error is not None
        took_ns = first_ns + sum(known_gaps) if is_over else None
    return Request(
        duration(at("start_times")), first_ns, known_gaps, took_ns, length(at("input_lens")),
        num_tokens, error,
    )  # fmt: skip


def _nanoseconds(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value * SECOND) if 0 <= value < _LAST_S else None


def _cause(error: Any) -> str | None:
    """Return the last line of an error, which in a traceback names the exception."""
    if not isinstance(error, str) or not error.strip():
        return None
    return error.strip().splitlines()[-1].strip()[:_LONGEST_CAUSE]
