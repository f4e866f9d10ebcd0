"""Rows of small profiles, as tests write them."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def kernel(name: str, ts_ns: int, dur_ns: int, stream: int = 7, **others: object) -> Row:
    """A kernel on a stream of the first GPU."""
    track = f"python GPU {others.pop('gpu', 0)} / stream {stream}"
    timed = {"ts_ns": ts_ns, "dur_ns": dur_ns, "form": "slice"}
    return {"track": track, "name": name, "category": "kernel", **timed, **others}


def call(name: str, ts_ns: int, dur_ns: int, **others: object) -> Row:
    """A call of the runtime on a thread."""
    timed = {"ts_ns": ts_ns, "dur_ns": dur_ns, "form": "slice"}
    track = "python CPU / thread 1"
    return {"track": track, "name": name, "category": "cuda_runtime", **timed, **others}
