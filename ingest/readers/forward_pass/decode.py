"""What a record of forward pass metrics tells: one iteration of a scheduler, or that it is idle.

{"version": 1, "worker_id": "..", "dp_rank": 0, "counter_id": 7, "wall_time": seconds,
 "scheduled_requests": {"num_prefill_requests", "sum_prefill_tokens", "var_prefill_length",
     "sum_prefill_kv_tokens", "num_decode_requests", "sum_decode_kv_tokens",
     "var_decode_kv_tokens"},
 "queued_requests": {the same but sum_prefill_kv_tokens}}

Tokens of prefill are those computed in the iteration, KV tokens those that it reads; queued decodes
are preempted requests. A scheduler that becomes idle sends a record of zeros, and another one every
second: a heartbeat.

The format: Dynamo, `components/src/dynamo/common/forward_pass_metrics.py`; SGLang,
`sglang/srt/observability/forward_pass_metrics.py`; vLLM, pull request 52061.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stepscope.ingest.readers.text.fields import Number, millis, whole

VERSION = 1
SCHEDULED, QUEUED = "scheduled_requests", "queued_requests"
LIMIT_WORKER_CHARS = 256
_LAST_TOKENS = 1 << 53
_LAST_RANK = 1 << 20
_PREFILLS, _DECODES, _TOKENS = "num_prefill_requests", "num_decode_requests", "sum_prefill_tokens"
# What columns of steps hold, and what says which iteration it was: no counters.
_IN_STEPS = {
    "": {"version", "dp_rank", "counter_id", "wall_time"},
    SCHEDULED: {_PREFILLS, _DECODES, _TOKENS},
}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """An iteration; what its record does not tell is None."""

    worker: str
    rank: int
    number: int | None
    dur_ns: int | None
    num_prefills: int | None
    num_decodes: int | None
    num_prefill_tokens: int | None
    num_queued: int | None
    numbers: dict[str, Number]

    @property
    def is_heartbeat(self) -> bool:
        """Whether nothing was scheduled, and no time went by."""
        return self.dur_ns == 0 and (self.num_prefills, self.num_decodes) == (0, 0)


def is_record(value: Any) -> bool:
    """Tell an object that says what was scheduled."""
    return isinstance(value, dict) and isinstance(value.get(SCHEDULED), dict)


def is_of_known_version(said: Json) -> bool:
    """Tell a record whose fields mean what is known; the first ones had no version."""
    return bool(said.get("version", VERSION) == VERSION)


def forward_pass(said: Json) -> ForwardPass:
    """What a record tells."""
    scheduled, queued = _part(said, SCHEDULED), _part(said, QUEUED)
    worker, waiting = (
        said.get("worker_id"),
        [whole(queued.get(_PREFILLS)), whole(queued.get(_DECODES))],
    )
    return ForwardPass(
        worker[:LIMIT_WORKER_CHARS] if isinstance(worker, str) else "",
        whole(said.get("dp_rank"), _LAST_RANK) or 0,
        whole(said.get("counter_id"), _LAST_TOKENS),
        _length(said.get("wall_time")),
        whole(scheduled.get(_PREFILLS)),
        whole(scheduled.get(_DECODES)),
        whole(scheduled.get(_TOKENS), _LAST_TOKENS),
        sum(num for num in waiting if num is not None) if None not in waiting else None,
        _numbers(said),
    )  # fmt: skip


def _part(said: Json, name: str) -> Json:
    part = said.get(name)
    return part if isinstance(part, dict) else {}


def _length(seconds: Any) -> int | None:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return millis(seconds * 1000) if is_number and abs(seconds) < 1 << 53 else None


def _numbers(said: Json) -> dict[str, Number]:
    """All other numbers of a record, those of its parts under `part.name`."""
    parts = {"": said, SCHEDULED: _part(said, SCHEDULED), QUEUED: _part(said, QUEUED)}
    return {
        f"{part}.{name}".lstrip(".")[:LIMIT_WORKER_CHARS]: Number(float(value), _unit(name))
        for part, fields in parts.items()
        for name, value in fields.items()
        if isinstance(name, str) and name not in _IN_STEPS.get(part, ()) and _is_number(value)
    }


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < 1e300


def _unit(name: str) -> str | None:
    if name.startswith("var_"):
        return None
    return "tokens" if name.endswith("_tokens") else "requests" if "requests" in name else None
