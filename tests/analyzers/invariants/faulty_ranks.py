"""Traces that ranks with every fault at once might write, for hypothesis.

Small numbers and few names, so that rows meet: ranks come to one collective with different
operations, streams write what others read, and tokens differ from their solo runs.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from stepscope.ingest.trace import Trace
from tests.analyzers.absurd import Rows, trace_from

CONFIG: dict[str, Any] = {
    "parallel": {"num_slots": 3, "codebook": {"shutdown": "0xffffffff", "prefill": 2}}
}

_few = st.integers(0, 3)
_maybe = _few | st.none()
_streams = st.sampled_from(["host", "copy", "compute"])
_names = st.sampled_from(["r1", "r2", "r3"])
_digests = st.sampled_from(["a", "b", "nan", None])


def _rows(size: int = 40, **columns: Any) -> st.SearchStrategy[list[dict[str, Any]]]:
    fields = {
        name: values if isinstance(values, st.SearchStrategy) else st.just(values)
        for name, values in columns.items()
    }
    defaults = {"rank": st.integers(0, 1), "ts_ns": st.integers(0, 15), "step": _few}
    return st.lists(st.fixed_dictionaries(defaults | fields), min_size=6, max_size=size)


faulty_ranks: st.SearchStrategy[Rows] = st.fixed_dictionaries(
    {
        "collectives": _rows(
            24, ordinal=st.integers(0, 8),
            op=st.sampled_from(["all-reduce", "broadcast", "AllToAll"]),
            dtype=st.sampled_from(["f32", "f32", "bf16"]), num_elements=st.sampled_from([1, 1, 2]),
            group=st.sampled_from(["ep", "tp"]), expected_ranks=st.sampled_from(["x,y", "7", None]),
            command=st.sampled_from(["slot", "prefill", "allocate", "prefill: tokens", None]),
            slot=st.sampled_from([0, 1, 2, 5, -1, None]), dur_ns=_maybe,
            stream=st.sampled_from(["s", None]), inferred=st.sampled_from([None, None, "names"]),
        ),
        "accesses": _rows(
            op=st.sampled_from(["read", "write", "copy"]), stream=_streams,
            buffer=st.sampled_from(["b", "b", "input_ids"]), first=st.integers(0, 1),
            last=st.integers(2, 5), segment=st.sampled_from([0, 1, None]),
            epoch=st.integers(0, 5), event=None, step=st.integers(0, 1),
        ).flatmap(
            lambda touched: _rows(
                12, op=st.sampled_from(["record", "wait", "synchronize"]), stream=_streams,
                event=st.sampled_from(["e", "f", "copy", None]), buffer=None, first=None, last=None,
                segment=None, epoch=None,
            ).map(lambda synced: touched + synced)
        ),
        "allocations": _rows(
            resource="slot", id=_few, generation=_maybe, op=st.sampled_from(["claim", "move"]),
            owner=st.sampled_from(["r1", "r2", "slot 0", "slot 1", "slot 2"]),
        ),
        "outputs": _rows(
            request=_names, position=_few, token=st.sampled_from([0, 2, None]), source_step=_few,
            is_placeholder=st.booleans(), digest=_digests, solo_digest=_digests,
        ),
        "batch_rows": _rows(
            request=_names, row=_few, phase=st.sampled_from(["prefill", "decode"]), num_tokens=_few,
            num_computed=_maybe, num_cached=_maybe, is_final_chunk=st.booleans() | st.none(),
        ),
        "segments": _rows(
            step=1, segment=_few, phase=st.sampled_from(["prefill", "decode"]), num_rows=1,
            num_tokens=1,
        ),
        "steps": _rows(
            step=st.integers(0, 12), dur_ns=_maybe,
            kind=st.sampled_from(["prefill", "decode", "mixed", "dummy"]),
            executed_path=st.sampled_from(["dummy-prefill", "decode", None]),
        ),
        "counters": _rows(
            name="protocol version", value=st.sampled_from([1.0, 2.0, float("nan")])
        ),
    }
)  # fmt: skip


def ranks_trace(rows: Rows) -> Trace:
    """A trace of those rows whose manifest declares a codebook, and that nothing is missing."""
    trace = trace_from(rows)
    complete = dict.fromkeys(rows, "complete")
    trace.manifest = dataclasses.replace(trace.manifest, config=CONFIG, tables=complete)
    return trace
