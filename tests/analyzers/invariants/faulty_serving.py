"""Traces that a serving engine with every fault at once might write, for hypothesis.

Small numbers and few names, so that rows meet: requests own each other's blocks, run without having
been admitted, and get tokens that nobody sampled.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from stepscope.ingest.trace import Trace
from tests.analyzers.absurd import Rows, trace_from

CONFIG: dict[str, Any] = {
    "engine": {
        "block_size": 2, "max_num_seqs": 3, "num_slots": 3, "eos_token": 1,
        "refuses_mixed_drafts": True,
    },
    "layout": {"num_slots": 3, "slot_tokens": 4, "token_bytes": 1},
    "declared_paths": {"decode": {"fused": [1, 2], "eager": [3]}, "prefill": ["prefill"]},
}  # fmt: skip

_names = st.sampled_from(["r1", "r2", "r3"])
_few = st.integers(0, 3)
_maybe = _few | st.none()
_paths = st.sampled_from(["prefill", "decode: fused", "mixed", "eager", None])
_phases = st.sampled_from(["prefill", "decode"])


def _rows(**columns: Any) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of a moment, which is also their step, that take place on either of two ranks."""
    fields = {
        name: values if isinstance(values, st.SearchStrategy) else st.just(values)
        for name, values in columns.items()
    }
    fields |= {"rank": st.integers(0, 1), "ts_ns": st.integers(0, 12)}
    row = st.fixed_dictionaries(fields).map(lambda row: {"step": row["ts_ns"], **row})
    return st.lists(row, min_size=6, max_size=40)


faulty_serving: st.SearchStrategy[Rows] = st.fixed_dictionaries(
    {
        "steps": _rows(
            dur_ns=_maybe, kind=st.sampled_from(["prefill", "decode", "mixed", "idle"]),
            num_prefill_reqs=_maybe, num_decode_reqs=_maybe, num_prefill_tokens=_maybe,
            num_decode_tokens=_maybe, token_budget=_maybe, reserved_tokens=_maybe,
            num_waiting=_maybe, num_running=_maybe, kv_blocks_free=_maybe, kv_blocks_total=_maybe,
            executed_path=_paths, logits_rows=_maybe,
        ),
        "batch_rows": _rows(
            request=_names, phase=_phases, num_tokens=_maybe, num_computed=_maybe,
            num_draft=_maybe, is_final_chunk=st.booleans() | st.none(),
            is_recompute=st.booleans() | st.none(),
        ),
        "segments": _rows(
            segment=_few, phase=_phases, num_rows=_few, num_tokens=_few, first_cu_len=_maybe,
            last_cu_len=_maybe, executed_path=_paths, input_ids_len=_maybe, positions_len=_maybe,
            slot_mapping_len=_maybe,
        ),
        "lifecycle": _rows(
            request=_names, by_request=_names | st.none(), prompt_len=_maybe, max_tokens=_maybe,
            event=st.sampled_from(
                ["arrive", "admit", "first-token", "preempt", "resume", "finish", "abort"]
            ),
        ),
        "decisions": _rows(
            subject_kind="request", subject=_names, holder=_names | st.none(), needed=_maybe,
            available=_maybe, verdict=st.sampled_from(["deferred", "put-back", "rejected"]),
            resource=st.sampled_from(["kv-block", "queue", "token-budget", None]),
            reason=st.sampled_from(["len=1", "len=2", None]),
        ),
        "allocations": _rows(
            resource=st.sampled_from(["slot", "slot", "kv-block"]), id=_few, owner=_names,
            op=st.sampled_from(["claim", "release", "share", "move"]),
        ),
        "accesses": _rows(
            buffer=st.sampled_from(["kv", "mirror"]), first=st.sampled_from([0, 4, 8]),
            last=st.sampled_from([4, 8, 12]), op=st.sampled_from(["read", "write", "copy"]),
            stream="host", epoch=st.integers(0, 6),
        ),
        "outputs": _rows(
            request=_names, position=_maybe, token=_maybe, source_step=st.integers(0, 12),
            is_placeholder=st.booleans() | st.none(),
        ),
    }
)  # fmt: skip


def serving_trace(rows: Rows) -> Trace:
    """A trace of those rows whose manifest declares an engine, and that nothing is missing."""
    trace = trace_from(rows)
    complete = dict.fromkeys(rows, "complete")
    trace.manifest = dataclasses.replace(trace.manifest, config=CONFIG, tables=complete)
    return trace
